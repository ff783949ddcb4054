"""Multiple choice models: rows in transformers' classes, their sizes, and what a student takes from its teacher."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import KINDS, WHOLE_LAYERS, chooser_of
from head_batches import LENGTH, ROWS, batch, built, card, logits, short_row
from plain_teachers import plain_chooser
from text_batches import batches
from transformers import AutoModelForMultipleChoice

from compress.models.cards import RandomInit
from compress.models.checkpoints.folders import has_head, load_classifier, other_head
from compress.models.dimensions import dimensions, read_config
from compress.models.families import FAMILIES
from compress.models.features.named import accepted_inputs
from compress.models.heads import head_of
from compress.models.random_models import random_classifier, random_config

PLAIN = ("deberta-v2", "xlnet")
WITH_LAYERS = [name for name, family in FAMILIES.items() if not family.layerless]


@cache
def chooser(family: str) -> Any:
    return plain_chooser(family) if family in PLAIN else chooser_of(family)


@pytest.mark.parametrize("family", WITH_LAYERS)
def test_a_checkpoint_scores_as_transformers_own_class_does(family: str, tmp_path: Path) -> None:
    """It gets the endings of each question side by side; an XLNet is padded on the left."""
    model = chooser(family)
    scores = logits(model)
    assert scores.shape == (ROWS, 1) and head_of(model).model == "AutoModelForMultipleChoice"
    model.save_pretrained(tmp_path)
    theirs = AutoModelForMultipleChoice.from_pretrained(tmp_path).eval()
    assert type(theirs).__module__.startswith("transformers.")
    inputs = {name: value for name, value in batch().items() if name in accepted_inputs(model)}
    if family == "xlnet":
        inputs = {name: torch.stack([_turned(row, mask) for row, mask in zip(value, inputs["attention_mask"], strict=True)])
                  for name, value in inputs.items()}  # fmt: skip
    with torch.no_grad():
        expected = theirs(**{name: value.view(ROWS // 2, 2, LENGTH) for name, value in inputs.items()}).logits
    torch.testing.assert_close(scores.view(2, 2), expected, rtol=0, atol=2e-6)  # fp32, other attention code
    again = load_classifier(tmp_path, kind="choice", labels=(), trained=True)
    torch.testing.assert_close(logits(again.eval()), scores, rtol=0, atol=2e-6)


def _turned(row: Any, mask: Any) -> Any:
    """Move the padding of a row to its left."""
    return row.roll(int(LENGTH - mask.sum()))


@pytest.mark.parametrize("family", WITH_LAYERS)
def test_padding_never_changes_a_score(family: str) -> None:
    alone = logits(chooser(family), short_row())
    torch.testing.assert_close(logits(chooser(family))[1:2], alone, rtol=0, atol=1e-5)  # fp32, sums of other lengths


@pytest.mark.parametrize("family", WITH_LAYERS)
def test_parameters_are_those_of_transformers_model(family: str) -> None:
    sizes = dimensions(chooser(family).config.to_dict(), classes=1, kind="choice")
    assert sizes.parameters == chooser(family).num_parameters()


@pytest.mark.parametrize("family", [*KINDS, "mpnet"])
def test_with_all_layers_a_student_is_its_teacher(family: str) -> None:
    teacher = chooser(family)
    student = built(card(), teacher)
    assert type(student) is type(teacher)
    assert torch.equal(logits(student), logits(teacher))


def test_a_student_of_deberta_is_its_teacher() -> None:
    teacher = chooser("deberta-v2")
    assert torch.equal(logits(built(card(3), teacher)), logits(teacher))


@pytest.mark.parametrize("family", [*(name for name in KINDS if name not in WHOLE_LAYERS), "mpnet"])
def test_a_bert_of_any_teacher_has_its_head(family: str) -> None:
    teacher = chooser(family)
    student = built(card(2, architecture="bert"), teacher)
    assert type(student).__name__ == "BertForMultipleChoice"
    assert torch.equal(student.classifier.weight, teacher.classifier.weight)
    pooled = {"electra": "sequence_summary.summary", "distilbert": "pre_classifier", "albert": "albert.pooler"}
    theirs = teacher.get_submodule(pooled.get(family, f"{teacher.base_model_prefix}.pooler.dense"))
    assert torch.equal(student.bert.pooler.dense.weight, theirs.weight)


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_a_converted_student_is_near_its_teacher(family: str) -> None:
    teacher = chooser(family)
    width = dimensions(teacher.config.to_dict(), classes=1).embedding
    wanted = card(4, architecture="albert", init="convert", albert={"embedding": width, "share": "none"})
    student = built(wanted, teacher, batches(1, 8, 90))
    assert type(student).__name__ == "AlbertForMultipleChoice"
    if family != "electra":  # ELECTRA's head has another activation
        torch.testing.assert_close(logits(student), logits(teacher), rtol=0, atol=1e-2)  # up to LayerNorm's epsilon


@pytest.mark.slow
@pytest.mark.parametrize("family", ["roberta", "bert", "mpnet"])
def test_a_projected_student_is_its_teacher_at_full_width(family: str) -> None:
    teacher = chooser(family)
    whole = built(card(architecture=family, init="project"), teacher, batches(4, 15, 90))
    torch.testing.assert_close(logits(whole), logits(teacher), rtol=0, atol=1e-4)  # gains are refitted per layer


def test_a_random_model_takes_rows() -> None:
    init = RandomInit(layers=1, hidden=16, heads=2, intermediate=32, vocabulary=90, max_positions=16)
    model = random_classifier(random_config(init), kind="choice", labels=())
    assert logits(model.eval()).shape == (ROWS, 1) and type(model).__name__ == "BertForMultipleChoice"


def test_a_mask_of_all_pairs_is_refused() -> None:
    mask = torch.ones(ROWS, 1, LENGTH, LENGTH)
    with pytest.raises(ValueError, match="expected masks of tokens"):
        chooser("bert")(input_ids=batch()["input_ids"], attention_mask=mask)


def test_which_checkpoints_have_such_a_head(tmp_path: Path) -> None:
    chooser("bert").save_pretrained(tmp_path)
    config = read_config(tmp_path)
    assert has_head(tmp_path, config, "choice") and other_head(config, "choice") is None
    assert not has_head(tmp_path, config, "ranking") and other_head(config, "ranking") == "BertForMultipleChoice"
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    assert not has_head(tmp_path, read_config(tmp_path), "choice")


def test_a_ready_mask_reaches_the_encoder() -> None:
    """Batches on a GPU have such masks."""
    seen = batch()["attention_mask"].bool()[:, None, None].expand(-1, -1, LENGTH, -1)
    inputs = {name: value for name, value in batch().items() if name != "attention_mask"}
    with torch.no_grad():
        scores = chooser("bert")(**inputs, attention_mask=seen).logits
    torch.testing.assert_close(scores, logits(chooser("bert")), rtol=0, atol=2e-6)  # fp32, other attention code
