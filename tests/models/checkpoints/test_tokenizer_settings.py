"""transformers reads the same tokens and segments from a saved checkpoint as this package, for pairs too, in every family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import KINDS, classifier_of, tokenizer_of
from mpnet_toys import mpnet_tokenizer
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from compress.models.checkpoints.folders import save_checkpoint
from compress.models.checkpoints.tokenizer_settings import GENERAL
from compress.models.features.named import accepted_inputs

PAIR = ("a film", "Élan 漢 .")


def saved(family: str, tokenizer: Tokenizer, folder: Path, **fields: Any) -> tuple[Any, Any]:
    """Save a checkpoint and return transformers' (tokenizer, model) for the folder."""
    save_checkpoint(
        classifier_of(family, vocab_size=max(tokenizer.get_vocab().values()) + 1, **fields), tokenizer, folder
    )
    return AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()


def check_pair(theirs: Any, model: Any, ours: Tokenizer) -> None:
    inputs, own = theirs(*PAIR, return_tensors="pt"), ours.encode(*PAIR)
    assert inputs["input_ids"][0].tolist() == own.ids
    assert set(inputs) == accepted_inputs(model)
    if "token_type_ids" in inputs:
        assert inputs["token_type_ids"][0].tolist() == own.type_ids
    with torch.no_grad():
        model(**inputs)


@pytest.mark.parametrize("family", list(KINDS))
def test_a_pair_has_its_tokens_and_segments_in_every_family(family: str, tmp_path: Path):
    tokenizer = tokenizer_of(family)
    check_pair(*saved(family, tokenizer, tmp_path), tokenizer)


@pytest.mark.parametrize("family", ["albert", "bert", "electra"])
@pytest.mark.parametrize("words", ["bert", "roberta", "camembert", "albert", "mpnet"])
def test_students_of_a_form_with_segments_have_them_with_any_teachers_tokenizer(
    family: str, words: str, tmp_path: Path
):
    """MPNet's tokenizer has two separators between the texts of a pair, of which BERT's own class would make one."""
    tokenizer = mpnet_tokenizer() if words == "mpnet" else tokenizer_of(words)
    check_pair(*saved(family, tokenizer, tmp_path), tokenizer)


def test_a_model_of_one_segment_is_given_none(tmp_path: Path):
    tokenizer = tokenizer_of("bert")
    check_pair(*saved("bert", tokenizer, tmp_path, type_vocab_size=1), tokenizer)


@pytest.mark.parametrize(
    ("normalizer", "kind"),
    [
        ({"strip_accents": False}, "BertTokenizer"),
        ({"strip_accents": True, "lowercase": False}, "BertTokenizer"),
        ({"handle_chinese_chars": False}, "BertTokenizer"),
        ({"clean_text": False}, GENERAL),
        ({"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]}, GENERAL),
    ],
)
def test_what_is_not_bert_s_usual_way_to_read_letters_is_kept(normalizer: dict[str, Any], kind: str, tmp_path: Path):
    """For example an uncased German BERT, which keeps its umlauts."""
    document = json.loads(tokenizer_of("bert").to_str())
    words = document["model"]["vocab"]
    words |= {word: len(words) + number for number, word in enumerate(("é", "É", "漢", "##字", "##é", "##É"))}
    document["normalizer"] = normalizer if "type" in normalizer else document["normalizer"] | normalizer
    tokenizer = Tokenizer.from_str(json.dumps(document))
    theirs, model = saved("bert", tokenizer, tmp_path)
    check_pair(theirs, model, tokenizer)
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == kind
    for text in ("É é", "a\tb\x00c", "漢字 É"):
        assert theirs(text)["input_ids"] == tokenizer.encode(text).ids
