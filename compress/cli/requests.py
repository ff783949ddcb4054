"""Records of the options that several commands share, and the requests that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from .options import (
    BaseSeed,
    Corpus,
    DataDir,
    Dev,
    KindOfTask,
    Label,
    MaxLatency,
    MaxLength,
    MaxSize,
    MinScore,
    Out,
    Overrides,
    Pair,
    Precision,
    Refit,
    Seed,
    Seeds,
    Text,
    Threads,
    Train,
    Tuning,
)

if TYPE_CHECKING:
    from ..model_choice import Limits
    from ..pipeline import Request
    from ..tasks import OwnFiles


@dataclass(frozen=True, kw_only=True)
class OwnFileOptions:
    """Files of the user's own, in place of a task."""

    train: Train = None
    dev: Dev = None
    text: Text = None
    pair: Pair = None
    label: Label = None
    kind: KindOfTask = None
    max_length: MaxLength = None

    def files(self, corpus: Sequence[str] = ()) -> OwnFiles | None:
        """As `own_files`."""
        from ..tasks import own_files

        return own_files(**vars(self), corpus=corpus)


@dataclass(frozen=True, kw_only=True)
class SeedOptions:
    seeds: Seeds = 1
    seed: Seed = 0
    base_seed: BaseSeed = None

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.seeds))


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Where a run's data are, how its models are trained, and where it is written."""

    data_dir: DataDir = None
    tuning: Tuning = None
    corpus: Corpus = None
    out: Out = Path("runs")
    precision: Precision = None
    refit: Refit = False
    overrides: Overrides = None
    threads: Threads = None


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """The limits of a recommendation."""

    max_latency_ms: MaxLatency = None
    max_size_mb: MaxSize = None
    min_score: MinScore = None

    def limits(self) -> Limits | None:
        """Return the limits, None if none is given. Raises `CompressError`."""
        from ..model_choice import Limits

        return None if set(vars(self).values()) == {None} else Limits(**vars(self))


def request_of(
    recipes: Sequence[str],
    tasks: Sequence[str] | None,
    own: OwnFileOptions,
    teacher: Sequence[str] | None,
    training: TrainingOptions,
    **more: Any,
) -> Request:
    """Return the request of a command that runs recipes. `more`: other fields of the request. Raises `CompressError`."""
    from ..pipeline import Request

    if training.precision not in (None, "auto", "fp32", "bf16"):
        raise CompressError(f"--precision: expected fp32, bf16 or auto; found {training.precision!r}")
    corpus = tuple(training.corpus or ())
    return Request(
        tuple(recipes),
        tuple(tasks or ()),
        tuple(teacher) if teacher else None,
        own=own.files(corpus),
        data_dir=training.data_dir,
        tuning=training.tuning,
        corpus=corpus,
        root=training.out,
        precision=training.precision,
        refit=training.refit,
        overrides=tuple(training.overrides or ()),
        threads=training.threads,
        **more,
    )
