"""Sentence encoders trained on plain text: its rows, one step's loss and gradient, errors, and the command."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recipe_runs import TEACHER, compress, result_of
from training_toys import toy_model

from compress.errors import CompressError
from compress.losses.similarity_mse import SimilarityMse
from compress.losses.soft_target import SoftTarget
from compress.models.features.named import compute_features
from compress.models.random_models import random_classifier
from compress.objective import Objective
from compress.tasks import TaskBatches, encode, load_training, own_files, own_task, wordpiece
from compress.tasks.own.files import OwnFiles

LINES = ["a dog", "the cat sings", "", "a slow river is not good", "a fine movie", "   ", "the dull story"]
OPTIONS = ("--text", "one", "--pair", "two", "--label", "score", "--max-length", "24", "--no-bench")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (tmp_path / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    for name in ("tuning", "dev"):
        rows = [f"{name} film {n}\tother {name} {n * 7 % 12}\t{n % 5}.5" for n in range(12)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["one\ttwo\tscore", *rows]) + "\n", encoding="utf-8")
    return tmp_path


def own(world: Path, train: str = "texts.txt") -> OwnFiles:
    return OwnFiles(world / train, world / "dev.tsv", "one", "two", "score", "embedding", 16)


@pytest.mark.parametrize("name", ["texts.txt", "TEXTS.TXT", "texts.gz", "TEXTS.GZ"])
def test_lines_are_read_two_by_two_and_blank_ones_not_at_all(world: Path, name: str) -> None:
    content = (world / "texts.txt").read_bytes()
    (world / name).write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    data = load_training(*own_task(own(world, name)), None, world / "tuning.tsv")
    assert data.train.texts == (["a dog", "a slow river is not good"], ["the cat sings", "a fine movie"])
    assert data.train.separate_texts and len(data.tuning) == 12
    assert data.notes == ("train: the last of 5 lines is left out, because lines are read in pairs",)


def test_texts_of_other_splits_are_seen_wherever_they_stand(world: Path) -> None:
    """On separate lines, in another order or case; a pair with only one of its texts gives no note."""
    lines = [
        "OTHER  dev 0",
        *LINES,
        "dev film 0",
        "dev film 1",
        "dev film 2",
        "other dev 2",
        "tuning film 3",
        "other tuning 9",
    ]
    (world / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
    notes = load_training(*own_task(own(world)), None, world / "tuning.tsv").notes
    assert "2 of 12 dev texts also stand in train" in notes
    assert "1 of 12 tuning texts also stand in train" in notes
    own_lines = [field for n in range(8) for field in (f"tuning film {n}", f"other tuning {n * 7 % 12}")]
    (world / "texts.txt").write_text("\n".join(["a dog", *own_lines]), encoding="utf-8")
    with pytest.raises(
        CompressError, match=r"tuning\.tsv: 7 of its 12 texts are also in train, which models learn by heart"
    ):
        load_training(*own_task(own(world)), None, world / "tuning.tsv")


def test_one_step_has_the_loss_and_gradient_of_the_formulas(world: Path) -> None:
    data = load_training(*own_task(own(world)), None, world / "tuning.tsv")
    encoded = encode(wordpiece(300), data.train, 16)
    batches = TaskBatches(encoded, batch_size=4, pad_id=0, seed=0)
    batch = {name: torch.from_numpy(part) for name, part in batches.collate(batches.indices(0)).items()}
    assert sorted(batches.indices(0).tolist()) == [0, 1, 2, 3]  # each text once
    models = []
    for seed in (1, 2):
        config = toy_model(dropout=0).config.to_dict() | {"vocab_size": 300}
        models.append(random_classifier(config, kind="embedding", labels=()).eval())
        noise = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weight in models[-1].parameters():  # larger than at initialization, so that every part matters
                weight.add_(torch.randn(weight.shape, generator=noise) * 0.1)
    student, teacher = models
    objective = Objective((SoftTarget(weight=2.0), SimilarityMse(weight=3.0)), kind="embedding")
    with torch.no_grad():
        theirs = compute_features(teacher, batch, ["logits"])
    terms = objective(compute_features(student, batch, ["logits"]), theirs, batch)
    loss = sum(terms.values(), torch.zeros(()))
    weights = list(student.base_model.encoder.parameters())
    gradients = torch.autograd.grad(loss, weights)

    def vectors(model: Any) -> torch.Tensor:
        states, mask = model.base_model(**batch)[0], batch["attention_mask"]
        means = torch.stack([row[: int(real.sum())].mean(0) for row, real in zip(states, mask, strict=True)])
        return means / means.pow(2).sum(1, keepdim=True).sqrt()

    mine, other = vectors(student), vectors(teacher).detach()
    cosine = 1 - (mine * other).sum(1).mean()
    similarity = ((mine @ mine.T - other @ other.T) ** 2).mean()
    expected = 2 * cosine + 3 * similarity
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
    for one, two in zip(gradients, torch.autograd.grad(expected, weights), strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-3, atol=1e-5)
    assert max(float(one.abs().max()) for one in gradients) > 1e-3


def test_what_cannot_be_used_is_refused(world: Path) -> None:
    with pytest.raises(CompressError, match=r"plain text has no scores .* with --tuning, or as `files\.tuning`"):
        load_training(*own_task(own(world)), None)
    with pytest.raises(CompressError, match="expected pairs of texts with a score, found plain text"):
        load_training(*own_task(own(world)), None, world / "texts.txt")
    (world / "one.txt").write_text("\n\na line\n")
    with pytest.raises(CompressError, match=r"one\.txt: expected at least two lines of text, found 1"):
        load_training(*own_task(own(world, "one.txt")), None, world / "tuning.tsv")
    with pytest.raises(CompressError, match="--dev: expected pairs of texts with a score"):
        own_task(OwnFiles(world / "texts.txt", world / "one.txt", "one", "two", "score", "embedding"))


@pytest.mark.parametrize(
    ("corpus", "kind", "message"),
    [
        (["a.txt"], "regression", "--corpus can replace it only with --kind embedding"),
        (["a.txt"], None, "--corpus can replace it only with --kind embedding"),
        (["a.txt", "b.txt"], "embedding", "--corpus: expected one text file in place of --train, found 2"),
        (["folder"], "embedding", "--corpus: expected a text file .* found folder"),
        (["hub:owner/name@main"], "embedding", "--corpus: expected a text file .* found hub:owner/name@main"),
    ],
)
def test_a_corpus_that_is_no_train_split_is_refused(corpus: list[str], kind: str | None, message: str) -> None:
    columns = {"text": "one", "pair": "two", "label": "score", "max_length": None}
    with pytest.raises(CompressError, match=message):
        own_files(train=None, dev="dev.tsv", kind=kind, corpus=corpus, **columns)


@pytest.mark.slow
def test_the_command_trains_on_plain_text(world: Path) -> None:
    (world / "texts.txt").write_text("\n".join(f"the old film is good in town {n} ." for n in range(400)))
    words = ("--teacher", "tiny.yaml", "--dev", "dev.tsv", *OPTIONS, "--kind", "embedding", "--corpus", "texts.txt")
    short = ("--tuning", "tuning.tsv", "--set", "distill.max_steps=3")
    result = result_of("run", "distilbert", *words, *short, cwd=world)
    assert result.task.kind == "embedding" and set(result.final.scores["dev"]) == {"spearman"}
    assert "--corpus texts.txt" in result.command and "--train" not in result.command
    done = compress("run", "distilbert", *words, cwd=world)
    assert done.returncode == 2 and "with --tuning" in done.stderr
