"""Compress a BERT teacher by a recipe, measure what it cost, ship a verified int8 ONNX bundle.

`compress.run(...)` is the command line's `run`; `compress.runtime.Classifier` answers with a
shipped bundle and imports neither torch nor anything else of this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .pipeline import Listener, Plan
    from .results import Result

__all__ = ["__version__", "plan", "run"]


def run(
    recipes: str | Sequence[str],
    *,
    tasks: str | Sequence[str],
    listener: Listener | None = None,
    **options: Any,
) -> list[Result]:
    """Run recipes on tasks and return a typed `Result` per recipe, task and seed.

    `options` are the fields of `compress.pipeline.Request`: teacher, student, seeds, data_dir,
    tuning, corpus, base_seed, root (the command line's --out), precision, refit, overrides (its --set: ["distill.epochs=1"]),
    threads, fsdp, bench, checkpoint_seconds, command. Raises `compress.errors.CompressError`.
    """
    from .pipeline import run_all

    return run_all(_request(recipes, tasks, options), listener)


def plan(recipes: str | Sequence[str], *, tasks: str | Sequence[str], **options: Any) -> list[Plan]:
    """What `run` with the same arguments would do: stages, keys, sizes. Computes and writes nothing."""
    from .pipeline import plan_all

    return plan_all(_request(recipes, tasks, options))


def _request(recipes: str | Sequence[str], tasks: str | Sequence[str], options: dict[str, Any]) -> Any:
    from .errors import CompressError, did_you_mean
    from .pipeline import Request

    known = [field.name for field in dataclasses.fields(Request) if field.name not in ("recipes", "tasks")]
    for name in options:
        if name not in known:
            raise CompressError(f"no option `{name}`{did_you_mean(name, known)}; they are {', '.join(known)}")
    overrides = options.get("overrides", ())
    if isinstance(overrides, str) or not all(isinstance(word, str) and "=" in word for word in overrides):
        raise CompressError(f'overrides: expected a list like ["distill.epochs=1"], found {overrides!r}')
    for name in ("data_dir", "tuning", "root"):
        if isinstance(options.get(name), str):
            options[name] = Path(options[name])
    return Request(recipes=_many(recipes), tasks=_many(tasks), **options)


def _many(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
