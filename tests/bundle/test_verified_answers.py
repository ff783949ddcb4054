"""Verification of what a bundle's graphs answer: recorded answers, scores measured again, the task they are of."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from bundle_making import failed, reseal

from compress.bundle import read_bundle, verify
from compress.errors import CompressError
from compress.tasks import BUILTIN_TASKS, OwnFiles, fingerprint, load_reported, load_training, own_task

pytestmark = pytest.mark.end_to_end


def _scale_weights(path: Path, factor: float) -> None:
    model = onnx.load(str(path))
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "second")
    values = onnx.numpy_helper.to_array(tensor) * np.float32(factor)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, "second"))
    path.write_bytes(model.SerializeToString())


def test_fp32_answers_may_differ_by_rounding_and_no_more(bundle: Path) -> None:
    path = bundle / "onnx" / "model.onnx"
    _scale_weights(path, 1 + 1e-5)
    reseal(bundle)
    assert verify(bundle).passed
    _scale_weights(path, 1.002)
    reseal(bundle)
    assert "largest difference" in failed(verify(bundle))["probe fp32"]


def test_int8_answers_may_differ_by_kernel_noise_but_not_by_labels(bundle: Path) -> None:
    path = bundle / "onnx" / "model_quantized.onnx"
    _scale_weights(path, 1.02)
    reseal(bundle)
    assert verify(bundle).passed
    _scale_weights(path, -1.0)
    reseal(bundle)
    failures = failed(verify(bundle))
    assert set(failures) == {"probe int8", "int8 against fp32"}
    assert "use onnx/model.onnx on this CPU" in failures["int8 against fp32"]


def test_another_cpu_or_version_is_a_note(bundle: Path) -> None:
    info = read_bundle(bundle)
    machine = info.verified_on.model_dump() | {"isa": ("avx2", "amx_int8")}
    reseal(bundle, verified_on=machine, versions=info.versions | {"onnxruntime": "1.30.0"})
    report = verify(bundle)
    assert report.passed
    assert "amx_int8" in report.notes[0]
    assert "made with onnxruntime 1.30.0" in report.notes[1]


@pytest.mark.parametrize("task", ["toy-sentiment", "toy-similarity"])
def test_scores_are_measured_again(bundle_of: Callable[[str], Path], task: str) -> None:
    report = verify(bundle_of(task), task=task, threads=1)
    assert report.passed, report
    info = read_bundle(bundle_of(task))
    scores = {check.name: check.detail for check in report.checks if check.name.startswith("scores")}
    assert set(scores) == {"scores fp32", "scores int8"}
    for metric, points in info.models["int8"].scores["dev"].items():
        assert f"dev {metric} {points:.2f} (recorded {points:.2f})" in scores["scores int8"]


def test_a_score_that_is_off_by_more_than_half_a_point_fails(bundle: Path) -> None:
    info = read_bundle(bundle)
    models = {precision: model.model_dump() for precision, model in info.models.items()}
    models["int8"]["scores"] = {"dev": {"accuracy": info.models["int8"].scores["dev"]["accuracy"] + 0.6}}
    models["fp32"]["scores"] = {"dev": {"accuracy": info.models["fp32"].scores["dev"]["accuracy"] + 0.4}}
    reseal(bundle, models=models)
    assert "within 0.5 points" in failed(verify(bundle, task="toy-sentiment", threads=1))["scores int8"]
    assert set(failed(verify(bundle, task="toy-sentiment", threads=1))) == {"scores int8"}


def test_scores_that_the_bundle_does_not_record_are_refused(bundle: Path, tmp_path: Path) -> None:
    rows = "text,label\n" + "a good film,positive\na bad film,negative\n" * 8
    (tmp_path / "rows.csv").write_text(rows)
    task = "name: mine\ntext: [text]\nlabel: label\nmetrics: [f1_macro]\nfiles: {train: rows.csv, dev: rows.csv}\n"
    (tmp_path / "mine.yaml").write_text(task)
    with pytest.raises(CompressError, match=r"metrics: expected some of accuracy, of which .* found f1_macro"):
        verify(bundle, task=tmp_path / "mine.yaml")


def test_scores_are_measured_also_when_the_probe_differs(bundle: Path) -> None:
    _scale_weights(bundle / "onnx" / "model.onnx", 1.01)
    reseal(bundle)
    report = verify(bundle, task="toy-sentiment", threads=1)
    assert set(failed(report)) == {"probe fp32"}
    assert [check.name for check in report.checks][-2:] == ["scores fp32", "scores int8"]


def test_a_task_that_is_not_the_bundles_is_the_users_mistake(bundle: Path) -> None:
    for task, expected in (("toy-similarity", "found regression of 2"), ("nope", "no task 'nope'")):
        with pytest.raises(CompressError, match=expected) as caught:
            verify(bundle, task=task)
        assert caught.value.exit_code == 2


def test_the_bundle_may_not_name_a_task_file(bundle: Path, tmp_path: Path) -> None:
    info = read_bundle(bundle)
    reseal(bundle, task=info.task.model_dump() | {"name": str(tmp_path / "evil.yaml")})
    with pytest.raises(
        CompressError, match=r"is not built in; give its file with --task, or its data with --train and --dev"
    ):
        verify(bundle, data_dir=tmp_path)


def _own_files(folder: Path) -> tuple[Path, Path]:
    """Write the embedded task's examples as a user's files, with columns of other names; dev is in a folder of its own."""
    spec = BUILTIN_TASKS["toy-sentiment"]
    splits = {"train": load_training(spec, None, None).train, "held/dev": load_reported(spec, None, None).splits["dev"]}
    (folder / "held").mkdir()
    for name, split in splits.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = zip(split.texts[0], split.labels.tolist(), strict=True)
            csv.writer(file).writerows(
                [("review", "mood"), *((text, (spec.labels or ())[label]) for text, label in rows)]
            )
    return folder / "train.csv", folder / "held" / "dev.csv"


def test_scores_on_files_of_ones_own_are_measured_again(bundle: Path, tmp_path: Path) -> None:
    """By relative paths, as the run had them."""
    _own_files(tmp_path)
    info = read_bundle(bundle)
    train, dev = tmp_path / "train.csv", tmp_path / "held" / "dev.csv"
    spec, folder = own_task(OwnFiles(train, dev, text="review", label="mood", max_length=info.max_length))
    data = info.task.data.model_dump() | {"fingerprint": fingerprint(spec, folder, None)}
    reseal(bundle, task=info.task.model_dump() | {"name": "mine", "data": data}, text_columns=("review",))
    files = ["--train", "train.csv", "--dev", "held/dev.csv", "--text", "review", "--label", "mood"]
    command = [sys.executable, "-m", "compress", "verify", str(bundle), "--threads", "1", *files]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    points = info.models["int8"].scores["dev"]["accuracy"]
    assert f"scores int8: dev accuracy {points:.2f} (recorded {points:.2f})" in done.stdout
    assert "the data, or how the task reads them" not in done.stdout


def test_files_of_ones_own_are_the_bundles(bundle: Path, tmp_path: Path) -> None:
    train, dev = _own_files(tmp_path)
    own = OwnFiles(train, dev, text="review", label="mood")
    with pytest.raises(CompressError, match="--train names data, and --task toy-sentiment has data of its own"):
        verify(bundle, task="toy-sentiment", own=own)
    with pytest.raises(CompressError, match=r"expected classification of 1 text column.*found multilabel of 1"):
        verify(bundle, own=replace(own, kind="multilabel"))
    dev.write_text(dev.read_text().replace("negative", "positive"))
    train.write_text(train.read_text().replace("negative", "angry"))
    with pytest.raises(CompressError, match=r"angry"):
        verify(bundle, own=own)


def test_data_are_the_recorded_ones_with_the_tuning_file_of_the_run_alone(bundle: Path, tmp_path: Path) -> None:
    train, dev = _own_files(tmp_path)
    tuning = tmp_path / "tuning.csv"
    tuning.write_text("review,mood\na fine film,positive\na poor film,negative\n")
    info, own = read_bundle(bundle), OwnFiles(train, dev, text="review", label="mood")
    spec, folder = own_task(replace(own, max_length=info.max_length))
    data = info.task.data.model_dump() | {"fingerprint": fingerprint(spec, folder, None, tuning)}
    reseal(bundle, task=info.task.model_dump() | {"data": data})
    notes = [" ".join(verify(bundle, own=own, tuning=path).notes) for path in (None, tuning)]
    assert ["the data, or how the task reads them" in note for note in notes] == [True, False]
    with pytest.raises(CompressError, match="--tuning: expected --task, --data-dir, or --train and --dev with it"):
        verify(bundle, tuning=tuning)
