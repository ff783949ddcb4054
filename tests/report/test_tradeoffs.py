"""One sentence on which of parameters, FLOPs, size and latency a model shrinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compress.report.page import tasks_of
from compress.report.sections.scores import main_table
from compress.report.sections.sentences import tradeoffs
from compress.report.sections.tradeoffs import tradeoff_sentence
from compress.report.text.cells import Column
from compress.report.text.words import join_words
from compress.results import Result

ALBERT = {"parameters": 0.26, "flops": 1.0}


@pytest.mark.parametrize(
    ("ratios", "sentence"),
    [
        (
            ALBERT,
            "s shrinks parameters to 26% of the teacher's; it does not shrink FLOPs per token (100%): "
            "smaller on disk, not faster.",
        ),
        (
            {"parameters": 0.97, "flops": 0.5},
            "s shrinks FLOPs per token to 50% of the teacher's; it does not shrink parameters (97%): "
            "faster, not smaller on disk.",
        ),
        (
            ALBERT | {"file_size": 0.27, "latency": ("1 × 128", 1.02)},
            "s shrinks parameters to 26% and file size to 27% of the teacher's; it does not shrink FLOPs per token "
            "(100%) and latency at 1 × 128 (102%): smaller on disk, not faster at 1 × 128.",
        ),
        (  # int8 is smaller and faster at the same count of both
            {"parameters": 1.0, "flops": 1.0, "file_size": 0.25, "latency": ("1 × 128", 0.5)},
            "s shrinks file size to 25% and latency at 1 × 128 to 50% of the teacher's; it does not shrink parameters "
            "(100%) and FLOPs per token (100%).",
        ),
        (  # not timed, and FLOPs do not describe int8
            ALBERT | {"file_size": 0.07},
            "s shrinks parameters to 26% and file size to 7.0% of the teacher's; it does not shrink FLOPs per token (100%).",
        ),
        (  # measured values come before counted ones
            {"parameters": 0.5, "flops": 0.5, "file_size": 0.5, "latency": ("1 × 32", 1.4)},
            "s shrinks parameters to 50%, FLOPs per token to 50% and file size to 50% of the teacher's; it does not "
            "shrink latency at 1 × 32 (140%): smaller on disk, not faster at 1 × 32.",
        ),
        ({"parameters": 0.26, "flops": 0.5}, ""),
        ({"parameters": 1.0, "flops": 1.0}, ""),
        ({"parameters": 1.2, "flops": 0.9}, ""),
    ],
)
def test_the_sentence(ratios: dict[str, Any], sentence: str) -> None:
    assert tradeoff_sentence("s", **ratios) == sentence


def test_the_threshold_is_that_of_the_docstring() -> None:
    assert "Below 0.9 counts as shrunk" in " ".join((tradeoff_sentence.__doc__ or "").split())
    assert tradeoff_sentence("s", parameters=0.899, flops=0.9)
    assert not tradeoff_sentence("s", parameters=0.9, flops=0.9)
    assert not tradeoff_sentence("s", parameters=0.899, flops=0.899)


def test_lists_read_as_lists() -> None:
    assert [join_words(["a", "b", "c"][:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


def shared_weights(result: Result) -> Result:
    """Give the student the teacher's depth with one shared block: its times equal the teacher's."""
    teacher, student, int8 = result.models
    assert teacher.onnx and student.onnx
    fields = {"flops_per_token": teacher.flops_per_token, "flops_per_example": teacher.flops_per_example}
    fields |= {"parameters": teacher.parameters // 4}
    slow = student.onnx.model_copy(update={"latency": teacher.onnx.latency})
    student = student.model_copy(update={**fields, "file_bytes": teacher.file_bytes // 4, "onnx": slow})
    return result.model_copy(update={"models": (teacher, student, int8.model_copy(update=fields))})


def test_the_report_says_what_sharing_does_not_shrink(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([shared_weights(fake())])
    fp32, int8 = tradeoffs(task)
    assert fp32 == (
        "distilbert, student fp32 shrinks parameters to 25% and file size to 25% of the teacher's; it does not shrink "
        "FLOPs per token (100%) and latency at 1 × 128 (100%): smaller on disk, not faster at 1 × 128."
    )
    assert int8.startswith("distilbert, student int8 shrinks parameters")
    assert int8.endswith("it does not shrink FLOPs per token (100%).")


def test_each_quantity_has_a_column_of_its_own(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake()])
    columns = main_table(task).columns
    wanted = [Column("1 × 32", "ms p50 / p90"), Column("1 × 128", "ms p50 / p90")]
    wanted += [
        Column("File", "MB"),
        Column("Parameters", "M"),
        Column("Per token", "MFLOPs"),
        Column("Per example", "MFLOPs"),
    ]
    assert [column for column in columns if column in wanted] == wanted
