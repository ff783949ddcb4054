"""What verification detects in a bundle's files and graphs: damage, additions, links, false entries in bundle.json, other labels."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from bundle_making import failed, reseal
from onnx import TensorProto, helper

from compress.bundle import read_bundle, ship, verify
from compress.bundle.document import FileEntry
from compress.bundle.files import is_plain, measure
from compress.errors import CompressError

FILES = (
    "README.md",
    "bundle.json",
    "config.json",
    "onnx/model.onnx",
    "onnx/model_quantized.onnx",
    "tokenizer.json",
    "tokenizer_config.json",
)


@pytest.mark.parametrize("task", ["toy-sentiment", "toy-entailment", "toy-similarity"])
def test_a_fresh_bundle_passes_every_check(bundle_of: Callable[[str], Path], task: str) -> None:
    report = verify(bundle_of(task))
    assert report.passed, report
    names = ["bundle.json", "files", "models", "onnx fp32", "onnx int8", "graphs", "labels", "settings"]
    names += ["probe fp32", "probe int8", "kernels int8", "saturation int8"]
    assert [check.name for check in report.checks] == [*names, "int8 against fp32"]
    assert "largest difference 0 " in report.checks[8].detail, "the same machine gives the same bits"
    assert report.notes == ()
    assert json.loads(report.model_dump_json())["passed"] is True


def test_arguments_are_checked_before_anything_runs(bundle: Path) -> None:
    with pytest.raises(CompressError, match="threads is 0; expected at least 1"):
        verify(bundle, threads=0)
    with pytest.raises(CompressError, match="threads is 1025; expected at most 1024"):
        verify(bundle, threads=1025)
    with pytest.raises(CompressError, match=r"no-such-task\.yaml"):
        verify(bundle, task=Path("no-such-task.yaml"))


@pytest.mark.parametrize(
    "change",
    [
        {"int8": {"file": "../../secret"}},
        {"int8": {"format": "static"}},
        {"int8": {"unpadded": "onnx/none.onnx"}},
        {"int8": {"requires": {"onnxruntime": "1.16", "opset": 20, "ir_version": 9}}},
        {"qdq": {"file": "onnx/model_qdq.onnx", "format": "qdq"}},
    ],
)
def test_graphs_must_be_what_the_files_are(bundle: Path, change: dict[str, Any]) -> None:
    graphs = {name: graph.model_dump() for name, graph in read_bundle(bundle).graphs.items()}
    reseal(bundle, graphs=graphs | {name: graphs["int8"] | fields for name, fields in change.items()})
    failures = failed(verify(bundle))
    assert list(failures) == ["graphs"]
    assert f"graphs.{next(iter(change))}: expected" in failures["graphs"]


@pytest.mark.parametrize("name", FILES)
def test_one_changed_bit_in_any_file_is_found(bundle: Path, name: str) -> None:
    path = bundle / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert name in " ".join(failed(verify(bundle)).values())


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_found(bundle: Path, name: str) -> None:
    os.truncate(bundle / name, (bundle / name).stat().st_size // 2)
    assert name in " ".join(failed(verify(bundle)).values())


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_found(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    if name == "bundle.json":
        with pytest.raises(CompressError, match=r"bundle\.json: expected a bundle's own file, found no such file"):
            verify(bundle)
        (bundle / "result.json").write_text("{}")
        with pytest.raises(CompressError, match=r"is a run; `compress ship .* -o DIR` makes a bundle of it"):
            verify(bundle)
    else:
        assert f"{name}: missing" in failed(verify(bundle))["files"]


def test_an_added_file_is_found_wherever_it_is(bundle: Path) -> None:
    (bundle / "onnx" / "more").mkdir()
    (bundle / "onnx" / "more" / ".hidden").write_text("")
    assert "onnx/more/.hidden" in failed(verify(bundle))["files"]


def test_links_and_pipes_are_found_and_not_opened(bundle: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    (bundle / "config.json").rename(outside)
    (bundle / "config.json").symlink_to(outside)
    assert "config.json: link" in failed(verify(bundle))["files"], "although its content is the one listed"
    (bundle / "config.json").unlink()
    os.mkfifo(bundle / "config.json")
    assert "config.json: special" in failed(verify(bundle))["files"]


def test_a_linked_folder_is_found(bundle: Path, tmp_path: Path) -> None:
    (bundle / "onnx").rename(tmp_path / "outside")
    (bundle / "onnx").symlink_to(tmp_path / "outside", target_is_directory=True)
    assert "onnx: link" in failed(verify(bundle))["files"]


def test_a_linked_bundle_json_is_not_read(bundle: Path, tmp_path: Path) -> None:
    (bundle / "bundle.json").rename(tmp_path / "elsewhere.json")
    (bundle / "bundle.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(CompressError, match=r"found a link, as in the hub's cache; download .* --local-dir"):
        verify(bundle)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Record every path that Python code opens during the test."""
    paths: list[str] = []
    watching = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and watching[0]:
            paths.append(os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes) else "")

    sys.addaudithook(hook)
    yield paths
    watching[0] = False


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "onnx/../../outside.txt", "a\\b", "c:x", "", "."])
def test_names_that_leave_the_bundle_are_refused_and_never_read(bundle: Path, name: str, opened: list[str]) -> None:
    (bundle.parent / "outside.txt").write_text("secret")
    true = FileEntry(bytes=6, sha256=hashlib.sha256(b"secret").hexdigest())
    reseal(bundle, files={**measure(bundle), name: true})
    opened.clear()
    report = verify(bundle)
    assert str(bundle / "bundle.json") in opened
    assert not [path for path in opened if "outside" in path or "hostname" in path]
    assert failed(report)["files"] == f"{name!r}: not a plain name inside the bundle"


def test_plain_names() -> None:
    assert all(map(is_plain, FILES))
    assert not any(map(is_plain, ["..", "a/..", "./a", "a//b", "a/", ".git/config", "a\n", "a b", "~", "-rf"]))


def test_not_a_bundle_at_all(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(CompressError) as caught:
            verify(path)
        assert caught.value.exit_code == 2
    (tmp_path / "bundle.json").write_text("{}")
    assert "not a bundle of schema 1" in failed(verify(tmp_path))["bundle.json"]
    (tmp_path / "bundle.json").write_text("[" * 100_000)
    assert "not a bundle of schema 1" in failed(verify(tmp_path))["bundle.json"]
    with (tmp_path / "bundle.json").open("wb") as file:
        file.truncate(17 << 20)
    assert "at most 16 MiB" in failed(verify(tmp_path))["bundle.json"]


def test_weights_outside_the_file_are_refused_although_the_hashes_agree(bundle: Path) -> None:
    (bundle.parent / "outside.bin").write_bytes(bytes(4 * 48 * 300))
    for location, expected in (
        ("../outside.bin", "is outside"),
        ("model_quantized.onnx", "expected all weights in the file"),
    ):
        path = bundle / "onnx" / "model.onnx"
        model = onnx.load(str(path), load_external_data=False)
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "words")
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        del tensor.external_data[:]
        tensor.external_data.add(key="location", value=location)
        path.write_bytes(model.SerializeToString())
        reseal(bundle)
        report = verify(bundle)
        assert expected in failed(report)["onnx fp32"]
        assert "nothing in it was run" in report.notes[0]


def test_a_graph_that_the_checker_refuses(bundle: Path) -> None:
    path = bundle / "onnx" / "model_quantized.onnx"
    model = onnx.load(str(path))
    model.graph.node.append(helper.make_node("NoSuchOperator", ["logits"], ["more"]))
    path.write_bytes(model.SerializeToString())
    reseal(bundle)
    assert "checker refuses it" in failed(verify(bundle))["onnx int8"]


def test_graphs_that_do_not_parse_are_refused_although_the_hashes_agree(bundle: Path) -> None:
    path = bundle / "onnx" / "model.onnx"
    whole = path.read_bytes()
    for damaged in (whole.replace(b"ReduceSum", b"Reduce\xb2um"), whole[:-3], whole + b"\x07", b""):
        path.write_bytes(damaged)
        reseal(bundle)
        assert "model.onnx" in failed(verify(bundle))["onnx fp32"]


def test_a_graph_that_nobody_measured_is_refused(bundle: Path) -> None:
    """A runtime would find `model_quantized.onnx` by its name."""
    info = read_bundle(bundle)
    reseal(bundle, models={"fp32": info.models["fp32"].model_dump()})
    assert "model_quantized.onnx" in failed(verify(bundle))["models"]


def test_swapped_labels_are_found_in_config_and_in_a_graph(bundle: Path) -> None:
    config = json.loads((bundle / "config.json").read_text())
    swapped = config | {"id2label": {"0": "positive", "1": "negative"}}
    (bundle / "config.json").write_text(json.dumps(swapped))
    reseal(bundle)
    assert "config.json has ['positive', 'negative']" in failed(verify(bundle))["labels"]
    (bundle / "config.json").write_text(json.dumps(config))
    path = bundle / "onnx" / "model.onnx"
    model = onnx.load(str(path))
    next(entry for entry in model.metadata_props if entry.key == "labels").value = '["positive", "negative"]'
    path.write_bytes(model.SerializeToString())
    reseal(bundle)
    assert "onnx/model.onnx has ['positive', 'negative']" in failed(verify(bundle))["labels"]


def test_a_verified_copy_elsewhere_still_passes(bundle: Path, tmp_path: Path) -> None:
    bundle.rename(tmp_path / "moved")
    assert verify(tmp_path / "moved").passed


def test_an_fp32_only_bundle_is_verified_without_int8(run: Any, tmp_path: Path) -> None:
    report = verify(ship(run.folder, tmp_path / "out", store=run.store, model="teacher"))
    assert report.passed
    assert not any("int8" in check.name for check in report.checks)
