"""Write the files of qa.yaml beside this one from a folder of SQuAD files.

    python reports/qa-wiki/join.py FOLDER OUT

FOLDER has reddit.json, amazon_reviews.json and squad-20-articles.json (train) and new_wiki.json (dev), in SQuAD's format.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TRAIN = ("reddit.json", "amazon_reviews.json", "squad-20-articles.json")


def main(folder: Path, out: Path) -> None:
    articles = [article for name in TRAIN for article in json.loads((folder / name).read_text("utf-8"))["data"]]
    (out / "qa-train.json").write_text(json.dumps({"version": "1.1", "data": articles}), "utf-8")
    (out / "qa-dev.json").write_text((folder / "new_wiki.json").read_text("utf-8"), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
