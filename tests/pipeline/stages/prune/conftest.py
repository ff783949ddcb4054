from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from prune_runs import prune_world
from tokenizers import Tokenizer


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    """Return a folder with a teacher, a task, recipes that prune, and student cards."""
    return prune_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer)
