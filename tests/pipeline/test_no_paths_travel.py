"""Nothing that leaves the machine contains the paths of its files: result, report, bundle, checkpoint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

import compress
from compress.bundle import read_bundle, ship, take_checkpoint
from compress.files.paths import display_path, with_display_paths
from compress.pipeline import Request, plan_all, run_all
from compress.pipeline.ablation.run import command_line as ablation_line
from compress.pipeline.request import display_override
from compress.report import write_report
from compress.results import read_result

pytestmark = pytest.mark.end_to_end

SECRET = "client-of-secret-name"
STUDENT = "name: small\ntitle: small\narchitecture: distilbert\nlayers: 1\n"
STEPS = "max_steps: 1, batch_size: 4"
RECIPE = f"""
name: telling
title: every field that may be a path
paper: arXiv:1503.02531
student: small
stages:
  - finetune: {{{STEPS}}}
  - masked_lm: {{{STEPS}, max_length: 16}}
  - augment: {{copies: 1, glove: {{folder}}/vectors.txt}}
  - distill: {{{STEPS}, losses: [{{name: soft_target}}]}}
  - export: {{}}
  - quantize: {{method: static, calibration_text: {{folder}}/texts.txt}}
"""
VECTORS = "film 1 0 0\ngood 0 1 0\nbad 0 1 1\n"
TEXTS = "".join(f"a good film {number}\n" for number in range(40))


@pytest.fixture
def secret(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    folder = tmp_path / SECRET
    folder.mkdir()
    encoder_world(folder, tiny_checkpoint("bert"), toy_tokenizer, text="the film is good .\n\nnot bad .\n\n" * 60)
    (folder / "vectors.txt").write_text(VECTORS)
    (folder / "texts.txt").write_text(TEXTS)
    (folder / "small.yaml").write_text(STUDENT)
    (folder / "telling.yaml").write_text(RECIPE.replace("{folder}", str(folder)))
    return folder


def request_of(secret: Path) -> Request:
    setting = f"quantize.calibration_text={secret / 'texts.txt'}"
    return Request(
        recipes=(str(secret / "telling.yaml"),),
        tasks=(str(secret / "task.yaml"),),
        teacher=str(secret / "teacher"),
        student=str(secret / "small.yaml"),
        corpus=(str(secret / "text.txt"),),
        root=secret / "runs",
        overrides=(setting,),
        threads=1,
        bench=None,
    )


def test_no_file_that_leaves_the_machine_names_a_folder_of_it(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (result,) = run_all(request_of(secret))
    run, out = secret / "runs" / result.run, tmp_path / "out"
    write_report([result], out / "report", folders=[run])
    bundle = ship(run, out / "bundle", store=secret / "runs" / ".store", with_checkpoint=True)
    take_checkpoint(run, out / "checkpoint", store=secret / "runs" / ".store")
    private = [SECRET, str(Path(compress.__file__).parents[1]), str(tmp_path)]
    files = [path for folder in (run, out) for path in folder.rglob("*") if path.is_file()]
    assert {"result.json", "report.html", "bundle.json", "README.md", "model_quantized.onnx"} < {f.name for f in files}
    leaks = [(path, word) for path in files for word in private if word.encode() in path.read_bytes()]
    assert not leaks

    stages = {stage.kind: stage.info for stage in read_result(run).stages}
    assert stages["augment augmented"]["spec"]["glove"] == "vectors.txt"
    assert stages["augment augmented"]["hashes"]["glove"] == hashlib.sha256(VECTORS.encode()).hexdigest()
    assert stages["quantize student-int8"]["spec"]["calibration_text"] == "texts.txt"
    assert stages["quantize student-int8"]["hashes"] == {"calibration_text": hashlib.sha256(TEXTS.encode()).hexdigest()}
    assert read_bundle(bundle).recipe["stages"][-1]["quantize"]["calibration_text"] == "texts.txt"
    assert result.command.split()[:6] == ["compress", "run", "telling.yaml", "--task", "task.yaml", "--teacher"]
    assert "--set quantize.calibration_text=texts.txt" in result.command


def test_a_run_of_before_is_shipped_without_its_paths(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's result contains paths; the bundle made from it does not."""
    monkeypatch.setattr("compress.pipeline.results.assemble.with_display_paths", lambda document: document)
    (result,) = run_all(request_of(secret))
    run = secret / "runs" / result.run
    assert SECRET in (run / "result.json").read_text()
    bundle = ship(run, tmp_path / "bundle", store=secret / "runs" / ".store")
    assert not [path for path in bundle.rglob("*.*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_the_commands_name_files_from_where_they_run(secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(secret.parent)
    request = request_of(secret)
    assert SECRET not in ablation_line("full", request, ["a"]).replace(f"{SECRET}/", "")
    assert f"--teacher {SECRET}/teacher" in ablation_line("full", request, ["a"])
    monkeypatch.chdir(secret)
    assert "--corpus text.txt" in ablation_line("full", request, ["a"])
    assert len(plan_all(request)) == 1


def test_how_a_path_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    same = ("sst2", "data/a.txt", "./a.txt", "hub:owner/name@" + "0" * 40, "*/MatMul", "a .. b", "1e-4", "")
    assert [display_path(word) for word in same] == list(same)
    assert display_path(f"{tmp_path}/data/a.txt") == "data/a.txt"
    assert display_path("/somebody/else/a.txt") == "a.txt"
    assert display_path("../else/a.txt") == "a.txt"
    assert display_path("data/../../else/a.txt") == "a.txt"
    assert display_path("~/data/a.txt") == "home/data/a.txt"
    assert display_path("~no-such-user/data/a.txt") == "a.txt"
    assert display_path("hub:/somebody/else/set:text") == "hub:set:text"
    nested = {"a": ["/x/y", {"b": ("/x/z", 3, None, True)}], "/k": 1.5}
    assert with_display_paths(nested) == {"a": ["y", {"b": ["z", 3, None, True]}], "/k": 1.5}
    assert display_override("augment.glove=/somebody/a.txt") == "augment.glove=a.txt"
    assert display_override("finetune.learning_rate=1.0e-4") == "finetune.learning_rate=1.0e-4"
    assert json.loads(display_override('x=["/somebody/a", 2]').removeprefix("x=")) == ["a", 2]


def test_words_that_only_look_like_paths_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a pattern of matmuls lost its beginning, it would keep all matmuls in fp32."""
    monkeypatch.chdir(tmp_path)
    document = {"stages": [{"quantize": {"exclude": ["/encoder/layer.0/.*"]}}], "title": "a/../b: 3/4"}
    assert with_display_paths(document) == document
    for text in (
        'quantize.exclude=["/encoder/layer.0/.*"]',
        "quantize.exclude[0]=/encoder/.*",
        "title=a/../b",
        'quantize={"exclude": ["/encoder/.*"]}',
    ):
        assert display_override(text) == text
