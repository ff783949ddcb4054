"""Damaged teachers: each is used, or refused in one line, without a traceback, a hang or other output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from teacher_folders import Teachers, findings
from tokenizers import Tokenizer

pytestmark = pytest.mark.end_to_end

SLICE = 100  # cases by default
ALL = 10_000


@pytest.fixture
def teachers(tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path) -> Teachers:
    return Teachers(tmp_path, tiny_checkpoint, toy_tokenizer)


def test_whole_teachers_are_used(teachers: Teachers):
    for name in teachers.names:
        teachers.use(name, weights=True)


def check(teachers: Teachers, capfd: pytest.CaptureFixture[str], first: int, count: int) -> None:
    capfd.readouterr()
    refused, failures = findings(teachers, 0, first, count)
    said = capfd.readouterr()
    assert not failures, "\n".join(f"{finding.case}\n  {finding.problem}" for finding in failures)
    assert said.out + said.err == ""
    assert count // 5 < refused < count  # neither all pass nor all fail


def test_damaged_teachers_are_used_or_refused(teachers: Teachers, capfd: pytest.CaptureFixture[str]):
    check(teachers, capfd, 0, SLICE)


@pytest.mark.slow
def test_many_damaged_teachers_are_used_or_refused(teachers: Teachers, capfd: pytest.CaptureFixture[str]):
    check(teachers, capfd, SLICE, ALL - SLICE)
