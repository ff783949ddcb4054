"""Write a folder `minilm-3` beside this script: the first three of the six layers of a BERT's checkpoint, with its tokenizer.

    python reports/conll2003/first_layers.py FOLDER

FOLDER is the checkpoint of teachers/minilm-l6.yaml.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from safetensors.torch import load_file, save_file

LAYERS = 3


def main(folder: Path) -> None:
    out = Path(__file__).parent / "minilm-3"
    out.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(folder / name, out / name)
    config = json.loads((folder / "config.json").read_text("utf-8")) | {"num_hidden_layers": LAYERS}
    (out / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    weights = load_file(folder / "model.safetensors")
    beyond = tuple(f"encoder.layer.{number}." for number in range(LAYERS, 6))
    kept = {name: value for name, value in weights.items() if not name.startswith(beyond)}
    save_file(kept, out / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
