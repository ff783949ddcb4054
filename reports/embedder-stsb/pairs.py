"""Write train.tsv, tuning.tsv and dev.tsv of this report from a folder of GLUE: python pairs.py GLUE

train.tsv has pairs of texts; no loss reads their scores. They are those of MNLI, QQP, MRPC and RTE, and those of STS-B's train that
are not among the 1,500 pairs of tuning.tsv. dev.tsv is STS-B's dev.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, str]
OTHERS = {
    "MNLI": ("sentence1", "sentence2"),
    "QQP": ("question1", "question2"),
    "MRPC": ("#1 String", "#2 String"),
    "RTE": ("sentence1", "sentence2"),
}


def rows(path: Path, first: str, second: str, score: str | None = None) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        header = next(file).rstrip("\n").split("\t")
        places = [header.index(name) for name in (first, second, *([score] if score else []))]
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) > max(places):
                left, right, *scores = (fields[place].strip() for place in places)
                if left and right:
                    yield left, right, scores[0] if scores else "0.0"


def main(glue: Path) -> None:
    scored = list(rows(glue / "STS-B" / "train.tsv", "sentence1", "sentence2", "score"))
    random.Random(0).shuffle(scored)
    tuning, rest = scored[:1500], scored[1500:]
    seen = {text for row in tuning for text in row[:2]}
    train = [row for row in rest if seen.isdisjoint(row[:2])]
    for name, columns in OTHERS.items():
        train += rows(glue / name / "train.tsv", *columns)
    dev = list(rows(glue / "STS-B" / "dev.tsv", "sentence1", "sentence2", "score"))
    for name, pairs in (("train", train), ("tuning", tuning), ("dev", dev)):
        lines = [("sentence1", "sentence2", "score"), *pairs]
        Path(f"{name}.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
