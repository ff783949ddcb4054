"""Checkpoints that transformers 5 saved with tokenizers that give no segments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import classifier_of, tokenizer_of
from plain_teachers import plain_teacher
from tokenizers import Tokenizer
from transformers import AlbertTokenizer, AutoModelForSequenceClassification, AutoTokenizer, XLNetTokenizer

from compress.models.checkpoints.folders import load_tokenizer, save_checkpoint


def rows_of(tokenizer: Tokenizer) -> tuple[Any, Any]:
    """Return a pair's tokens and segments, in a batch of one."""
    pair = tokenizer.encode("a dog", "a good film")
    return torch.tensor([pair.ids]), torch.tensor([pair.type_ids])


@pytest.mark.parametrize("family", ["albert", "xlnet"])
def test_classes_that_give_no_segments_since_transformers_5_are_followed_where_it_saved_them(
    family: str, tmp_path: Path
) -> None:
    folder, auto = tmp_path / family, AlbertTokenizer if family == "albert" else XLNetTokenizer
    if family == "xlnet":
        plain_teacher(family, folder, trained=True)
    else:
        tokenizer = tokenizer_of(family)
        save_checkpoint(classifier_of(family, vocab_size=max(tokenizer.get_vocab().values()) + 1), tokenizer, folder)
    pieces = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    auto(vocab=[tuple(piece) for piece in pieces]).save_pretrained(folder)
    expected, tokenizer = AutoTokenizer.from_pretrained(folder)("a dog", "a good film"), load_tokenizer(folder)
    ids, segments = rows_of(tokenizer)
    assert "token_type_ids" not in expected
    assert ids.tolist() == [expected["input_ids"]]
    assert not segments.any()
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(
            model(input_ids=ids, token_type_ids=segments).logits, model(input_ids=ids).logits, rtol=0, atol=1e-6
        )
    settings = folder / "tokenizer_config.json"
    document = json.loads(settings.read_text())
    del document["backend"]  # as transformers 4 wrote it, whose classes gave segments
    settings.write_text(json.dumps(document))
    assert rows_of(load_tokenizer(folder))[1].any()
