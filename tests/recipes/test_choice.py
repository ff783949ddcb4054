"""Every recipe of the catalogue on multiple choice, for a few steps, through the command line; other models too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from family_teachers import teacher_of
from plain_teachers import plain_teacher
from pretrained_toys import encoder_folder
from recipe_runs import TEACHER, check_layers, compress, is_quantized, result_of

from compress.catalog import names
from compress.results import Result

pytestmark = pytest.mark.end_to_end

LABELS = ("food", "place", "service")
COMMAND = (
    *("--train", "train.jsonl", "--dev", "dev.jsonl", "--max-length", "24", "--threads", "1"),
    "--no-bench",
)
PROJECTED = """\
name: thin
title: Thin
layers: 2
hidden: 16
intermediate: 32
init: project
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "thin.yaml").write_text(PROJECTED, encoding="utf-8")
    encoder_folder(folder / "bytes")
    rng = np.random.default_rng(0)
    for split, count in (("train", 40), ("dev", 12)):
        rows = []
        for n in range(count):
            order = rng.permutation(2 + n % 2).tolist()
            endings = [f"{LABELS[place]} number {n}" for place in order]
            rows.append({"context": f"{split} {LABELS[n % 2]} {n}", "endings": endings, "label": order.index(n % 2)})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def run(world: Path, recipe: str, *options: str) -> Result:
    return result_of("run", recipe, *COMMAND, *options, cwd=world)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", names("recipes"))
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    goal = ("--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    result = run(world, recipe, "--teacher", "tiny.yaml", *goal, *text)
    check_layers(result)
    assert result.task.kind == "choice"
    assert set(result.final.scores["dev"]) == {"accuracy"}
    fidelity = result.final.fidelity
    if is_quantized(result):
        assert fidelity is not None and fidelity.flips is not None and fidelity.examples == 12
        assert fidelity.query_flips is None and fidelity.fp32_calibration_error is not None
    with np.load(world / "runs" / result.run / "predictions.npz") as file:
        outputs, gold = file[f"{result.final.predictions}/dev"], file["gold/dev"]
    assert outputs.shape == (12, 3) and gold.shape == (12,)
    assert (outputs[::2, 2] < -1e8).all() and (
        np.abs(outputs[1::2]) < 1e3
    ).all()  # every other question has two endings


SHORT = ("--set", "finetune.max_steps=3", "--set", "distill.max_steps=3", "--precision", "fp32")


@pytest.mark.slow
@pytest.mark.parametrize("other", [("--teacher", "./bytes", "--student", "distil-1l"), ("--student", "./bytes")])
def test_another_tokenizer_teaches_and_is_taught(world: Path, other: tuple[str, ...]) -> None:
    """From several teachers a student learns the mean of their probabilities, from a table, as from one with another tokenizer."""
    result = run(world, "logits", "--teacher", "tiny.yaml", *other, *SHORT)
    assert set(result.final.scores["dev"]) == {"accuracy"}
    if "--teacher" in other:
        assert result.ensemble is not None and all(each.temperature for each in result.ensemble.teachers)
        with np.load(world / "runs" / result.run / "predictions.npz") as file:
            arrays = dict(file)
        each = []
        for teacher in result.ensemble.teachers:
            scores = np.exp(arrays[f"{teacher.predictions}/dev"].astype(np.float64) / (teacher.temperature or 1))
            each.append(scores / scores.sum(1, keepdims=True))
        mean = np.exp(arrays["ensemble/dev"].astype(np.float64))
        np.testing.assert_allclose(mean, np.mean(each, axis=0), atol=1e-6)


@pytest.mark.slow
def test_a_projected_student_learns(world: Path) -> None:
    assert run(world, "logits", "--teacher", "tiny.yaml", "--student", "thin.yaml", *SHORT).final.name == "student"


FAMILIES = ("bert", "distilbert", "electra", "ernie", "roberta", "xlm-roberta", "camembert", "albert", "modernbert")


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, "deberta-v2", "xlnet"])
def test_a_teacher_of_every_family_is_fine_tuned_and_quantized(world: Path, family: str) -> None:
    make = plain_teacher if family in ("deberta-v2", "xlnet") else teacher_of
    make(family, world / family)
    plain = ("--set", "export.graph=plain") if family in ("modernbert", "deberta-v2", "xlnet") else ()
    result = run(
        world, "int8", "--teacher", f"./{family}", "--set", "finetune.max_steps=3", "--precision", "fp32", *plain
    )
    assert result.task.kind == "choice" and result.final.info["int8_matmuls"] > 0


@pytest.mark.slow
def test_a_static_student_learns(world: Path) -> None:
    result = run(world, "static", "--teacher", "tiny.yaml", *SHORT)
    assert result.task.kind == "choice" and set(result.final.scores["dev"]) == {"accuracy"}


def test_margins_and_batches_of_one_are_refused_before_anything_runs(world: Path) -> None:
    done = compress("run", "logits", *COMMAND, "--teacher", "tiny.yaml", "--set", "distill.batch_size=1", cwd=world)
    assert done.returncode == 2
    assert "stage distill: batch_size is 1; training compares endings of a question with each other" in done.stderr
    margins = ("--set", "distill.losses=[{name: margin_mse}]")
    done = compress("run", "logits", *COMMAND, "--teacher", "tiny.yaml", *margins, cwd=world)
    assert done.returncode == 2 and "loss margin_mse is for ranking tasks" in done.stderr
