"""Students: genuine DistilBERTs that start from their teacher's weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import DistilBertForSequenceClassification

from compress.errors import CompressError
from compress.models.cards import LayerRule, StudentCard
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.students import build_student, student_dimensions

LABELS = ("no", "maybe", "yes")
IDS = torch.tensor([[2, 17, 55, 90, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
MASK = (IDS != 0).long()


def card(layers: int, rule: LayerRule = "every_other", **sizes: Any) -> StudentCard:
    return StudentCard(name="s", title="S", architecture="distilbert", layers=layers, copy_layers=rule, **sizes)


def built(folder: Path, student: StudentCard) -> tuple[Any, Any, Dimensions]:
    teacher = load_classifier(folder, kind="classification", labels=LABELS, trained=True).eval()
    sizes = student_dimensions(student, dimensions(read_config(folder), classes=3))
    return teacher, build_student(student, teacher, sizes).eval(), sizes


def test_the_student_is_a_distilbert_of_the_sizes_that_were_planned(tiny_checkpoint: Callable[[str], Path]):
    teacher, student, sizes = built(tiny_checkpoint("bert"), card(1))
    assert type(student) is DistilBertForSequenceClassification
    assert sizes.parameters == student.num_parameters()
    assert dimensions(student.config.to_dict(), classes=3) == sizes
    assert student.config.id2label == teacher.config.id2label == dict(enumerate(LABELS))
    assert (student.config.dropout, student.config.attention_dropout, student.config.seq_classif_dropout) == (0.1,) * 3


def test_with_all_layers_copied_the_encoder_is_the_teachers(tiny_checkpoint: Callable[[str], Path]):
    """The segment row, which is added to the positions, is kept, and every weight of a layer is at its place."""
    teacher, student, _ = built(tiny_checkpoint("bert"), card(2))
    with torch.no_grad():
        mine = student.distilbert(input_ids=IDS, attention_mask=MASK, output_hidden_states=True).hidden_states
        theirs = teacher.bert(input_ids=IDS, attention_mask=MASK, output_hidden_states=True).hidden_states
    for one, other in zip(mine, theirs, strict=True):
        # fp32: (word + segment) + position against word + (segment + position)
        torch.testing.assert_close(one[MASK.bool()], other[MASK.bool()], rtol=0, atol=1e-5)
    assert teacher.bert.embeddings.token_type_embeddings.weight[0].abs().max() > 0.05


def test_the_head_is_the_teachers_with_relu_for_tanh(tiny_checkpoint: Callable[[str], Path]):
    teacher, student, _ = built(tiny_checkpoint("bert"), card(2))
    with torch.no_grad():
        first = teacher.bert(input_ids=IDS, attention_mask=MASK).last_hidden_state[:, 0]
        expected = teacher.classifier(torch.relu(teacher.bert.pooler.dense(first)))
        logits = student(input_ids=IDS, attention_mask=MASK).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)  # fp32, as above


@pytest.mark.parametrize(("rule", "source"), [("first", 0), ("last", 1), ((1,), 1), ("every_other", 0)])
def test_the_layers_are_those_of_the_rule(tiny_checkpoint: Callable[[str], Path], rule: LayerRule, source: int):
    teacher, student, _ = built(tiny_checkpoint("bert"), card(1, rule))
    copied = student.distilbert.transformer.layer[0].ffn.lin1.weight
    assert torch.equal(copied, teacher.bert.encoder.layer[source].intermediate.dense.weight)
    assert copied.data_ptr() != teacher.bert.encoder.layer[source].intermediate.dense.weight.data_ptr()


def test_a_distilbert_teacher_copied_whole_gives_identical_logits(tiny_checkpoint: Callable[[str], Path]):
    teacher, student, _ = built(tiny_checkpoint("distilbert"), card(2))
    with torch.no_grad():
        expected = teacher(input_ids=IDS, attention_mask=MASK).logits
        assert torch.equal(student(input_ids=IDS, attention_mask=MASK).logits, expected)


@pytest.mark.parametrize(
    ("family", "student", "message"),
    [
        ("roberta", card(1), "student s is a DistilBERT, which starts from bert or distilbert; the teacher is roberta"),
        ("bert", card(1, hidden=48), "student s: hidden is 48 and the teacher's is 32"),
        ("bert", card(1, heads=4), "student s: heads is 4 and the teacher's is 2"),
        ("bert", card(1, intermediate=128), "student s: intermediate is 128 and the teacher's is 64"),
        ("bert", card(3), "student s has 3 layers and the teacher 2"),
    ],
)
def test_a_card_that_does_not_fit_the_teacher(
    tiny_checkpoint: Callable[[str], Path], family: str, student: StudentCard, message: str
):
    with pytest.raises(CompressError, match=message):
        student_dimensions(student, dimensions(read_config(tiny_checkpoint(family)), classes=3))


STRANGER = """
import json, sys
from transformers import AutoModelForSequenceClassification, AutoTokenizer
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
inputs = tokenizer("The FILM is good.", "not bad", return_tensors="pt")
ids = inputs["input_ids"].tolist()[0]
inputs = {name: inputs[name] for name in ("input_ids", "attention_mask")}
assert not [name for name in sys.modules if name.split(".")[0] == "compress"]
print(json.dumps([type(model).__name__, ids, model(**inputs).logits.tolist(), model.config.id2label]))
"""


@pytest.mark.slow
def test_a_saved_student_needs_nothing_of_ours(
    tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path
):
    _, student, _ = built(tiny_checkpoint("bert"), card(1))
    save_checkpoint(student, toy_tokenizer, tmp_path)
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(tmp_path)],
        capture_output=True, text=True, check=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    name, ids, logits, labels = json.loads(done.stdout)
    expected = toy_tokenizer.encode("The FILM is good.", "not bad").ids
    assert (name, ids) == ("DistilBertForSequenceClassification", expected)
    assert labels == {"0": "no", "1": "maybe", "2": "yes"}
    with torch.no_grad():
        mine = student(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.int64)).logits
    # fp32: weights mapped from a file have other addresses, for which kernels may sum in another order
    assert logits[0] == pytest.approx(mine[0].tolist(), abs=1e-6)
