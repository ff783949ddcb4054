"""Token budgets in the user's cache folder, a small file each. Not being able to read or write one is no failure."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..machine import cpu_name, isa
from .engine import Engine

Identity = dict[str, str | int]


def identity(engine: Engine, threads: int) -> Identity | None:
    """What a budget holds for. Reads the whole model file once, for its SHA-256; None where it is gone."""
    try:
        with engine.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
    cpu = f"{cpu_name()} ({' '.join(isa())})"
    runtime = engine.version if engine.hint is None else f"{engine.version} {engine.hint}"
    return {"model": digest, "cpu": cpu, "threads": threads, "runtime": runtime}


def folder() -> Path | None:
    """`bert-compress/token-budgets` under XDG_CACHE_HOME or ~/.cache; None where there is no home."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # as the specification of these folders says: others are to be ignored
        try:
            cache = Path.home() / ".cache"
        except RuntimeError:
            return None
    return cache / "bert-compress" / "token-budgets"


def recall(key: Identity, budgets: Sequence[int]) -> int | None:
    """The budget remembered for `key` if it is one of `budgets`, else None."""
    path = _path(key)
    try:
        document = json.loads(path.read_text(encoding="utf-8")) if path else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("for") != key:
        return None
    return next((budget for budget in budgets if budget == document.get("tokens")), None)


def remember(key: Identity, tokens: int) -> None:
    """Write it beside its place, then rename: a reader finds all of it or nothing."""
    path = _path(key)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"tokens": tokens, "for": key}, file, indent=1)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _path(key: Identity) -> Path | None:
    found = folder()
    name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]
    return found / f"{name}.json" if found else None
