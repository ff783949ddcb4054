"""Artefacts on disk, addressed by what made them; each is whole or absent."""

from __future__ import annotations

from .artifacts import Artifact, Store
from .hashing import hash_file, hash_folder, key

__all__ = ["Artifact", "Store", "hash_file", "hash_folder", "key"]
