"""The sign of a difference: from logits of models with a known order, to every page that shows it.

The teacher is right on 90% of the examples, the student on 80%, its int8 form on 85%.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compress.bundle.shipping import card
from compress.pipeline.results import assemble
from compress.report import markdown_table, write_report
from compress.report.ablation import ablation_document, ablation_of, findings
from compress.report.page import tasks_of
from compress.results import PREDICTIONS, ModelResult, Result, write_result
from compress.tasks import ReportedData

EXAMPLES = 1000
RIGHT = {"teacher-fp32": 900, "student-fp32": 800, "student-int8": 850}
GOLD = np.tile([0, 1], EXAMPLES // 2)


def logits(right: int, seed: int) -> np.ndarray:
    """Return logits that are right on `right` examples, chosen by `seed`."""
    wrong = np.random.default_rng(seed).permutation(EXAMPLES) >= right
    return np.eye(2, dtype=np.float32)[np.where(wrong, 1 - GOLD, GOLD)]


def assembled(folder: Path, outputs: dict[str, np.ndarray]) -> tuple[ModelResult, ...]:
    """Return a run's models with these logits on dev."""
    file = folder / "model.onnx"
    file.write_bytes(b"graph")
    spec: Any = SimpleNamespace(
        name="sst2", kind="classification", metrics=("accuracy",), positive=None, headline="first"
    )
    dev: Any = SimpleNamespace(labels=GOLD, texts=())
    data = ReportedData(spec, ("no", "yes"), {"dev": dev}, "")
    context: Any = None
    sizes = SimpleNamespace(
        parameters=1, embedding_parameters=1, flops_per_token=lambda n: n, flops_per_example=lambda n: n
    )
    plan: Any = SimpleNamespace(sizes={"teacher": sizes, "student": sizes})
    models = [
        SimpleNamespace(name=name, precision=precision, label=label, onnx=file, checkpoint=SimpleNamespace(path=folder))
        for label in outputs
        for name, precision in [label.split("-")]
    ]
    material: Any = SimpleNamespace(
        models=models,
        reported=SimpleNamespace(data=data),
        gold={"dev": GOLD},
        logits={label: {"dev": output} for label, output in outputs.items()},
        runtimes={},
        measured_by=lambda label: None,
        artifacts={label: SimpleNamespace(info={}) for label in outputs},
    )
    return tuple(assemble._model_result(plan, context, model, material) for model in models)  # type: ignore[arg-type]


@pytest.fixture
def run(fake: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setattr(assemble, "_mean_length", lambda model, context: 20.0)
    monkeypatch.setattr(assemble, "checkpoint_sizes", lambda plan, model, folder: plan.sizes[model])

    def make(seed: int, name: str = "mine", **right: int) -> Result:
        counts = {label: right.get(label.replace("-", "_"), count) for label, count in RIGHT.items()}
        outputs = {label: logits(count, 10 * seed + place) for place, (label, count) in enumerate(counts.items())}
        folder = tmp_path / "runs" / f"{name}-seed{seed}"
        folder.mkdir(parents=True)
        plain = fake(seed=seed)
        settings = {**plain.settings, "bench": None}
        task = plain.task.model_copy(update={"splits": ("dev",), "labels": ("no", "yes")})
        changes = {
            "run": folder.name,
            "task": task,
            "models": assembled(folder, outputs),
            "noise": (),
            "settings": settings,
        }
        result = plain.model_copy(update=changes)
        arrays = {f"{label}/dev": output for label, output in outputs.items()}
        np.savez(folder / PREDICTIONS, allow_pickle=False, **arrays, **{"gold/dev": GOLD})
        write_result(result, folder)
        return result

    return make


def page(results: list[Result], tmp_path: Path) -> str:
    write_report(results, tmp_path / "report", folders=[tmp_path / "runs"])
    return (tmp_path / "report" / "report.md").read_text(encoding="utf-8")


def test_a_result_says_how_much_better_a_model_is_than_its_baseline(run: Callable[..., Result]) -> None:
    teacher, student, int8 = run(0).models
    assert (teacher.delta, teacher.fidelity, student.fidelity) == (None, None, None)
    assert student.delta and int8.delta and int8.fidelity
    assert student.delta.points == pytest.approx(-10) and student.delta.high < -5
    assert int8.delta.points == pytest.approx(-5) and int8.delta.high < 0
    assert int8.fidelity.delta.points == pytest.approx(5) and int8.fidelity.delta.low > 0
    assert card._delta(student).startswith("-10.00 (-1") and "not" not in card._delta(student)


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_report_of_predictions_says_so_too(run: Callable[..., Result], tmp_path: Path, seeds: int) -> None:
    results = [run(seed) for seed in range(seeds)]
    text = page(results, tmp_path)
    assert "−10.00 (−1" in text and "−5.00 (−" in text and "a difference of −5.00 (−" in text
    assert "+5.00 (+" in text  # the int8 form against its fp32 one
    assert "+10.00" not in text
    assert "−5.00 (−" in markdown_table(results)


def test_a_model_that_is_better_than_its_teacher_is_positive(run: Callable[..., Result], tmp_path: Path) -> None:
    results = [run(seed, student_fp32=950) for seed in range(3)]
    (task,) = tasks_of(results, [tmp_path / "runs"])
    delta = next(row.delta for row in task.rows if row.name == "student fp32")
    assert delta and delta.points == pytest.approx(5) and delta.low > 0
    assert "+5.00 (+" in page(results, tmp_path)


@pytest.mark.parametrize("seeds", [1, 3])
def test_rows_of_an_ablation_are_positive_where_they_beat_the_full_recipe(
    run: Callable[..., Result], tmp_path: Path, seeds: int
) -> None:
    rows = {
        "full": [run(seed, "full") for seed in range(seeds)],
        "better": [run(seed, "better", student_int8=930) for seed in range(seeds)],
        "worse": [run(seed, "worse", student_int8=700) for seed in range(seeds)],
    }
    ablation = ablation_of(rows, title="Mine", command="compress ablate mine", folders=[tmp_path / "runs"])
    document = {row["label"]: row for row in ablation_document(ablation)["rows"]}
    for label, points in (("better", 8), ("worse", -15)):
        for difference in (document[label]["mean"]["difference"], document[label]["tasks"]["sst2"]["difference"]):
            assert difference["points"] == pytest.approx(points)
            assert np.sign(difference["low"]) == np.sign(difference["high"]) == np.sign(points)
    worse, better, *_ = findings(ablation)
    assert worse == "Worse than the full recipe: “worse” (−15.00)."
    assert better == "Better than the full recipe: “better” (+8.00)."
