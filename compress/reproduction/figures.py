"""The result of rerunning a report: each recorded figure, the new one, and the verdict on whether they agree."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, computed_field

from ..results.record import Record

Verdict = Literal["same", "within its interval", "within 1%", "not judged", "differs"]


class Condition(Record):
    """Something that figures depend on."""

    name: str
    recorded: str | None
    now: str | None
    same: bool


class Interval(Record):
    """Interval of the difference, new minus recorded, in points."""

    points: float
    low: float
    high: float
    p: float = Field(description="p-value of no difference, corrected for all intervals of the comparison (Holm 1979)")


class Figure(Record):
    """A score in points, a size in bytes, or a number of parameters."""

    model: str = Field(description="name and precision, e.g. `student int8`")
    name: str = Field(description="a metric, `headline` (the mean of several metrics), `file_bytes` or `parameters`")
    split: str | None = Field(default=None, description="only of a score")
    recorded: float
    now: float | None = Field(description="null if no such model was made")
    verdict: Verdict
    changed: int | None = Field(
        default=None, description="examples whose answer changed; null if no answers are on record"
    )
    examples: int | None = None
    interval: Interval | None = None
    why: str = Field(default="", description="explanation of the verdict, if it needs one")


class ReproducedRun(Record):
    """One recorded result beside that of its rerun. `exact`: machine, threads, processes, versions and code are as recorded, so that
    figures must be the same."""

    recorded: str = Field(description="name of the run on record")
    run: str = Field(description="name of the run made now")
    command: str = Field(description="command that made it")
    recipe: str
    task: str
    seed: int
    exact: bool
    conditions: tuple[Condition, ...]
    changed_settings: tuple[str, ...]
    stages: int
    stages_from_store: int = Field(description="stages that were taken from the store, not run again")
    figures: tuple[Figure, ...]


class Reproduction(Record):
    """All recorded results of a report beside those of their reruns. Times are not measured again."""

    source: str
    out: str
    runs: tuple[ReproducedRun, ...]

    @computed_field
    @property
    def verdicts(self) -> dict[Verdict, int]:
        """The number of figures by verdict, the good ones first."""
        counts = Counter(figure.verdict for run in self.runs for figure in run.figures)
        order: tuple[Verdict, ...] = ("same", "within its interval", "within 1%", "not judged", "differs")
        return {verdict: counts[verdict] for verdict in order if counts[verdict]}
