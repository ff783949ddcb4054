"""The plan names fields of `quantize` that are set but that the method does not use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress import catalog
from compress.pipeline import Request, plan_all
from compress.pipeline.request import load_recipe
from compress.pipeline.stages.quantize import unread_fields
from compress.spec.quantization import Quantize


def named(**fields: Any) -> list[str]:
    """Return the fields that have no effect."""
    return [line.partition(" has no effect: ")[0] for line in unread_fields(Quantize(**fields), "quantize")]


@pytest.mark.parametrize(
    ("fields", "unread"),
    [
        ({}, []),
        ({"max_drop": 0.1}, ["max_drop"]),
        ({"max_drop": 0.5}, []),  # the default
        ({"method": "auto", "max_drop": 0.1, "max_flips": 1, "alpha": 0.5}, []),
        ({"method": "inc-static", "max_drop": 0.1, "max_flips": 1}, ["max_flips"]),
        ({"method": "inc-static", "calibration_text": "a.txt", "calibration_examples": 64}, []),
        ({"method": "static", "alpha": 0.5, "outlier_splitting": False}, ["alpha", "outlier_splitting"]),
        (
            {"method": "dynamic", "calibration": "minmax", "bias_correction": True, "calibration_text": "a.txt"},
            ["calibration_text", "calibration", "bias_correction"],
        ),
        ({"method": "dynamic", "portable": True, "calibration": "minmax", "calibration_text": "a.txt"}, []),
        ({"method": "dynamic", "portable": True, "alpha": 0.5}, ["alpha"]),
        ({"method": "dynamic", "avx2": True, "calibration_examples": 64}, ["calibration_examples"]),
        ({"method": "inc-static", "avx2": True, "calibration": "minmax"}, []),
        ({"method": "qat", "calibration": "percentile", "percentile": 99.5, "calibration_text": "a.txt"}, []),
        ({"method": "qat", "alpha": 0.5, "bias_correction": True}, ["alpha", "bias_correction"]),
        ({"calibration": "minmax", "percentile": 99.5}, ["percentile"]),
        ({"word_bits": 4, "exclude": ("x",), "per_channel": False, "reduce_range": True}, []),
    ],
)
def test_what_no_file_depends_on_is_named(fields: dict[str, Any], unread: list[str]) -> None:
    assert named(**fields) == [f"quantize.{name}" for name in unread]


def test_the_lines_say_who_uses_them() -> None:
    assert unread_fields(Quantize(max_drop=0.1), "quantize") == [
        "quantize.max_drop has no effect: method `smoothquant` does not use it; `auto`, `inc-static` do"
    ]
    assert unread_fields(Quantize(calibration="minmax", percentile=99.5), "int8") == [
        "int8.percentile has no effect: `calibration: minmax` takes no percentile"
    ]


def test_no_recipe_of_the_catalogue_sets_one() -> None:
    specs = [stage.spec for name in catalog.names("recipes") for stage in load_recipe(name).stages]
    lines = [line for spec in specs if isinstance(spec, Quantize) for line in unread_fields(spec, "quantize")]
    assert not lines


def test_the_plan_says_so(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> None:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    for override, count in (("quantize.max_flips=1", 1), ("quantize.calibration=minmax", 0)):
        request = Request(
            ("int8",), (str(tmp_path / "task.yaml"),), teacher=str(teacher), overrides=(override,), seeds=(0, 1)
        )
        for plan in plan_all(request):
            assert sum("quantize.max_flips has no effect" in note for note in plan.notes) == count


def test_a_step_of_ranges_that_are_not_learned_is_named(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    teacher = str(encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n"))
    step = "quantize_aware.range_step=0.01"
    for overrides, count in (((step,), 0), ((step, "quantize_aware.ranges=moving_average"), 1)):
        (plan,) = plan_all(
            Request(
                ("distilbert-int8-qat",),
                (str(tmp_path / "task.yaml"),),
                teacher=teacher,
                student="distil-1l",
                overrides=overrides,
            )
        )
        assert sum("quantize_aware.range_step has no effect" in note for note in plan.notes) == count
