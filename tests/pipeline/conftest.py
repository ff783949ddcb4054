from __future__ import annotations

from pathlib import Path

import pytest
from pretrain_toys import CARD
from tokenizers import Tokenizer
from worlds import TASK


@pytest.fixture
def world(tmp_path: Path, toy_tokenizer: Tokenizer) -> Path:
    """Return a folder with a teacher with random weights, its tokenizer, text and a task."""
    (tmp_path / "words").mkdir()
    toy_tokenizer.save(str(tmp_path / "words" / "tokenizer.json"))
    (tmp_path / "own.yaml").write_text(CARD.format(tmp_path / "words"))
    (tmp_path / "task.yaml").write_text(TASK)
    sentences = ("the film is good .", "the story is not bad .", "a very long old film .")
    documents = [" ".join(sentences[(i + j) % 3] for j in range(4)) for i in range(60)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents) + "\n")
    return tmp_path
