"""A teacher's trained head is not dropped silently, and settings without effect are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Request, plan_all


@pytest.fixture
def request_(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Request:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="")
    return Request(("int8",), (str(tmp_path / "task.yaml"),), teacher=str(teacher), root=tmp_path / "runs")


def named(request_: Request, architecture: str) -> Request:
    path = Path(str(request_.teacher)) / "config.json"
    labels = {"id2label": {"0": "negative", "1": "positive"}, "label2id": {"negative": 0, "positive": 1}}
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": [architecture], **labels}))
    return request_


@pytest.mark.parametrize("head", ["ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"])
def test_another_kind_of_head_is_refused_or_taken_on_purpose(request_: Request, head: str) -> None:
    with pytest.raises(CompressError, match=rf"is a Bert{head}, with a head for another kind .* give --refit"):
        plan_all(named(request_, f"Bert{head}"))
    (plan,) = plan_all(replace(request_, refit=True))
    assert plan.nodes[0].kind.name == "finetune"


@pytest.mark.parametrize("architecture", ["BertModel", "BertForMaskedLM", "BertForPreTraining"])
def test_an_encoder_is_fine_tuned(request_: Request, architecture: str) -> None:
    (plan,) = plan_all(named(request_, architecture))
    assert plan.nodes[0].kind.name == "finetune"


def test_what_is_set_of_a_fine_tuning_that_does_not_take_place_is_told(request_: Request) -> None:
    setting = "finetune.epochs=5"
    request_ = named(replace(request_, overrides=(setting, "quantize.method=dynamic")), "BertForSequenceClassification")
    (plan,) = plan_all(request_)
    assert plan.nodes[0].kind.name == "adopt"
    assert [note for note in plan.notes if "--set" in note] == [
        f"--set {setting} has no effect: teacher teacher is fine-tuned already; give --refit to fine-tune it again"
    ]
    (plan,) = plan_all(replace(request_, refit=True))
    assert not [note for note in plan.notes if "--set" in note]
