"""The measurements of one `compress bench`, and their machine-readable document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...bench import AGAIN
from ...provenance import Code
from ...results import Machine, Runtime
from ...results.timing import Shape, doubts, too_noisy, uses_cpu_time

if TYPE_CHECKING:
    from ...bench.profile import Profile

Runtimes = Mapping[str, Runtime]  # for one number of threads: by model, the baseline first and measured again last


@dataclass(frozen=True)
class Measurements:
    """`runtimes`: one for each number of threads; `profiles`: for each model one for each shape."""

    runtimes: Sequence[Runtimes]
    profiles: Mapping[str, Sequence[Profile]]
    command: str
    task: str | None
    data_dir: str | None
    rigor: str | None
    machine: Machine
    versions: Mapping[str, str]
    code: Code

    @property
    def models(self) -> list[str]:
        return [name for name in self.runtimes[0] if name != AGAIN]

    def noisy(self, runtimes: Runtimes) -> set[Shape]:
        """Return the shapes whose ratios a rigorous measurement considers too noisy; empty for any other measurement."""
        return too_noisy(runtimes[AGAIN].latency) if self.rigor else set()

    def warnings(self) -> Iterator[str]:
        """Yield which figures not to trust, separately for each number of threads."""
        for runtimes in self.runtimes:
            line, count = _warning(runtimes), next(iter(runtimes.values())).threads
            if line is not None:
                yield line if len(self.runtimes) == 1 else f"{count} thread{'s' if count > 1 else ''}: {line}"

    def document(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "data_dir": self.data_dir,
            "rigor": self.rigor,
            "command": self.command,
            "machine": self.machine.model_dump(mode="json"),
            "versions": dict(self.versions),
            "code": self.code.model_dump(mode="json"),
            "latency": [
                {"name": name, **runtime.model_dump(mode="json")}
                for runtimes in self.runtimes
                for name, runtime in runtimes.items()
            ],
            "too_noisy": [
                {"threads": runtimes[AGAIN].threads, "batch": batch, "length": length}
                for runtimes in self.runtimes
                for batch, length in sorted(self.noisy(runtimes))
            ],
            "profiles": [
                {"name": name, **asdict(profile), "gemm_share": profile.gemm_share}
                for name, profiles in self.profiles.items()
                for profile in profiles
            ],
        }


def _warning(measured: Runtimes) -> str | None:
    """Return which figures of one number of threads not to trust, by the control and by wall over CPU time."""
    models = [runtime for name, runtime in measured.items() if name != AGAIN]
    noise = measured[AGAIN].latency if AGAIN in measured else ()
    shapes = {(row.batch, row.length) for runtime in models for row in runtime.latency}
    return doubts(noise, models).warning(shapes, cpu=uses_cpu_time(models))
