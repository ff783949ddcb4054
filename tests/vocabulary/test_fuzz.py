"""Texts whose tokens are all kept have the same tokens; no other text gets a new unknown token."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer
from vocabulary_toys import ALGORITHMS, sentences, strings, tokenizer, words

from compress.vocabulary import count_texts, kept_tokens, permanent_tokens, with_tokens


def cut_down(algorithm: str, most: int | None = None) -> tuple[Tokenizer, Tokenizer, np.ndarray]:
    """Return the tokenizers before and after, and the ids of the kept tokens: those of some texts."""
    before = tokenizer(algorithm)
    counts = count_texts(before, [sentences(150, seed=2), strings(100, seed=3)])
    kept = kept_tokens(before, permanent_tokens(before), counts, most=most)
    return before, with_tokens(before, kept), kept


def check(algorithm: str, count: int) -> None:
    before, after, kept = cut_down(algorithm)
    assert 100 < len(kept) < 0.7 * before.get_vocab_size()
    every, unknown = strings(count, seed=4), {before.token_to_id(name) for name in ("[UNK]", "<unk>")}
    stays = set(kept.tolist())
    whole = 0
    for start in range(0, count, 10_000):
        texts = every[start : start + 10_000]
        encoded = zip(texts, before.encode_batch(texts), after.encode_batch(texts), strict=True)
        for text, old, new in encoded:
            if stays.issuperset(old.ids):
                whole += 1
                assert kept[new.ids].tolist() == old.ids, text
                assert new.offsets == old.offsets
            missing = [sum(number in unknown for number in ids) for ids in (old.ids, kept[new.ids].tolist())]
            assert missing[0] == missing[1], text
    assert 0.2 * count < whole < 0.9 * count


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_text_whose_tokens_stay_keeps_them_and_none_gets_an_unknown_one(algorithm: str) -> None:
    check(algorithm, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_so_do_a_hundred_thousand_texts(algorithm: str) -> None:
    check(algorithm, 100_000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_at_most_so_many_tokens_stay_and_they_serve_as_before(algorithm: str) -> None:
    before = tokenizer(algorithm)
    most = len(permanent_tokens(before)) + 120
    _, after, kept = cut_down(algorithm, most=most)
    assert most - 8 <= len(kept) <= most and after.get_vocab_size() == len(kept)
    stays, texts = set(kept.tolist()), words()
    whole = [text for text, old in zip(texts, before.encode_batch(texts), strict=True) if stays.issuperset(old.ids)]
    assert 0 < len(whole) < len(texts)
    for text in whole:
        assert kept[after.encode(text).ids].tolist() == before.encode(text).ids
