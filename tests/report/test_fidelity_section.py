"""The report's section on quantized models against their fp32 ones: its table and details; older results have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compress.report import render
from compress.report.page import page_of, tasks_of
from compress.report.sections.fidelity import Section, section
from compress.report.text.cells import Table
from compress.results import Result
from compress.results.fidelity import Delta, ExactFlips, Fidelity, Flip

NOISE = {"layer.0.dense/MatMul": 36.12, "layer.0.norm/LayerNormalization": 18.26, "classifier/MatMul": None}
KEPT = {"classifier/MatMul": "the classifier", "pooler/Gemm": "named by the recipe's `exclude`: pooler"}


def fidelity(flips: int, *, decided: bool = True) -> Fidelity:
    flipped = tuple(
        Flip(row=100 + number, fp32="negative", int8="positive", confidence=0.9 - number / 1000, gold="fp32")
        for number in range(flips)
    )
    decisions: dict[str, Any] = {"flips": flips, "flip_rate": flips / 872, "flipped": flipped}
    decisions |= {"fp32_calibration_error": 3.214, "int8_calibration_error": 3.4}
    return Fidelity(
        reference="student-fp32",
        split="dev",
        examples=872,
        delta=Delta(points=-0.11, low=-0.57, high=0.34, mcnemar_p=1.0),
        mean_logit_difference=0.0334,
        worst_logit_difference=0.41,
        **(decisions if decided else {}),
    )


def measured(result: Result, flips: int = 9, *, decided: bool = True, first: float = 36.12) -> Result:
    """Return the result with a fidelity for its last model."""
    info = {**result.final.info, "signal_to_noise_db": {**NOISE, "layer.0.dense/MatMul": first}, "stayed_fp32": KEPT}
    info |= {"weight_only_matmuls": 3, "fp32_matmuls": 1}
    final = result.final.model_copy(update={"fidelity": fidelity(flips, decided=decided), "info": info})
    return result.model_copy(update={"models": (*result.models[:-1], final)})


def of(results: list[Result]) -> Section:
    (task,) = tasks_of(results)
    page_section = section(task)
    assert page_section is not None
    return page_section


def rows(table: Table) -> list[dict[str, str]]:
    names = [column.text for column in table.columns]
    return [dict(zip(names, map(str, line.cells), strict=True)) for line in table.lines]


def test_a_row_per_quantized_model(fake: Callable[..., Result]) -> None:
    table = of([measured(fake()), measured(fake("int8"), 0)]).table
    assert rows(table)[0] == {
        "Recipe": "distilbert",
        "Model": "student int8",
        "Against its fp32": "−0.11 (−0.57 to +0.34), not distinguishable",
        "Flips": "9 (1.0%)",
        "Logit difference": "0.0334 / 0.410",
        "Calibration error": "3.21 / 3.40",
        "Matmuls": "20 / 4",
        "Signal to noise": "18.3",
    }
    assert [(row["Recipe"], row["Flips"]) for row in rows(table)] == [("distilbert", "9 (1.0%)"), ("int8", "0 (0.0%)")]


def test_the_details_of_a_model(fake: Callable[..., Result]) -> None:
    (detail,) = of([measured(fake())]).details
    flips, parts, kept = detail.tables
    assert detail.title == "distilbert, student int8: flips, noise of each part, what is fp32"
    assert rows(flips)[0] == {
        "Row": "100",
        "fp32 says": "negative",
        "int8 says": "positive",
        "Confidence": "90.0%",
        "Gold agrees with": "fp32",
    }
    assert len(flips.lines) == 9
    assert [list(row.values()) for row in rows(parts)] == [
        ["layer.0.dense/MatMul", "36.1"],
        ["layer.0.norm/LayerNormalization", "18.3"],
        ["classifier/MatMul", "exact"],
    ]
    assert rows(kept) == [{"Part": name, "Why": why} for name, why in KEPT.items()]


def test_twenty_flips_are_listed_and_all_are_counted(fake: Callable[..., Result]) -> None:
    page_section = of([measured(fake(), 33)])
    flips = page_section.details[0].tables[0]
    assert [row["Row"] for row in rows(flips)] == [str(row) for row in range(100, 120)]
    assert flips.caption.endswith("(20 of 33)")
    assert rows(page_section.table)[0]["Flips"] == "33 (3.8%)"
    assert "(" not in of([measured(fake(), 20)]).details[0].tables[0].caption


def test_the_parts_with_the_least_signal_to_noise_are_listed(fake: Callable[..., Result]) -> None:
    known = {f"part.{number}": 20.0 + number * 7 % 40 for number in range(40)}
    noise = {**known, "exact": None}
    result = measured(fake())
    final = result.final.model_copy(update={"info": {**result.final.info, "signal_to_noise_db": noise}})
    (detail,) = of([result.model_copy(update={"models": (*result.models[:-1], final)})]).details
    parts = detail.tables[1]
    least = sorted(known, key=lambda name: known[name])[:12]
    assert [row["Part"] for row in rows(parts)] == [name for name in noise if name in least]
    assert parts.caption.endswith("the 12 parts with the least, of 41 (all in the result file)")


def test_without_flips_there_is_no_table_of_them(fake: Callable[..., Result]) -> None:
    (detail,) = of([measured(fake(), 0)]).details
    assert [table.caption.split(" ")[0] for table in detail.tables] == ["Signal", "What"]
    assert detail.title == "distilbert, student int8: noise of each part, what is fp32"


def test_exact_answers_lost_and_gained_stand_beside_the_flips(fake: Callable[..., Result]) -> None:
    result = measured(fake())
    final = result.final.model_copy(
        update={"fidelity": fidelity(9).model_copy(update={"exact_flips": ExactFlips(lost=4, gained=3)})}
    )
    (row,) = rows(of([result.model_copy(update={"models": (*result.models[:-1], final)})]).table)
    assert "4 lost, 3 gained" in row["Flips"]


def test_every_seed_is_shown(fake: Callable[..., Result]) -> None:
    results = [measured(fake(seed=seed), 21 * seed, first=30.0 + seed) for seed in (1, 0)]
    page_section = of(results)
    assert [(row["Seed"], row["Flips"]) for row in rows(page_section.table)] == [("0", "0 (0.0%)"), ("1", "21 (2.4%)")]
    flips, parts, _ = page_section.details[0].tables
    assert {row["Seed"] for row in rows(flips)} == {"1"}
    assert flips.caption.endswith("(20 a seed; all in the result file)")
    assert [str(column) for column in parts.columns] == ["Part", "dB, seed 0", "dB, seed 1"]
    assert [str(cell) for cell in parts.lines[0].cells] == ["layer.0.dense/MatMul", "30.0", "31.0"]


def test_regression_has_no_flips_and_no_calibration_error(fake: Callable[..., Result]) -> None:
    page_section = of([measured(fake(task="stsb"), decided=False)])
    assert {"Flips", "Calibration error"}.isdisjoint(column.text for column in page_section.table.columns)
    assert all(len(line.cells) == len(page_section.table.columns) for line in page_section.table.lines)
    assert [table.caption.split(" ")[0] for table in page_section.details[0].tables] == ["Signal", "What"]


def test_results_of_before_have_no_section(fake: Callable[..., Result]) -> None:
    (task,) = tasks_of([fake()])
    assert section(task) is None
    (page,) = page_of([task]).tasks
    assert page.fidelity is None
    assert "Guo" not in " ".join(page_of([task]).reading)


def test_one_of_two_recipes_may_be_of_before(fake: Callable[..., Result]) -> None:
    assert [row["Recipe"] for row in rows(of([fake(), measured(fake("int8"))]).table)] == ["int8"]


@pytest.mark.parametrize("form", ["md", "html"])
def test_pages_have_the_section_and_no_text_of_the_task(form: str, fake: Callable[..., Result]) -> None:
    tasks = tasks_of([measured(fake(), 33)])
    page = page_of(tasks)
    text = render.markdown_report(page, "digest") if form == "md" else render.html_report(page, tasks)
    assert text.count("Fidelity of the quantized models") == 1
    assert text.index("Latency of every model and shape") < text.index("Fidelity of the quantized models")
    assert text.index("Fidelity of the quantized models") < text.index("How to read this")
    for wanted in ("layer.0.norm/LayerNormalization", "named by the recipe", "arXiv:1706.04599", "(20 of 33)"):
        assert wanted in text, wanted
    assert text.count("<details>") == text.count("</details>")
