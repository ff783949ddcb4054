"""The picture of a searched model: every matmul, its position, and its precision."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from compress.report.pictures.drawing import svg
from compress.report.sections import sensitivity

DIVERGENCE = {
    "layer.0.up/MatMul": {"static": 0.02, "dynamic": 0.03},
    "layer.0.down/MatMul": {"static": 0.4, "dynamic": 0.1},
    "layer.1.up/MatMul": {"static": 0.0, "dynamic": 0.0},
    "layer.1.down/MatMul": {"static": 0.9, "dynamic": 0.8},
}
LAYOUTS = {"layer.0.up/MatMul": "static", "layer.0.down/MatMul": "dynamic", "layer.1.up/MatMul": "static"}


def tasks(kind: str = "classification", **info: Any) -> Any:
    searched = {
        "divergence": DIVERGENCE,
        "int8_formats": LAYOUTS,
        "fp32_fallbacks": ["layer.1.down/MatMul"],
        "goal": {"drop": 0.5, "flips": 0.2},
    }
    models = [
        SimpleNamespace(name="student", precision="fp32", info={}),
        SimpleNamespace(name="student", precision="int8", info=searched | info),
    ]
    task = SimpleNamespace(marked_title="SST-2", kind=kind)
    result = SimpleNamespace(models=models, recipe={"name": "r", "title": "R"}, seed=3, task=task)
    return [SimpleNamespace(results=[result])]


def test_it_has_every_product_of_the_searched_models_alone(tmp_path: Path) -> None:
    drawn = svg(sensitivity.charts(tasks()))
    for matmul in DIVERGENCE:
        assert matmul.removesuffix("/MatMul") in drawn
    assert "KL divergence" in drawn
    assert "R, student int8, SST-2, seed 3" in drawn
    assert len(sensitivity.searched_models(tasks())) == 1


def test_in_words_the_worst_come_first_with_what_became_of_them() -> None:
    description = sensitivity.describe(tasks())
    assert (
        "layer.1.down 0.900 (fp32 fallback); layer.0.down 0.100 (int8, range of each run); layer.0.up 0.0200"
        in description
    )


def test_a_score_has_another_measure_and_an_unsearched_model_no_picture() -> None:
    drawn = svg(sensitivity.charts(tasks(kind="regression", goal={"drop": 0.5})))
    assert "mean squared difference" in drawn
    assert sensitivity.searched_models(tasks(divergence={})) == []
    assert sensitivity.describe(tasks(divergence={})) == ""


def test_the_table_has_the_worst_product_first_with_points_and_time() -> None:
    ((result, model),) = sensitivity.searched_models(
        tasks(
            drop_alone={name: {"static": 1.5, "dynamic": -0.25} for name in DIVERGENCE},
            saved_ms=dict.fromkeys(DIVERGENCE, 0.125),
        )
    )
    table = sensitivity.table(result, model, "caption")
    assert [[cell.text for cell in line.cells] for line in table.lines][:2] == [
        ["layer.1.down", "fp32 fallback", "9.0e-01", "1.50", "0.125"],
        ["layer.0.down", "int8, range of each run", "1.0e-01", "−0.25", "0.125"],
    ]


def test_a_product_that_was_given_back_keeps_the_format_that_was_tried() -> None:
    tried = LAYOUTS | {"layer.1.down/MatMul": "dynamic"}
    assert "layer.1.down 0.800 (fp32 fallback" in sensitivity.describe(tasks(int8_formats_tried=tried))


def test_a_result_of_before_points_were_measured_has_an_empty_table() -> None:
    ((result, model),) = sensitivity.searched_models(tasks())
    assert not sensitivity.table(result, model, "caption").lines
