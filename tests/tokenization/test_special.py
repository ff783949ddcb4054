"""Special tokens are found by what the tokenizer does with them."""

from __future__ import annotations

from corpus_toys import bert_tokenizer, roberta_tokenizer

from compress.tokenization.special import special_ids


def test_special_tokens_of_both_styles_are_found():
    bert, roberta = special_ids(bert_tokenizer()), special_ids(roberta_tokenizer())
    assert (bert.cls, bert.sep, bert.pad, bert.mask, bert.every) == (2, 3, 0, 4, (0, 1, 2, 3, 4))
    assert (roberta.cls, roberta.sep, roberta.pad, roberta.mask, roberta.every) == (0, 2, 1, 260, (0, 1, 2, 3, 260))
