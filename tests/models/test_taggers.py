"""Token classification models: their sizes, what a student takes from its teacher, and which checkpoints have such a head."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import covering
from family_teachers import KINDS, LABELS, WHOLE_LAYERS, classifier_of, tagger_of, teacher_of
from head_batches import LENGTH, ROWS, SHORT, batch, built, card, logits, short_row, sizes
from plain_teachers import plain_classifier
from text_batches import batches
from torch.utils.flop_counter import FlopCounterMode

from compress.errors import CompressError
from compress.losses.hard_label import HardLabel
from compress.losses.hidden_cosine import HiddenCosine
from compress.losses.soft_cross_entropy import SoftCrossEntropy
from compress.losses.soft_target import SoftTarget
from compress.models.cards import RandomInit
from compress.models.checkpoints.folders import has_head, label_fields, load_classifier, other_head
from compress.models.dimensions import dimensions, read_config
from compress.models.families import FAMILIES
from compress.models.features.named import compute_features
from compress.models.heads import HEADS, head_of
from compress.models.random_models import random_classifier, random_config
from compress.models.students import build_encoder, load_body, not_kept
from compress.objective import Objective
from compress.pipeline.training.labels import label_order, reorder_head

NAMES = ("O", "B-PER", "I-PER")
WITH_TOKENS = [name for name, family in FAMILIES.items() if not family.layerless]


@cache
def tagger(family: str) -> Any:
    return plain_classifier(family, tags=True) if family in ("deberta-v2", "xlnet") else tagger_of(family)


@pytest.mark.parametrize("family", WITH_TOKENS)
def test_parameters_and_flops_are_those_of_transformers_model(family: str) -> None:
    model, length = tagger(family), 20
    model.set_attn_implementation("eager")
    model_sizes = dimensions(model.config.to_dict(), classes=len(LABELS), kind="tagging")
    assert model_sizes.parameters == model.num_parameters()
    inputs = {"input_ids": torch.full((1, length), 7)}
    if family == "xlnet":  # XLNet multiplies by segments only if they are given
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs)
    assert model_sizes.flops_per_example(length) == counter.get_total_flops()
    other = dimensions(model.config.to_dict(), classes=len(LABELS))
    assert other.parameters == plain_or_tiny(family).num_parameters()


def plain_or_tiny(family: str) -> Any:
    return plain_classifier(family) if family in ("deberta-v2", "xlnet") else classifier_of(family)


@pytest.mark.parametrize("family", WITH_TOKENS)
def test_every_token_has_logits_and_padding_never_changes_them(family: str) -> None:
    model = tagger(family)
    token_logits = logits(model)
    assert token_logits.shape == (ROWS, LENGTH, len(LABELS))
    alone = logits(model, short_row())
    torch.testing.assert_close(token_logits[1:2, :SHORT], alone, rtol=0, atol=1e-5)  # fp32, sums of other lengths


@pytest.mark.parametrize("family", [*KINDS, "mpnet"])
def test_with_all_layers_a_student_is_its_teacher(family: str) -> None:
    teacher = tagger(family)
    student = built(card(), teacher)
    assert type(student) is type(teacher)
    assert torch.equal(logits(student), logits(teacher))


def test_a_student_of_deberta_is_its_teacher() -> None:
    teacher = tagger("deberta-v2")
    assert torch.equal(logits(built(card(3), teacher)), logits(teacher))


@pytest.mark.parametrize("family", [*(name for name in KINDS if name not in WHOLE_LAYERS), "mpnet"])
def test_a_bert_of_any_teacher_has_its_classifier(family: str) -> None:
    teacher = tagger(family)
    wanted = card(2, architecture="bert")
    student = built(wanted, teacher)
    assert type(student).__name__ == "BertForTokenClassification"
    assert student.num_parameters() == sizes(wanted, teacher).parameters
    assert torch.equal(student.classifier.weight, teacher.classifier.weight)
    assert torch.equal(student.classifier.bias, teacher.classifier.bias)
    notes = not_kept(wanted.of(family), {"student": sizes(wanted, teacher), "teacher": sizes(card(), teacher)})
    assert not [line for line in notes if "classifier" in line]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra"])
def test_a_converted_student_has_the_classifier_and_is_near_its_teacher(family: str) -> None:
    teacher = tagger(family)
    width = dimensions(teacher.config.to_dict(), classes=3).embedding
    wanted = card(4, architecture="albert", init="convert", albert={"embedding": width, "share": "none"})
    student = built(wanted, teacher, batches(1, 8, 90))
    assert type(student).__name__ == "AlbertForTokenClassification"
    assert torch.equal(student.classifier.weight, teacher.classifier.weight)
    real = batch()["attention_mask"].bool()
    # Up to LayerNorm's epsilon, which is at another place.
    torch.testing.assert_close(logits(student)[real], logits(teacher)[real], rtol=0, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["mpnet", "bert", "ernie"])
def test_a_projected_student_is_its_teacher_at_full_width_and_near_it_below(family: str) -> None:
    teacher, sample = tagger(family), batches(4, 15, 90)
    texts, real = batch(), batch()["attention_mask"].bool()
    whole = built(card(architecture=family, init="project"), teacher, sample)
    torch.testing.assert_close(
        logits(whole)[real], logits(teacher)[real], rtol=0, atol=1e-4
    )  # gains are refitted per layer
    narrow = card(architecture=family, init="project", hidden=24, intermediate=48)
    mine, theirs = (logits(model, texts)[real] for model in (built(narrow, teacher, sample), teacher))
    pairs = torch.stack([(each - each.mean(0)).flatten() for each in (mine, theirs)])
    assert torch.corrcoef(pairs)[0, 1] > 0.5  # the teacher's weights are random; 0 for a random head


@pytest.mark.parametrize("pooler", [False, True])
def test_a_trained_encoder_goes_into_a_student_without_its_pooler(pooler: bool, tmp_path: Path) -> None:
    teacher, wanted = tagger("bert"), card(2)
    encoder: Any = build_encoder(wanted, classifier_of("bert").base_model, sizes(wanted, teacher))
    encoder.save_pretrained(tmp_path)
    assert any(name.startswith("pooler.") for name in encoder.state_dict())
    student = built(wanted, teacher)
    with torch.no_grad():
        for parameter in student.base_model.parameters():
            parameter.zero_()
    load_body(student, tmp_path, pooler=pooler)
    assert all(
        torch.equal(tensor, encoder.state_dict()[name]) for name, tensor in student.base_model.state_dict().items()
    )


def test_config_json_names_the_class_and_the_labels_and_no_problem_type(tmp_path: Path) -> None:
    tagger("bert").save_pretrained(tmp_path / "teacher")
    model: Any = load_classifier(tmp_path / "teacher", kind="tagging", labels=NAMES, trained=True)
    model.save_pretrained(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["id2label"] == {str(number): name for number, name in enumerate(NAMES)}
    assert config.get("problem_type") is None
    assert label_fields("tagging", NAMES)["problem_type"] is None


def saved(model: Any, folder: Path) -> dict[str, Any]:
    model.save_pretrained(folder)
    return read_config(folder)


def test_a_checkpoint_has_the_head_of_its_class(tmp_path: Path) -> None:
    tags, texts = saved(tagger("bert"), tmp_path / "tags"), saved(classifier_of("bert"), tmp_path / "texts")
    assert has_head(tmp_path / "tags", tags, "tagging") and not has_head(tmp_path / "tags", tags, "classification")
    assert has_head(tmp_path / "texts", texts, "classification") and not has_head(tmp_path / "texts", texts, "tagging")
    assert other_head(tags, "tagging") is None and other_head(texts, "classification") is None
    assert other_head(tags, "classification") == "BertForTokenClassification"
    assert other_head(texts, "tagging") == "BertForSequenceClassification"
    assert other_head({"architectures": ["BertForMaskedLM"]}, "tagging") is None


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_a_checkpoint_without_a_head_is_given_one(family: str, tmp_path: Path) -> None:
    teacher_of(family, tmp_path, masked_lm=True)
    model: Any = load_classifier(tmp_path, kind="tagging", labels=NAMES, trained=False)
    assert head_of(model) is HEADS["tagging"]
    assert model.config.num_labels == len(NAMES) and model.config.problem_type is None
    with pytest.raises(CompressError, match=r"lacks 2 of the model's weights, e\.g\. classifier\.bias"):
        load_classifier(tmp_path, kind="tagging", labels=NAMES, trained=True)


def test_an_xlnet_keeps_no_states_for_the_next_text(tmp_path: Path) -> None:
    saved(tagger("xlnet"), tmp_path)
    model: Any = load_classifier(tmp_path, kind="tagging", labels=NAMES, trained=True).eval()
    with torch.no_grad():
        assert getattr(model(**batch()), "mems", None) is None
    torch.testing.assert_close(logits(model), logits(tagger("xlnet")), rtol=0, atol=1e-6)


def test_a_model_with_random_weights_has_the_head() -> None:
    init = RandomInit(
        architecture="bert", layers=1, hidden=16, heads=2, intermediate=32, vocabulary=50, max_positions=16
    )
    model: Any = random_classifier(random_config(init), kind="tagging", labels=NAMES)
    assert type(model).__name__ == "BertForTokenClassification"
    assert model.classifier.out_features == len(NAMES)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_the_rows_of_a_head_are_put_into_the_order_of_the_task(family: str, tmp_path: Path) -> None:
    tagger(family).save_pretrained(tmp_path)
    model: Any = load_classifier(tmp_path, kind="tagging", labels=("B-PER", "I-PER", "O"), trained=True).eval()
    before = logits(model)
    order = label_order(("B-PER", "I-PER", "O"), NAMES, kind="tagging", where="teacher")
    assert order == (2, 0, 1)
    reorder_head(model, [2, 0, 1])
    assert torch.equal(logits(model), before[..., [2, 0, 1]])


@pytest.mark.parametrize(
    ("loss", "family"),
    covering(
        [HiddenCosine(), HardLabel(), SoftTarget(), SoftCrossEntropy()],
        ["bert", "distilbert", "albert", "mpnet", "modernbert"],
    ),
    ids=lambda value: getattr(value, "name", value),
)
def test_no_loss_sees_padding(loss: Any, family: str) -> None:
    student, teacher = tagger_of(family), tagger(family)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    objective, losses, slopes = Objective((loss,), kind="tagging"), [], []
    for more in (0, 7):
        inputs = {name: torch.nn.functional.pad(value, (0, more)) for name, value in batch().items()}
        inputs["labels"] = torch.where(inputs["attention_mask"] * inputs["input_ids"] % 2 == 1, 1, -100)
        inputs["compared"] = inputs["attention_mask"]
        targets = compute_features(teacher, inputs, objective.teacher_features)
        (term,) = objective(compute_features(student, inputs, objective.student_features), targets, inputs).values()
        student.zero_grad()
        term.backward()
        losses.append(term.item())
        slopes.append(torch.cat([p.grad.flatten() for p in student.parameters() if p.grad is not None]))
    assert losses[0] > 1e-4
    assert losses[1] == pytest.approx(losses[0], rel=2e-5)  # fp32; sums of other lengths round differently
    torch.testing.assert_close(slopes[1], slopes[0], rtol=0, atol=2e-5 * slopes[0].abs().max().item())
