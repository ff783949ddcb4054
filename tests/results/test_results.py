"""Results: writing and reading are inverse, errors name the file and the field, and writes are atomic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compress.errors import CompressError
from compress.results import (
    Data,
    Latency,
    Machine,
    ModelResult,
    Result,
    Runtime,
    StageRecord,
    TaskInfo,
    read_result,
    write_result,
)
from compress.results.fidelity import Delta, Fidelity, Flip

FIDELITY = Fidelity(
    reference="teacher-fp32",
    split="dev",
    examples=20,
    delta=Delta(points=0.0, low=0.0, high=0.0, mcnemar_p=1.0),
    flips=1,
    flip_rate=0.05,
    flipped=(Flip(row=7, fp32="no", int8="yes", confidence=0.6, gold="int8"),),
    mean_logit_difference=0.1,
    worst_logit_difference=0.9,
    fp32_calibration_error=1.5,
    int8_calibration_error=1.75,
)

STUDENT = {
    "name": "student",
    "scores": {"dev": {"accuracy": 88.38}},
    "headline": 88.38,
    "delta": Delta(points=-0.5, low=-1.5, high=0.5, mcnemar_p=0.4),
    "predictions": "student-fp32",
}


@pytest.fixture
def result() -> Result:
    """A result with every field filled, with non-ASCII text."""
    latency = Latency(batch=1, length=32, p50=2.5, p90=3.0, p99=4.0, examples_per_second=400.0, speedup=1.0, runs=30)
    model = ModelResult(
        name="teacher",
        precision="fp32",
        architecture="2 × 32",
        parameters=1000,
        embedding_parameters=400,
        flops_per_token=2000,
        flops_per_example=50_000,
        file_bytes=4100,
        scores={"dev": {"accuracy": 88.88}},
        headline=88.88,
        delta=None,
        predictions="teacher-fp32",
        onnx=Runtime(latency=(latency,), peak_memory_bytes=1, load_ms=1.5, threads=1),
        torch_eager=None,
        fidelity=FIDELITY,
        info={"parity_max_abs_error": {"1x1": 1e-6}, "flips": 3},
    )
    data = Data(source="files", rows={"train": 90, "tuning": 10, "dev": 20}, notes=("a subset",), fingerprint="f" * 8)
    return Result(
        run="r",
        created="2025-11-21T10:00:00+00:00",
        command="compress run r",
        recipe={"name": "r", "stages": [{"finetune": {"epochs": 3}}]},
        teacher="t",
        student=None,
        seed=0,
        task=TaskInfo(
            name="t",
            title="Tâche",
            kind="classification",
            labels=("no", "yes"),
            metrics=("accuracy",),
            splits=("dev",),
            data=data,
        ),
        machine=Machine(cpu="c", isa=("avx2",), cores=2, memory_bytes=8, os="Linux", gpu=None),
        versions={"python": "3.11"},
        stages=(StageRecord(kind="finetune", key="k", cached=False, seconds=1.0, info={"steps": 9}),),
        models=(model, model.model_copy(update=STUDENT)),
        noise=(latency,),
        settings={"threads": 2},
    )


def test_round_trip_through_a_folder_and_through_its_file(result: Result, tmp_path: Path) -> None:
    path = write_result(result, tmp_path)
    assert path == tmp_path / "result.json"
    assert read_result(tmp_path) == read_result(path) == result
    assert result.final is result.models[-1]


def test_the_same_result_is_the_same_bytes(result: Result, tmp_path: Path) -> None:
    first = write_result(result, tmp_path).read_bytes()
    assert write_result(read_result(tmp_path), tmp_path).read_bytes() == first


@pytest.mark.parametrize(
    ("where", "value", "field"),
    [
        (("schema_version",), 2, "schema_version"),
        (("seed",), "zero", "seed"),
        (("surprise",), 1, "surprise"),
        (("sur\nprise",), 1, r"'sur\nprise'"),
        (("task", "kind"), "sorting", "task.kind"),
        (("models", 0, "headline"), None, "models.0.headline"),
        (("models", 0, "onnx", "latency", 0, "p50"), "fast", "models.0.onnx.latency.0.p50"),
        (("models", 0, "onnx", "latency", 0, "speedup"), 0, "models.0.onnx.latency.0.speedup"),
        (("models", 0, "scores"), {}, "models.0.scores"),
        (("models", 0, "scores", "dev"), {"f1": 88.88}, "models.0.scores"),
        (("models", 0, "scores", "dev", "accuracy"), 1e300, "models.0.scores.dev.accuracy"),
        (("models", 0, "headline"), 88.0, "models.0.headline"),
        (("models", 0, "file_bytes"), 0, "models.0.file_bytes"),
        (("models", 0, "info", "parity_max_abs_error"), "small", "models.0.info.parity_max_abs_error"),
        (("models", 0, "info", "signal_to_noise_db"), {"x": "loud"}, "models.0.info.signal_to_noise_db.x"),
        (("models", 0, "info", "divergence"), {"x": {"static": 1.0}}, "models.0.info"),
        (("models", 0, "info", "goal"), {"drop": 0.5, "flips": 0.2}, "models.0.info"),
        (("models", 0, "info", "reached"), {"drop": 0.1, "flipped": "two"}, "models.0.info.reached.flipped"),
        (
            ("models", 0, "info", "reached"),
            {"drop": 0.1, "flips_interval": [0.1]},
            "models.0.info.reached.flips_interval",
        ),
        (("models", 0, "info", "texts"), {"train": 3}, "models.0.info.texts.tuning"),
        (("models",), [], "models"),
        (("run",), "../elsewhere", "run"),
        (("run",), "..", "run"),
        (("run",), "n" * 256, "run"),
        (("task", "splits"), [], "task.splits"),
        (("task", "metrics"), [], "task.metrics"),
        (("recipe", "stages"), [["finetune"]], "recipe.stages.0"),
        (("recipe", "stages"), [{"finetune": {"name": {}}}], "recipe.stages.0.finetune.name"),
        (("settings", "published"), {"a paper": "high"}, "settings.published.a paper"),
        (("settings", "notices"), [{}], "settings.notices.0"),
    ],
)
def test_another_schema_names_file_and_field(
    result: Result, tmp_path: Path, where: tuple[Any, ...], value: object, field: str
) -> None:
    document = json.loads(write_result(result, tmp_path).read_text())
    inner = document
    for part in where[:-1]:
        inner = inner[part]
    inner[where[-1]] = value
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document))
    with pytest.raises(CompressError) as caught:
        read_result(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{file}: not a result of schema 1: {field}: ")
    assert "\n" not in message


def test_two_models_of_one_name_are_refused(result: Result, tmp_path: Path) -> None:
    document = json.loads(write_result(result, tmp_path).read_text())
    document["models"] += document["models"][:1]
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(CompressError, match=r"models\.2\.name: a model before it is teacher fp32 too"):
        read_result(tmp_path)


def test_a_result_without_its_baseline_is_refused(result: Result, tmp_path: Path) -> None:
    """A report would take the student for the teacher, beside differences to the one that was taken out."""
    document = json.loads(write_result(result, tmp_path).read_text())
    del document["models"][0]
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(CompressError, match=r"models\.0\.delta: expected null, since the first model is the baseline"):
        read_result(tmp_path)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("9" * 5000, "expected a finite number"),
        ("9" * 20, "expected a whole number of at most 9223372036854775807"),
        ("-1e999", "expected a finite number"),
        ("NaN", "expected a finite number"),
        ('"\\ud83d"', "expected Unicode text, found half of a surrogate pair"),
        ("[" * 60 + "]" * 60, "nested too deeply; at most 40 levels are read"),
    ],
)
def test_values_that_no_reader_can_use_are_placed(result: Result, tmp_path: Path, value: str, problem: str) -> None:
    """Also in an open part, which accepts any fields."""
    text = write_result(result, tmp_path).read_text()
    (tmp_path / "result.json").write_text(text.replace('"steps": 9', f'"steps": {value}').replace('"steps":9', ""))
    with pytest.raises(CompressError) as caught:
        read_result(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'result.json'}: cannot be read as a result: stages[0].info.steps")
    assert message.endswith(problem)


def test_a_missing_field_is_named(result: Result, tmp_path: Path) -> None:
    document = json.loads(write_result(result, tmp_path).read_text())
    del document["machine"]["cpu"]
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(CompressError, match=r"result\.json: not a result of schema 1: machine\.cpu: Field required"):
        read_result(tmp_path)


@pytest.mark.parametrize("content", [b"", b'{"run": ', b"\xff\xfe", b"[" * 10])
def test_what_is_not_json_names_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(CompressError, match=r"result\.json: cannot be read as a result"):
        read_result(tmp_path)


def test_no_result_names_the_file_and_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"result\.json: no such file; expected a run directory"):
        read_result(tmp_path)
    with pytest.raises(CompressError, match="nowhere: no such file"):
        read_result(tmp_path / "nowhere")


def test_a_write_that_fails_leaves_the_old_result_whole(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up while the new one is written; the old one stays unchanged."""
    before = write_result(result, tmp_path).read_bytes()
    write_bytes = Path.write_bytes

    def fills_up(self: Path, data: bytes) -> int:
        write_bytes(self, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", fills_up)
        with pytest.raises(OSError, match=r"No space left on device: '.*/result\.json'"):
            write_result(result.model_copy(update={"seed": 1}), tmp_path)
    assert (tmp_path / "result.json").read_bytes() == before
    assert read_result(tmp_path).seed == 0
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("low", "high", "distinguishable"), [(-2.0, -0.1, True), (0.1, 2.0, True), (-1.0, 1.0, False), (0.0, 1.0, False)]
)
def test_distinguishable_when_the_interval_leaves_out_0(low: float, high: float, distinguishable: bool) -> None:
    assert Delta(points=(low + high) / 2, low=low, high=high, mcnemar_p=None).distinguishable is distinguishable


def test_a_result_from_before_fidelity_was_measured_reads(result: Result, tmp_path: Path) -> None:
    document = json.loads(write_result(result, tmp_path).read_text())
    del document["models"][0]["fidelity"]
    (tmp_path / "result.json").write_text(json.dumps(document))
    assert read_result(tmp_path).models == (result.models[0].model_copy(update={"fidelity": None}), result.models[1])


def test_results_are_frozen_and_know_no_other_fields(result: Result) -> None:
    with pytest.raises(ValueError, match="frozen"):
        result.seed = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="Extra inputs"):
        Result.model_validate({**result.model_dump(), "surprise": 1})
