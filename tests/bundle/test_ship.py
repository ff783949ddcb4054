"""From a finished run to a bundle: its contents, what is refused, and what remains after a failure."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_making import Run, failed, make_run

from compress.bundle import read_bundle, ship, verify
from compress.errors import CompressError
from compress.runtime import Classifier
from compress.store import Store

TASKS = ("toy-sentiment", "toy-entailment", "toy-similarity")


def _names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _fails(run: Run, out: Path, *expected: str, **options: object) -> str:
    before = sorted(out.parent.iterdir()) if out.parent.is_dir() else None
    with pytest.raises(CompressError) as caught:
        ship(run.folder, out, store=run.store, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    assert all(part in message for part in expected), message
    assert (sorted(out.parent.iterdir()) if out.parent.is_dir() else None) == before
    return message


def test_the_forms_asked_for_go_in(run: Run, tmp_path: Path) -> None:
    out = ship(run.folder, tmp_path / "int8", store=run.store, precisions=["int8"])
    assert [name for name in _names(out) if name.startswith("onnx/")] == ["onnx/model_quantized.onnx"]
    info = read_bundle(out)
    assert (list(info.models), list(info.probe.logits), info.fastest) == (["int8"], ["int8"], "int8")
    assert verify(out).passed
    assert "model.onnx" not in (out / "README.md").read_text()
    out = ship(run.folder, tmp_path / "fp32", store=run.store, precisions=["fp32"])
    assert [name for name in _names(out) if name.startswith("onnx/")] == ["onnx/model.onnx"]
    assert verify(out).passed
    assert "int8" not in (out / "README.md").read_text().split("## Measured")[0]


def test_places_may_begin_with_the_home_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ship(run.folder, "~/mine", store=run.store) == (tmp_path / "mine").resolve()
    assert verify("~/mine", threads=1).passed


def test_a_form_that_the_run_did_not_make_is_refused(run: Run, tmp_path: Path) -> None:
    _fails(
        run,
        tmp_path / "out",
        "student has fp32, int8",
        "found 'qdq'; `--set quantize.portable=true`",
        precisions=["qdq"],
    )
    _fails(run, tmp_path / "out", "found 'avx2'; `--set quantize.avx2=true`", precisions=["avx2"])
    _fails(run, tmp_path / "out", "found 'bf16'", precisions=["fp32", "bf16"])


def test_bundle_json_says_which_file_is_which(bundle: Path) -> None:
    graphs = read_bundle(bundle).graphs
    assert {name: (graph.file, graph.format, graph.unpadded) for name, graph in graphs.items()} == {
        "fp32": ("onnx/model.onnx", "fp32", None),
        "int8": ("onnx/model_quantized.onnx", "dynamic", None),
    }
    assert {graph.requires.model_dump_json() for graph in graphs.values()} == {
        '{"onnxruntime":"1.17","opset":20,"ir_version":9}'
    }


def test_holds_the_files_that_consumers_look_for(bundle: Path) -> None:
    assert _names(bundle) == [
        "README.md",
        "bundle.json",
        "config.json",
        "onnx/model.onnx",
        "onnx/model_quantized.onnx",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_bundle_json_describes_the_run(run: Run, bundle: Path) -> None:
    info = read_bundle(bundle)
    assert (info.model, info.labels, info.text_columns) == ("student", ("negative", "positive"), ("sentence",))
    assert info.max_length == run.task.max_length
    assert (info.licence, info.base_model) == ("Apache-2.0", "someone/teacher")
    assert info.models["int8"].precision == "int8"
    assert info.baseline.name == "teacher"
    assert len(info.probe.texts) == len(info.probe.logits["int8"]) == len(info.probe.logits["fp32"]) == 16
    assert set(info.files) == {name for name in _names(bundle) if name != "bundle.json"}
    assert info.files["onnx/model.onnx"].bytes == (bundle / "onnx" / "model.onnx").stat().st_size


def test_graphs_are_the_stores_byte_for_byte(run: Run, bundle: Path) -> None:
    assert (bundle / "onnx" / "model.onnx").read_bytes() == (run.store / ("e" * 32) / "model.onnx").read_bytes()


def test_config_names_the_labels_and_no_path_of_this_machine(bundle: Path) -> None:
    config = json.loads((bundle / "config.json").read_text())
    assert config["id2label"] == {"0": "negative", "1": "positive"}
    assert config["label2id"] == {"negative": 0, "positive": 1}
    assert "_name_or_path" not in config
    tokenizer = json.loads((bundle / "tokenizer_config.json").read_text())
    assert tokenizer["tokenizer_class"] == "BertTokenizer", "transformers 4 does not know TokenizersBackend"
    assert tokenizer["model_input_names"] == ["input_ids", "attention_mask"], "a DistilBERT reads no segments"
    assert tokenizer["model_max_length"] == 32


def test_a_regression_bundle_has_one_score(bundle_of: Callable[[str], Path]) -> None:
    folder = bundle_of("toy-similarity")
    config = json.loads((folder / "config.json").read_text())
    assert (config["id2label"], config["problem_type"]) == ({"0": "score"}, "regression")
    assert read_bundle(folder).labels == ("score",)


def test_with_checkpoint_adds_the_weights(run: Run, tmp_path: Path) -> None:
    out = ship(run.folder, tmp_path / "out", store=run.store, with_checkpoint=True)
    assert "model.safetensors" in read_bundle(out).files
    assert (out / "model.safetensors").read_bytes() == b"weights"


def test_another_model_of_the_run_by_name(run: Run, tmp_path: Path) -> None:
    out = ship(run.folder, tmp_path / "out", store=run.store, model="teacher")
    assert read_bundle(out).model == "teacher"
    assert not (out / "onnx" / "model_quantized.onnx").exists()
    _fails(run, tmp_path / "no", "no model `techer`", "did you mean `teacher`", model="techer")


def test_folders_are_as_readable_as_the_users_others(run: Run, tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        out = ship(run.folder, tmp_path / "out", store=run.store)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o755


def test_an_unfinished_run_is_refused(run: Run, tmp_path: Path) -> None:
    for missing in ("result.json", "models.json"):
        copy = tmp_path / f"without-{missing}"
        shutil.copytree(run.folder, copy)
        (copy / missing).unlink()
        _fails(Run(copy, run.store, run.task, run.checkpoint), tmp_path / "out", "not finished", missing)
    _fails(Run(tmp_path / "none", run.store, run.task, run.checkpoint), tmp_path / "out", "found nothing")


def test_artefacts_that_are_gone_or_changed_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "made")
    graph = run.store / ("e" * 32) / "model.onnx"
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 1
    graph.write_bytes(data)
    _fails(run, tmp_path / "out", "model.onnx was altered", "compress run")
    shutil.rmtree(graph.parent)
    _fails(run, tmp_path / "out", "is gone", "compress run")
    shutil.rmtree(run.store)
    _fails(run, tmp_path / "out", f"{run.store}: no such folder", "compress run")


def test_paths_that_leave_the_store_are_refused(run: Run, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run.folder, tmp_path / "run"))
    entries = json.loads((copy / "models.json").read_text())
    for path in ("../elsewhere/model.onnx", "/etc/passwd", ""):
        entries["student-fp32"]["onnx"] = path
        (copy / "models.json").write_text(json.dumps(entries))
        _fails(Run(copy, run.store, run.task, run.checkpoint), tmp_path / "out", "inside the store")


def test_labels_that_contradict_the_task_are_refused(run: Run, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for key in ("e" * 32, "f" * 32):
        shutil.copytree(run.store / key, store.path(key))

    def swapped(out: Path, work: Path) -> dict[str, object]:
        shutil.copytree(run.checkpoint, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json"))
        config = json.loads((out / "config.json").read_text())
        config["id2label"] = {"0": "positive", "1": "negative"}
        (out / "config.json").write_text(json.dumps(config))
        return {}

    store.build("c" * 32, swapped, describe={})
    other = Run(run.folder, store.root, run.task, run.checkpoint)
    _fails(other, tmp_path / "out", "id2label", "['positive', 'negative']")


def test_a_folder_with_anything_in_it_is_left_alone(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    _fails(run, out, "--force")
    _fails(run, out, "not replaced", force=True)
    assert (out / "thesis.txt").read_text() == "years of work"


def test_force_replaces_a_bundle_but_none_with_foreign_files(run: Run, bundle: Path) -> None:
    created = read_bundle(bundle).created
    _fails(run, bundle, "--force")
    (bundle / "notes.txt").write_text("mine")
    _fails(run, bundle, "notes.txt", "move it away", force=True)
    (bundle / "notes.txt").unlink()
    (bundle / "README.md").write_text("an edited card")
    ship(run.folder, bundle, store=run.store, model="teacher", force=True)
    assert read_bundle(bundle).model == "teacher"
    assert read_bundle(bundle).created >= created
    assert [path.name for path in bundle.parent.iterdir()] == [bundle.name], (
        "neither the old one nor a half one is left"
    )


def test_an_empty_folder_is_used_and_a_link_is_not_followed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (ship(run.folder, tmp_path / "empty", store=run.store) / "bundle.json").is_file()
    (tmp_path / "link").symlink_to(tmp_path / "empty", target_is_directory=True)
    _fails(run, tmp_path / "link", "found a link", force=True)


def test_a_place_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    _fails(run, tmp_path / "file", "found a file")
    _fails(run, tmp_path / "file" / "out", "cannot be written")


def test_a_full_disk_leaves_nothing(run: Run, tmp_path: Path) -> None:
    """The limit on file size makes the system refuse a write midway."""
    script = (
        "import resource, sys; from pathlib import Path; from compress.bundle import ship\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        "try: ship(Path(sys.argv[1]), Path(sys.argv[2]), store=Path(sys.argv[3]))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    out = tmp_path / "new" / "parents" / "out"
    done = subprocess.run(
        [sys.executable, "-c", script, run.folder, out, run.store], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("CompressError"), done.stdout + done.stderr
    assert "cannot be written (File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_run_but_near_to_one_is_named(tmp_path: Path) -> None:
    for name in ("bundle", "runs/one"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bundle/bundle.json").write_text("{}")
    (tmp_path / "runs/one/result.json").write_text("{}")
    with pytest.raises(CompressError, match="is a bundle; expected the run directory"):
        ship(tmp_path / "bundle", tmp_path / "out", store=tmp_path)
    with pytest.raises(CompressError, match=r"is a folder of runs.*runs/one"):
        ship(tmp_path / "runs", tmp_path / "out", store=tmp_path)


LEFT = """\
name: ends
text: [text]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 32
files: {train: ends.jsonl, dev: ends.jsonl}
"""


def test_a_teacher_that_cuts_texts_on_the_left_makes_such_a_bundle(tmp_path: Path) -> None:
    """The texts differ only in what is kept of them."""
    run = make_run(tmp_path / "made", truncation_side="left")
    folder = ship(run.folder, tmp_path / "out", store=run.store)
    assert json.loads((folder / "tokenizer_config.json").read_text())["truncation_side"] == "left"
    assert 'enable_truncation(32, direction="left")' in (folder / "README.md").read_text(encoding="utf-8")
    ends = [" ".join([word] * 40) for word in ("good", "bad", "dull", "flat", "warm", "very", "dog", "film")]
    texts = [f"{'the ' * 40}{end}" for end in ends]
    answers = Classifier(folder, precision="fp32", threads=1).predict(texts)
    assert answers == Classifier(folder, precision="fp32", threads=1).predict(ends)
    assert len({answer.label for answer in answers}) == 2
    rows = [{"text": text, "label": answer.label} for text, answer in zip(texts, answers, strict=True)]
    (tmp_path / "ends.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "ends.yaml").write_text(LEFT)
    assert "dev accuracy 100.00" in failed(verify(folder, task=str(tmp_path / "ends.yaml")))["scores fp32"]
