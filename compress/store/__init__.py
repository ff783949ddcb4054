"""Artefacts on disk, addressed by what made them; each is whole or absent."""

from __future__ import annotations

from .artifacts import STORE, Artifact, Store
from .failures import as_user_error
from .hashing import hash_file, hash_folder, key

__all__ = ["STORE", "Artifact", "Store", "as_user_error", "hash_file", "hash_folder", "key"]
