"""Valid arguments of the command line, their names in the table, and what is refused before anything runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compress.bench.candidates import find_candidates
from compress.errors import CompressError

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def world(tiny_onnx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two bundles with the same name, both with an int8 graph, and two files with the same name."""
    for place in ("a/sst2/onnx", "b/sst2/onnx"):
        (tmp_path / place).mkdir(parents=True)
        for name in ("model.onnx", "model_quantized.onnx"):
            shutil.copy(tiny_onnx("bert"), tmp_path / place / name)
    for place in ("x/plain", "y/plain", "x/fast"):
        (tmp_path / place).mkdir(parents=True)
        shutil.copy(tiny_onnx("bert"), tmp_path / place / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*words: object) -> list[str]:
    return [candidate.name for candidate in find_candidates([str(word) for word in words])]


def test_a_bundle_gives_all_its_graphs(world: Path) -> None:
    shutil.copy(world / "x/plain/model.onnx", world / "b/sst2/onnx/model_qdq.onnx")
    assert names("b/sst2") == ["sst2/model", "sst2/model_qdq", "sst2/model_quantized"]
    candidates = find_candidates(["a/sst2"])
    assert [(one.name, one.path, one.runtime) for one in candidates] == [
        ("sst2/model", Path("a/sst2/onnx/model.onnx"), "onnx"),
        ("sst2/model_quantized", Path("a/sst2/onnx/model_quantized.onnx"), "onnx"),
    ]


def test_what_would_be_called_alike_is_told_apart(world: Path) -> None:
    assert names("a/sst2", world / "b" / "sst2", "x/fast/model.onnx") == [
        "a/sst2/model", "a/sst2/model_quantized", "b/sst2/model", "b/sst2/model_quantized", "fast/model.onnx",
    ]  # fmt: skip
    assert names("x/plain/model.onnx", "onnx:y/plain/model.onnx") == ["x/plain/model.onnx", "y/plain/model.onnx"]
    assert names("x/plain/model.onnx", "./x/fast/model.onnx") == ["plain/model.onnx", "fast/model.onnx"]


def test_the_working_folder_has_a_name_and_a_colon_may_be_in_a_path(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy("x/fast/model.onnx", "x/fast/torch:1.onnx")
    monkeypatch.chdir("x/fast")
    assert names("torch:1.onnx") == ["fast/torch:1.onnx"]
    monkeypatch.chdir(world / "a" / "sst2")
    assert names(".") == ["sst2/model", "sst2/model_quantized"]


def test_two_links_to_different_files_keep_their_names(world: Path) -> None:
    (world / "one.onnx").symlink_to(world / "x/plain/model.onnx")
    (world / "two.onnx").symlink_to(world / "y/plain/model.onnx")
    assert [name.rpartition("/")[2] for name in names("one.onnx", "two.onnx")] == ["one.onnx", "two.onnx"]


def test_a_checkpoint_is_run_by_torch(tiny_checkpoint) -> None:
    folder = tiny_checkpoint("bert")
    (candidate,) = find_candidates([f"torch:{folder}"])
    assert (candidate.name, candidate.path, candidate.runtime) == (f"torch:{folder.name}", folder, "torch")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected bundles, .onnx files or checkpoints; found none"),
        (["no/such.onnx"], r"^no/such\.onnx: no such bundle or file$"),
        (["x"], r"^x: expected a bundle with onnx/model\.onnx .* \(a checkpoint is given as torch:FOLDER\)$"),
        (["openvino:x/plain/model.onnx"], r"^openvino:x/plain/model\.onnx: no runtime 'openvino'; did you mean `"),
        (["tensorrt:x/plain/model.onnx"], "no runtime 'tensorrt'"),
        (["onnx:"], r"^'onnx:': expected a path, found nothing$"),
        (["torch:x"], r"^x/config\.json: no such file; expected a transformers checkpoint folder$"),
        (["x/plain/model.onnx", "onnx:./x/plain/model.onnx"], r"^x/plain/model\.onnx: given twice"),
        (["a/sst2", "a/sst2/onnx/model.onnx"], r"^a/sst2/onnx/model\.onnx: given twice"),
        (["text.onnx"], r"^text\.onnx: not an ONNX file, or a truncated one"),
    ],
)
def test_what_cannot_be_measured_is_one_line(world: Path, words: list[str], message: str) -> None:
    Path("text.onnx").write_text("no model", encoding="utf-8")
    with pytest.raises(CompressError, match=message) as error:
        find_candidates(words)
    assert "\n" not in str(error.value)


def test_a_runtime_without_its_package_is_one_line(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the package is installed: the search for it is patched to find nothing."""
    monkeypatch.setattr("compress.bench.candidates.find_spec", lambda name: None)
    with pytest.raises(
        CompressError,
        match=r"^openvino-f32:a/sst2: openvino-f32 needs the package openvino, which is not installed$",
    ) as error:
        find_candidates(["openvino-f32:a/sst2"])
    assert error.value.exit_code == 2
