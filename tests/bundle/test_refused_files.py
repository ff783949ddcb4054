"""What a bundle may contain, and which of its files are run: plain files with known names and the listed hashes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from bundle_making import failed, reseal
from onnx import helper

from compress.bundle import read_bundle, verify
from compress.bundle.document import write_bundle
from compress.errors import CheckFailed, CompressError
from compress.graphs.shared_weights import share_weights
from compress.runtime import Classifier, file_hashes, load

PADDED = ["a", "a text of more words than the other has"]


@pytest.fixture
def unpadded_bundle(bundle: Path) -> Path:
    """Add an unpadded form of both graphs: in this toy the same graph, with its weights in the other file."""
    graphs = {name: graph.model_dump() for name, graph in read_bundle(bundle).graphs.items()}
    for graph in graphs.values():
        path = bundle / graph["file"]
        model = onnx.load(str(path))
        share_weights(model, path)
        graph["unpadded"] = f"onnx/{path.stem}_unpadded.onnx"
        (bundle / graph["unpadded"]).write_bytes(model.SerializeToString())
    reseal(bundle, graphs=graphs)
    return bundle


def test_the_bundle_with_unpadded_forms_is_sound(unpadded_bundle: Path) -> None:
    assert verify(unpadded_bundle).passed, verify(unpadded_bundle)


def _with_an_empty_input(path: Path, kind: str) -> None:
    model = onnx.load(str(path))
    node = next(node for node in model.graph.node if node.output[0] == "logits")
    node.output[0] = "before"
    model.graph.node.append(helper.make_node(kind, ["before", ""], ["logits"], name="last"))
    onnx.checker.check_model(model, full_check=True)  # the checker accepts it
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("kind", ["Sum", "Max", "Mean"])
def test_an_input_without_a_name_is_refused_before_a_runtime_crashes_at_it(bundle: Path, kind: str) -> None:
    _with_an_empty_input(bundle / "onnx" / "model.onnx", kind)
    reseal(bundle)
    expected = f"{kind} node 'last': input 1 has no name, and it may not be left out: refused"
    failures = failed(verify(bundle))
    assert list(failures) == ["onnx fp32"]
    assert expected in failures["onnx fp32"]
    with pytest.raises(CompressError, match=expected):
        Classifier(bundle, precision="fp32")


def test_metadata_that_is_no_text_is_refused_in_the_unpadded_form_too(unpadded_bundle: Path) -> None:
    path = unpadded_bundle / "onnx" / "model_unpadded.onnx"
    whole = path.read_bytes()
    assert b"quantization" in whole or b"labels" in whole
    path.write_bytes(whole.replace(b"labels", b"lab\xffls"))
    reseal(unpadded_bundle)
    assert "model_unpadded.onnx: not an ONNX file, or a truncated one (text in it is no UTF-8)" in str(
        failed(verify(unpadded_bundle))
    )
    model = Classifier(unpadded_bundle, precision="fp32", threads=1)
    with pytest.warns(UserWarning, match="text in it is no UTF-8"):
        assert len(model.predict(PADDED, tokens=4096)) == 2


@pytest.mark.parametrize("name", ["evil.py", "pytorch_model.bin", "onnx/inside.bin", "model.pkl", "onnx/model.onnx.py"])
def test_a_file_of_no_kind_that_a_bundle_holds_is_refused_although_it_is_listed(bundle: Path, name: str) -> None:
    (bundle / name).write_bytes(b"import os")
    reseal(bundle)
    assert (
        failed(verify(bundle))["files"] == f"{name!r}: no file that a bundle may hold; remove it, and from bundle.json"
    )


def test_what_a_download_from_the_hub_leaves_beside_is_passed_over_and_no_more(bundle: Path) -> None:
    beside = bundle / ".cache" / "huggingface"
    beside.mkdir(parents=True)
    (beside / "config.json.metadata").write_text("0")
    (bundle / ".gitattributes").write_text("*.onnx filter=lfs")
    assert verify(bundle).passed
    (bundle / ".cache" / "evil.py").write_text("import os")
    assert failed(verify(bundle))["files"] == "'.cache/evil.py': not listed in bundle.json"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "bundle.json"])
def test_a_pipe_or_device_in_the_place_of_a_file_is_named_and_not_waited_for(bundle: Path, name: str) -> None:
    path = bundle / name
    makes: dict[str, Callable[[], object]] = {
        "a pipe": lambda: os.mkfifo(path),
        "a device": lambda: path.symlink_to("/dev/zero"),
        "a folder": path.mkdir,
    }
    for kind, make in makes.items():
        path.unlink()
        make()
        with pytest.raises(CompressError, match=f"{name}: expected .*, found {kind}"):
            Classifier(bundle)
        if kind == "a folder":
            path.rmdir()
            path.touch()


@pytest.mark.parametrize("name", ["onnx/model_quantized.onnx", "config.json", "tokenizer.json"])
def test_what_is_run_is_held_against_the_listed_hash(bundle: Path, name: str) -> None:
    path = bundle / name
    if name.endswith(".json"):
        path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
    else:
        path.write_bytes(path.read_bytes().replace(b"Relu", b"Selu"))
    with pytest.raises(CompressError, match=r"altered: its SHA-256 is not the one in bundle\.json; .*--no-verify"):
        Classifier(bundle)
    assert Classifier(bundle, verify=False).predict("a text")


def test_the_bundles_own_document_matches_its_digest_where_text_files_have_other_line_ends(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_as_windows(path: Path, text: str, **_: Any) -> int:
        return path.write_bytes(text.replace("\n", "\r\n").encode())

    monkeypatch.setattr(Path, "write_text", write_as_windows)
    write_bundle(read_bundle(bundle), bundle)
    assert read_bundle(bundle)
    assert Classifier(bundle).predict("a text")


@pytest.mark.parametrize("change", [(r'\n "max_length": \d+', '\n "max_length": 14'), (r'"digest": "', '"digest": "0')])
def test_the_bundles_own_document_is_held_against_its_digest(bundle: Path, change: tuple[str, str]) -> None:
    """Texts are cut at its `max_length`: a digit that is changed there changes answers."""
    path = bundle / "bundle.json"
    altered, count = re.subn(*change, path.read_text())
    assert count == 1
    path.write_text(altered)
    for opened in (Classifier, load):
        with pytest.raises(CheckFailed, match=r"bundle\.json: altered: .* its own digest; .*--no-verify"):
            opened(bundle)
    assert Classifier(bundle, verify=False).predict("a text")


def test_an_unpadded_form_that_was_altered_is_not_run(unpadded_bundle: Path) -> None:
    path = unpadded_bundle / "onnx" / "model_quantized_unpadded.onnx"
    path.write_bytes(path.read_bytes() + b"\x0a\x00")
    model = Classifier(unpadded_bundle, threads=1)
    with pytest.warns(UserWarning, match="altered: its SHA-256"):
        model.predict(PADDED, tokens=4096)


def test_a_listed_file_that_is_gone_is_missed(bundle: Path) -> None:
    """Without its settings a tokenizer would cut texts on the usual side."""
    (bundle / "tokenizer_config.json").unlink()
    with pytest.raises(CompressError, match=r"tokenizer_config\.json: no such file, but bundle\.json lists it"):
        Classifier(bundle)
    assert Classifier(bundle, verify=False).predict("a text")


def test_a_bundle_of_links_is_run(unpadded_bundle: Path) -> None:
    """As Kubernetes mounts it: each entry leads to a folder that is replaced as a whole."""
    real = unpadded_bundle / "..2026"
    real.mkdir()
    for entry in [each for each in unpadded_bundle.iterdir() if each != real]:
        entry.rename(real / entry.name)
        entry.symlink_to(real / entry.name)
    model = Classifier(unpadded_bundle, threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(model.predict(PADDED, tokens=4096)) == len(PADDED)


def test_a_file_that_is_not_listed_is_not_run(bundle: Path) -> None:
    document = json.loads((bundle / "bundle.json").read_text())
    del document["files"]["tokenizer.json"], document["digest"]
    (bundle / "bundle.json").write_text(json.dumps(document))
    with pytest.raises(CompressError, match=r"tokenizer\.json: not listed in bundle\.json"):
        Classifier(bundle)
    document["files"] = []
    (bundle / "bundle.json").write_text(json.dumps(document))
    with pytest.raises(CompressError, match="files: expected an object, found list"):
        Classifier(bundle)


def test_a_file_is_hashed_once_until_it_is_touched(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    names = {path.stat().st_ino: path.name for path in bundle.rglob("*")}
    real = hashlib.file_digest

    def digest(file: Any, name: str) -> object:
        hashed.append(names[os.fstat(file.fileno()).st_ino])
        return real(file, name)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", 1e9)
    Classifier(bundle)
    Classifier(bundle)
    assert hashed.count("model_quantized.onnx") == 2, "too young: a change within a tick of the clock would not be seen"
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", -1.0)
    hashed.clear()
    for _ in range(3):
        Classifier(bundle)
    assert sorted(hashed) == ["config.json", "model_quantized.onnx", "tokenizer.json", "tokenizer_config.json"]
    path = bundle / "onnx" / "model_quantized.onnx"
    status = path.stat()
    shutil.copyfile(bundle / "onnx" / "model.onnx", path)
    os.truncate(path, status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(CompressError, match="altered: its SHA-256"):
        Classifier(bundle)


def test_a_key_with_a_line_break_is_refused_in_one_line(bundle: Path) -> None:
    document = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**document, "line\nline": 1}))
    assert "not a bundle of schema 1: line line: Extra inputs" in failed(verify(bundle))["bundle.json"]
