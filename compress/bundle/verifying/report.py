"""The results of verification, check by check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pydantic import Field, computed_field

from ...errors import CompressError
from ...fields import Spec
from ...provenance import Code, running_code


class Check(Spec):
    name: str
    passed: bool
    detail: str


class Report(Spec):
    """All checks that were run, in order. `notes`: differences that are not failures."""

    bundle: str
    isa: tuple[str, ...] = Field(description="vector extensions of the CPU that the checks ran on")
    code: Code = Field(default_factory=running_code, description="the code that ran the checks")
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @computed_field
    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


@dataclass(frozen=True)
class Step:
    """A check to run. `file`: the file of the bundle that it opens."""

    name: str
    file: str
    detail: Callable[[], str]


def check(name: str, detail: Callable[[], str]) -> Check:
    """Run a check: `detail` returns what to say on success, or raises a `CompressError`."""
    try:
        return Check(name=name, passed=True, detail=detail())
    except CompressError as error:
        return Check(name=name, passed=False, detail=str(error))
