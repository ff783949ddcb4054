"""Checks for bundles of every kind of task: Triton's config matches the graph, `bench` times it, damage is detected."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import onnxruntime
from bundle_making import failed, reseal
from google.protobuf import text_format
from recipe_runs import compress
from triton_schema import model_config

from compress.bundle import read_bundle, verify, write_triton_model
from compress.runtime.folder import UNPADDED

INT64, FP32 = 9, 11
FP32_GRAPH = "onnx/model.onnx"


def check_shipped(bundle: Path, folder: Path, outputs: list[str], labels: list[str]) -> None:
    """Run all checks; files are written to `folder`, as `models` and `damaged`."""
    _check_served(bundle, folder / "models", outputs, labels)
    _check_timed(bundle)
    _check_damage(bundle, folder / "damaged")


def _check_served(bundle: Path, repository: Path, outputs: list[str], labels: list[str]) -> None:
    """Check the config for Triton: inputs and `outputs` are the graph's without the batch axis, and `labels` are in their own
    file."""
    place = write_triton_model(bundle, repository)
    config = text_format.Parse((place / "config.pbtxt").read_text(), model_config())
    session = onnxruntime.InferenceSession(place / "1" / "model.onnx")
    assert [one.name for one in config.output] == outputs
    for side, values, kind in (
        (config.input, session.get_inputs(), INT64),
        (config.output, session.get_outputs(), FP32),
    ):
        shapes = {value.name: [-1 if isinstance(n, str) else n for n in value.shape[1:]] for value in values}
        assert {one.name: [*one.dims] for one in side}.items() <= shapes.items()
        assert {one.data_type for one in side} == {kind}
    assert [one.name for one in config.input] == [value.name for value in session.get_inputs()]
    named = (place / "labels.txt").read_text().splitlines() if (place / "labels.txt").exists() else []
    assert named == labels and {bool(one.label_filename) for one in config.output} == {bool(labels)}


def _check_timed(bundle: Path) -> None:
    """Check that `compress bench` times each padded graph of the bundle on a batch of several texts."""
    done = compress("bench", bundle, "--shape", "2x8", "--runs", "2", "--threads", "1", "--json", cwd=bundle.parent)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["latency"]
    padded = [path for path in (bundle / "onnx").glob("*.onnx") if not path.name.endswith(UNPADDED)]
    assert padded and {f"{bundle.name}/{path.stem}" for path in padded} <= {entry["name"] for entry in measured}
    assert all(row["p50"] > 0 and (row["batch"], row["length"]) == (2, 8) for e in measured for row in e["latency"])


def _check_damage(bundle: Path, copy: Path) -> None:
    """Check that `verify` detects a flipped bit in any file that affects predictions, and recorded probe logits that are wrong
    but sealed again."""
    shutil.copytree(bundle, copy)
    for name in ("config.json", "tokenizer.json", FP32_GRAPH, "onnx/model_quantized.onnx"):
        whole = (copy / name).read_bytes()
        changed = bytearray(whole)
        changed[len(changed) // 2] ^= 1
        (copy / name).write_bytes(changed)
        assert name in " ".join(failed(verify(copy)).values())
        (copy / name).write_bytes(whole)
    probe = read_bundle(copy).probe
    reseal(copy, probe={"texts": probe.texts, "logits": {**probe.logits, "fp32": moved(probe.logits["fp32"])}})
    assert "probe fp32" in failed(verify(copy))


def moved(rows: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """Rotate the rows by one, so that each text gets another's answer."""
    return [*rows[1:], rows[0]]
