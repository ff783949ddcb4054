"""TinyBERT with all stages, through the command line: a checkpoint as the teacher, plain text, a narrower student."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from recipe_runs import TASK, compress
from tokenizers import Tokenizer

from compress.results import Result

pytestmark = pytest.mark.end_to_end

STUDENT = """\
name: narrow
title: narrow
architecture: bert
layers: 1
hidden: 16
heads: 2
intermediate: 24
init: {init}
copy_layers: [1]
"""
BRIEF = ("finetune.max_steps=3", "masked_lm.max_steps=2", "general.max_steps=2")
BRIEF += ("intermediate.max_steps=3", "prediction.max_steps=3", "augment.copies=1")


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> Path:
    folder = tmp_path_factory.mktemp("tinybert")
    shutil.copytree(tiny_checkpoint("bert"), folder / "teacher")
    toy_tokenizer.save(str(folder / "teacher" / "tokenizer.json"))
    config = json.loads((folder / "teacher" / "config.json").read_text())
    (folder / "teacher" / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("the film is not bad .\n\nthe good film is good .\n" * 200)
    for init in ("random", "project"):
        (folder / init).mkdir()
        (folder / init / "narrow.yaml").write_text(STUDENT.format(init=init))
    return folder


def arguments(init: str, *more: str) -> list[str]:
    words = ["run", "tinybert-small", "--task", "task.yaml", "--teacher", "teacher", "--student", f"{init}/narrow.yaml"]
    words += ["--corpus", "text.txt", "--no-bench", "--threads", "1", "--precision", "fp32"]
    for override in (*BRIEF, *more):
        words += ["--set", override]
    return words


@pytest.mark.slow
@pytest.mark.parametrize("init", ["random", "project"])
def test_all_stages_run_and_the_result_tells_of_each(world: Path, init: str) -> None:
    done = compress(*arguments(init), "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    result = Result.model_validate(json.loads(done.stdout)[0])
    stages = {stage.kind: stage.info for stage in result.stages}
    assert list(stages) == [
        "finetune teacher",
        "export teacher-fp32",
        "tokenize text-8000000",
        "masked_lm masked-lm",
        "general encoder",
        "augment augmented",
        "distill intermediate",
        "distill prediction",
        "export student-fp32",
        "quantize student-int8",
    ]
    assert stages["distill intermediate"]["tuning_score"] is None  # no head is trained, so there is no score
    assert stages["distill prediction"]["tuning_score"] is not None
    assert stages["distill intermediate"]["examples"] > result.task.data.rows["train"]
    assert result.final.parameters < result.models[0].parameters
    log = (world / "runs" / result.run / "log.jsonl").read_text().splitlines()
    assert {json.loads(line)["model"] for line in log} == {
        "teacher",
        "masked-lm",
        "encoder",
        "intermediate",
        "prediction",
    }
    checkpoint = json.loads((world / "runs" / result.run / "models.json").read_text())["student-fp32"]["checkpoint"]
    student = world / "runs" / ".store" / checkpoint
    assert _saved_shapes(student) == _shapes_of_transformers(student)  # without the weights that only distillation used


def _saved_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    from safetensors.numpy import load_file

    return {name: tensor.shape for name, tensor in load_file(folder / "model.safetensors").items()}


def _shapes_of_transformers(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return the weight shapes of a new classifier with the checkpoint's config."""
    from transformers import BertConfig, BertForSequenceClassification

    fresh = BertForSequenceClassification(BertConfig.from_pretrained(folder))
    return {name: tuple(tensor.shape) for name, tensor in fresh.state_dict().items()}


def test_the_plan_prints_the_layer_map_and_what_is_left_out(world: Path) -> None:
    words = [word for word in arguments("random") if word not in ("--no-bench", "1", "--threads")]
    words[0] = "plan"
    shown = compress(*words, cwd=world)
    assert shown.returncode == 0, shown.stderr
    assert "layers 1<-2" in shown.stdout
    without = words.index("--corpus")
    shown = compress(*words[:without], *words[without + 2 :], cwd=world)
    assert "general distillation is left out: no plain text was given; add it with --corpus PATH" in shown.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--corpus", "nothing.txt"), "nothing.txt"),
        (("--set", "intermediate.layer_map=middle"), "layer_map"),
        (("--set", "distill.epochs=1"), "say intermediate or prediction"),
        (("--set", "intermediate.layer_map=[[1, 3]]"), "outside a student of 1 layers and a teacher of 2"),
    ],
)
def test_wrong_input_is_told_in_a_line_and_nothing_is_written(
    world: Path, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    done = compress(*arguments("random"), *more, "--out", tmp_path / "runs", cwd=world)
    assert done.returncode == 2, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
