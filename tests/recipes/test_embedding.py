"""Every recipe of the catalogue on pairs whose vectors are compared, for a few steps, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from default_suite import keeping
from recipe_runs import TEACHER, check_layers, compress, is_quantized, result_of

from compress.catalog import names
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate

pytestmark = pytest.mark.end_to_end

DEFAULT = ("tinybert-small",)  # has the most stages; test_static.py has the one without layers
FILES = ("--train", "train.tsv", "--dev", "dev.tsv", "--text", "sentence1", "--pair", "sentence2", "--label", "score")
OPTIONS = ("--kind", "embedding", "--max-length", "24", "--threads", "1", "--no-bench")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    for split, rows in generate(Synthetic(generator="similarity", train=120, dev=40)).items():
        lines = ["\t".join(("sentence1", "sentence2", "score")), *("\t".join(map(str, row)) for row in rows)]
        (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("recipe", keeping(names("recipes"), DEFAULT))
def test_the_recipe_runs(world: Path, recipe: str) -> None:
    goal = ("--set", "quantize.max_drop=100") if recipe.endswith("-auto") else ()
    text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    short = [value for stage in STAGES.get(recipe, ()) for value in ("--set", f"{stage}.max_steps=3")]
    words = (*FILES, "--teacher", "tiny.yaml", *OPTIONS, *goal, *text, *short)
    result = result_of("run", recipe, *words, cwd=world)
    check_layers(result)
    assert result.task.kind == "embedding"
    assert set(result.final.scores["dev"]) == {"spearman"}
    fidelity = result.final.fidelity
    if is_quantized(result):
        assert fidelity is not None and fidelity.flips is None
        assert (result.final.info["int8_matmuls"] > 0) == (recipe != "static") and result.final.info["int8_gathers"] > 0
        assert fidelity.mean_cosine is not None and 0.9 < fidelity.mean_cosine <= 1
        assert fidelity.worst_cosine is not None and fidelity.worst_cosine <= fidelity.mean_cosine
        assert fidelity.nearest_kept is not None and 0.5 < fidelity.nearest_kept <= 1
    assert not any(stage.kind.startswith("finetune") for stage in result.stages)
    (folder,) = (path.parent for path in (world / "runs").glob("*/result.json") if path.parent.name == result.run)
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert ("Cosine with fp32" in report, "Ten nearest" in report) == (fidelity is not None,) * 2
    assert "Logit difference" not in report
    with np.load(folder / "predictions.npz") as file:
        outputs = file[f"{result.final.predictions}/dev"]
    first, second = np.split(outputs[:, 1:], 2, axis=1)
    np.testing.assert_allclose((first * second).sum(1), outputs[:, 0], rtol=0, atol=1e-6)  # fp32
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=0, atol=1e-6)


STAGES = {  # recipe -> its stages that train a student
    **dict.fromkeys(("distilbert", "distilbert-general", "distilbert-int8-qat", "logits", "static"), ("distill",)),
    **dict.fromkeys(("minilm", "tinybert", "tinybert-small", "tinybert-int8-auto"), ("intermediate", "prediction")),
}


@pytest.mark.slow
def test_an_encoder_made_of_plain_text_is_taken_as_it_is(world: Path) -> None:
    (world / "text.txt").write_text("\n\n".join(f"the old film is good in town {n} ." for n in range(400)))
    short = ("pretrain.max_steps=3", "pretrain.batch_size=8", "pretrain.max_length=24")
    more = [word for value in short for word in ("--set", value)]
    done = compress(
        *("run", "bert-pretrain", *FILES, "--teacher", "tiny.yaml", *OPTIONS, "--corpus", "text.txt", *more, "--json"),
        cwd=world,
    )
    assert done.returncode == 0, done.stderr
    kinds = [stage["kind"] for stage in json.loads(done.stdout)[0]["stages"]]
    assert kinds.index("pretrain pretrained") < kinds.index("adopt teacher")
