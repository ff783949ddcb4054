"""A teacher and a pre-trained student with different tokenizers: a tiny BERT with WordPiece and a tiny RoBERTa with bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from compress.models.cards import RandomInit
from compress.models.checkpoints.folders import save_checkpoint
from compress.models.random_models import random_config, random_encoder
from compress.tasks import byte_level, wordpiece

# A task of text similarity; `kind` is embedding or regression.
ALIKE = """
name: alike
kind: {kind}
text: [one, two]
label: score
metrics: [spearman]
max_length: 24
synthetic: {{generator: similarity, train: 160, dev: 40}}
"""

BYTES, WORDS = 400, 300  # tokens


def encoder_folder(
    folder: Path, architecture: str = "roberta", *, positions: int = 32, seed: int = 5, layers: int = 1
) -> Path:
    """Write an encoder without a head, whose states differ between texts; a RoBERTa has a byte-level tokenizer, a BERT
    WordPiece."""
    vocabulary = BYTES if architecture == "roberta" else WORDS
    tokenizer = byte_level(vocabulary) if architecture == "roberta" else wordpiece(vocabulary)
    sizes: Any = {"layers": layers, "hidden": 32, "heads": 2, "intermediate": 64, "max_positions": positions}
    init = RandomInit(architecture=architecture, vocabulary=vocabulary, **sizes)
    torch.manual_seed(seed)
    model = random_encoder(random_config(init))
    with torch.no_grad():
        for parameter in model.parameters():  # larger than the default, so that the states of texts differ
            parameter.add_(torch.randn_like(parameter) * 0.2)
    save_checkpoint(model, tokenizer, folder)
    return folder
