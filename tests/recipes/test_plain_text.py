"""The recipes that start with plain text, with some text, for a few steps, through the command line; and their presets."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from recipe_runs import TASK, compress
from tokenizers import Tokenizer

from compress.catalog import load_recipe
from compress.results import Result

pytestmark = pytest.mark.end_to_end

RECIPES = ("distilbert-general", "tinybert-general", "albert-pretrain", "roberta-pretrain")
CARD = """\
name: tiny-{0}
title: tiny
licence: Apache-2.0
random: {{architecture: {0}, layers: 2, hidden: 32, heads: 2, intermediate: 64, max_positions: 32, tokenizer: {1}}}
finetune: {{max_steps: 3, batch_size: 8}}
"""
STUDENTS = {
    "distil": "name: distil\ntitle: distil\narchitecture: distilbert\nlayers: 1\n",
    "narrow": "name: narrow\ntitle: narrow\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 2\nintermediate: 24\ninit: random\n",
}
SHORT = "{0}.max_steps=2 {0}.batch_size=8 {0}.max_length=16"
# recipe -> teacher, student, overrides, the stages that read text, the losses of the last of them
RUNS = {
    "distilbert-general": (
        "teacher",
        "distil.yaml",
        "finetune.max_steps=3 masked_lm.max_steps=2 distill.max_steps=3 " + SHORT.format("general"),
        ["tokenize text", "masked_lm masked-lm", "general encoder"],
        {"masked_soft_target", "masked_lm", "hidden_cosine"},
    ),
    "tinybert-general": (
        "teacher",
        "narrow.yaml",
        "finetune.max_steps=3 task.max_steps=3 " + SHORT.format("general"),
        ["tokenize text", "general encoder"],
        {"embedding_mse", "hidden_mse", "attention_mse"},
    ),
    "albert-pretrain": (
        "albert.yaml",
        None,
        SHORT.format("pretrain"),
        ["tokenize text", "pretrain pretrained"],
        {"masked_lm", "sentence_order"},
    ),
    "roberta-pretrain": (
        "roberta.yaml",
        None,
        SHORT.format("pretrain"),
        ["tokenize text", "pretrain pretrained"],
        {"masked_lm"},
    ),
}


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> Path:
    folder = tmp_path_factory.mktemp("plain-text")
    shutil.copytree(tiny_checkpoint("bert"), folder / "teacher")
    toy_tokenizer.save(str(folder / "teacher" / "tokenizer.json"))
    config = json.loads((folder / "teacher" / "config.json").read_text())
    (folder / "teacher" / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("the film is not bad . the good film is good .\n\n" * 200)
    (folder / "albert.yaml").write_text(CARD.format("albert", "./teacher").replace("name: tiny-", "name: "))
    (folder / "roberta.yaml").write_text(CARD.format("roberta", "./words").replace("name: tiny-", "name: "))
    for name, card in STUDENTS.items():
        (folder / f"{name}.yaml").write_text(card)
    done = compress("vocab", "--corpus", "text.txt", "--kind", "bpe", "--size", 300, "-o", "words", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_it_reads_text_and_ends_in_int8(world: Path, recipe: str) -> None:
    teacher, student, overrides, stages, losses = RUNS[recipe]
    words = ["run", recipe, "--task", "task.yaml", "--teacher", teacher, "--corpus", "text.txt"]
    words += ["--student", student] if student else []
    words += [word for override in overrides.split() for word in ("--set", override)]
    done = compress(*words, "--no-bench", "--threads", 1, "--precision", "fp32", "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    result = Result.model_validate(json.loads(done.stdout)[0])
    kinds = [stage.kind for stage in result.stages]
    assert [kind for kind in kinds if kind in stages] == stages
    assert result.final.precision == "int8"
    assert result.final.info["int8_matmuls"] > 0
    log = [json.loads(line) for line in (world / "runs" / result.run / "log.jsonl").read_text().splitlines()]
    model = stages[-1].split()[-1]
    assert [set(line["losses"]) for line in log if line["model"] == model] == [losses, losses]


@pytest.mark.parametrize("recipe", RECIPES)
def test_its_presets_can_be_said(recipe: str) -> None:
    text = (Path(__file__).parents[2] / "recipes" / f"{recipe}.yaml").read_text(encoding="utf-8")
    header = " ".join(line.removeprefix("#") for line in text.splitlines() if line.startswith("#"))
    gpu, cpu = re.split("One GPU-hour|Two CPU-hours", header)[1:]
    for preset in (gpu, cpu):
        overrides = re.findall(r"--set (\S+=\S+)", preset)
        spec = next(
            stage.spec for stage in load_recipe(recipe, overrides).stages if stage.kind in ("pretrain", "general")
        )
        assert spec.epochs == 1
        millions = re.search(r": (\d+) million", preset)
        assert millions is not None
        assert spec.max_tokens == int(millions[1]) * 1_000_000
