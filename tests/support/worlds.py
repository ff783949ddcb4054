"""A task, and a teacher that is only an encoder, for tests of plans."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tokenizers import Tokenizer

TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 16
synthetic: {generator: sentiment, train: 40, dev: 8}
"""


def encoder_world(folder: Path, checkpoint: Path, tokenizer: Tokenizer, *, text: str) -> Path:
    """Write `teacher` (a BERT whose config names no head), `task.yaml` and `text.txt` to `folder`; return the teacher's
    folder."""
    teacher = folder / "teacher"
    shutil.copytree(checkpoint, teacher)
    tokenizer.save(str(teacher / "tokenizer.json"))
    config = teacher / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "architectures": ["BertModel"]}))
    (folder / "task.yaml").write_text(TASK)
    (folder / "text.txt").write_text(text)
    return teacher
