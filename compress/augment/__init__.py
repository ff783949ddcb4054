"""Augmentation of task data: copies of every example with some words replaced by likely others.

TinyBERT (Jiao et al. 2020, arXiv:1909.10351, Algorithm 1). Light to import: torch is imported with the first proposal of a masked language
model.
"""

from __future__ import annotations

from .candidates import Proposers
from .copies import Augmented, augment, read_augmented, write_augmented
from .masked import MaskedLmProposer
from .neighbours import GloveProposer, NeighbourProposer, WordProposer
from .replaceable import has_replaceable_words

__all__ = [
    "Augmented",
    "GloveProposer",
    "MaskedLmProposer",
    "NeighbourProposer",
    "Proposers",
    "WordProposer",
    "augment",
    "has_replaceable_words",
    "read_augmented",
    "write_augmented",
]
