"""A tokenizer reduced to some of its tokens: ids, merges, scores, special tokens around texts, and what cannot be reduced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer
from vocabulary_toys import ALGORITHMS, sentences, tokenizer

from compress.errors import CompressError
from compress.models.checkpoints.folders import save_tokenizer
from compress.runtime.cutting import truncation_side
from compress.tokenization.truncation import set_truncation_side
from compress.vocabulary import (
    TextCounts,
    algorithm_of,
    compare_texts,
    count_texts,
    fewest_tokens,
    kept_tokens,
    permanent_tokens,
    with_tokens,
)


def bpe(*merges: tuple[str, str], **options: Any) -> Tokenizer:
    tokens = dict.fromkeys([*"abcdx", *("".join(pair) for pair in merges)])
    return Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, [*merges], **options))


def kept_of(own: Tokenizer, *texts: str, most: int | None = None) -> list[str]:
    counts = count_texts(own, [texts])
    kept = kept_tokens(own, permanent_tokens(own), counts, most=most)
    return [own.id_to_token(number) or "" for number in kept]


def parts(own: Tokenizer) -> dict[str, Any]:
    return json.loads(own.to_str())


def test_a_merged_token_stays_with_all_that_it_is_merged_from() -> None:
    own = bpe(("a", "b"), ("b", "c"), ("c", "d"), ("ab", "c"), ("a", "bc"), ("abc", "d"))
    assert own.encode("abcd").tokens == ["ab", "cd"]
    assert kept_of(own, "abcd") == [*"abcdx", "ab", "cd"]
    # `abc` is ab + c, as `ab` is merged first; it is never a + bc.
    assert kept_of(own, "abc") == [*"abcdx", "ab", "abc"]
    after = with_tokens(own, np.array([0, 1, 2, 3, 4, 5, 8]))
    assert parts(after)["model"]["merges"] == [["a", "b"], ["ab", "c"]]
    assert after.encode("abcx").tokens == ["abc", "x"]


def test_where_the_limit_is_near_a_token_is_left_out_with_its_parts_and_the_next_one_that_fits_stays() -> None:
    own = bpe(("a", "b"), ("ab", "c"), ("c", "d"))
    assert kept_of(own, *["abc"] * 3, "cd", most=6) == [*"abcdx", "cd"]
    assert kept_of(own, *["abc"] * 3, "cd", most=7) == [*"abcdx", "ab", "abc"]


def test_a_whole_word_that_no_merges_make_stays_by_itself() -> None:
    own = Tokenizer(
        models.BPE({**{letter: number for number, letter in enumerate("abc")}, "abc": 3}, [], ignore_merges=True)
    )
    assert own.encode("abc").tokens == ["abc"]
    assert kept_of(own, "abc") == ["a", "b", "c", "abc"]
    assert with_tokens(own, np.array([0, 1, 2, 3])).encode("abc").tokens == ["abc"]


def test_what_smaller_pieces_could_not_stand_for_stays() -> None:
    """`x` is no token inside words, and `é` no token at all: only longer tokens contain them."""
    tokens = ["[PAD]", "[UNK]", "a", "b", "##a", "##b", "x", "ab", "##abab", "##ax", "éa", "##"]
    own = Tokenizer(models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    stays = {own.id_to_token(number) for number in permanent_tokens(own)}
    assert stays == {"[PAD]", "[UNK]", "a", "b", "##a", "##b", "x", "##ax", "éa", "##"}


def test_of_unigrams_the_lowest_score_stays_and_what_is_unknown_costs_as_before() -> None:
    table = [("<unk>", 0.0), ("a", -1.0), ("b", -1.0), ("ab", -1.5), ("zq", -9.0), ("ba", -30.0), ("aa", -3.0)]
    own = Tokenizer(models.Unigram(table, unk_id=0))
    assert kept_of(own, "a") == ["<unk>", "a", "b", "zq", "ba"]
    after = with_tokens(own, np.array([0, 1, 2, 4, 5]))
    assert parts(after)["model"]["vocab"] == [list(table[number]) for number in (0, 1, 2, 4, 5)]
    assert parts(after)["model"]["unk_id"] == 0
    assert after.encode("az b").tokens == own.encode("az b").tokens


def test_bytes_that_stand_for_unknown_characters_stay() -> None:
    table = [("<unk>", 0.0), ("a", -1.0), *((f"<0x{byte:02X}>", -5.0) for byte in range(256)), ("aa", -2.0)]
    own = Tokenizer(models.Unigram(table, unk_id=0, byte_fallback=True))
    assert len(permanent_tokens(own)) == 258
    after = with_tokens(own, np.arange(258))
    assert after.encode("aé").tokens == own.encode("aé").tokens == ["a", "<0xC3>", "<0xA9>"]


def test_numbers_follow_wherever_they_stand() -> None:
    """The padding token after the words, an added token after it, two post-processors in sequence, and padding enabled."""
    tokens = ["[UNK]", "a", "ab", "b", "[CLS]", "##b", "[SEP]", "[PAD]", "##bb"]
    own = Tokenizer(models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    own.add_special_tokens(["[CLS]", "[SEP]", "[PAD]"])
    own.add_tokens([AddedToken("whole word", normalized=False)])
    ends = [("[CLS]", 4), ("[SEP]", 6)]
    template = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B", special_tokens=ends)
    own.post_processor = processors.Sequence([processors.ByteLevel(), template])
    own.enable_padding(pad_id=7, pad_token="[PAD]")
    assert permanent_tokens(own) == {0, 1, 3, 4, 5, 6, 7, 9}
    assert permanent_tokens(own, [2, 99]) == {0, 1, 2, 3, 4, 5, 6, 7, 9}
    after = with_tokens(own, np.array([0, 1, 3, 4, 5, 6, 7, 9]))
    assert {token: after.token_to_id(token) for token in ("[UNK]", "b", "[CLS]", "[SEP]", "[PAD]", "whole word")} == {
        "[UNK]": 0, "b": 2, "[CLS]": 3, "[SEP]": 5, "[PAD]": 6, "whole word": 7
    }  # fmt: skip
    assert after.encode("a whole word b").ids == [3, 1, 7, 2, 5]
    assert after.padding is None and own.padding is not None  # the argument is unchanged


@pytest.mark.parametrize("around", [processors.BertProcessing, processors.RobertaProcessing])
def test_what_stands_around_texts_has_its_new_numbers(around: Any) -> None:
    own = Tokenizer(models.WordPiece({"[UNK]": 0, "aa": 1, "a": 2, "##a": 5, "</s>": 3, "<s>": 4}, unk_token="[UNK]"))
    own.post_processor = around(("</s>", 3), ("<s>", 4))
    kept = np.array(sorted(permanent_tokens(own)))
    assert kept.tolist() == [0, 2, 3, 4, 5]
    assert with_tokens(own, kept).encode("a").ids == [3, 1, 2]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")), "model.type: .*WordPiece, BPE, Unigram; found WordLevel"),
        (bpe(("a", "b"), end_of_word_suffix="</w>"), "model.end_of_word_suffix: expected none, as in byte-level BPE; found '</w>'"),
        (Tokenizer(models.BPE({"a": 0, "##b": 1, "ab": 2}, [("a", "##b")], continuing_subword_prefix="##")),
         "model.continuing_subword_prefix: expected none"),
        (bpe(("a", "b"), dropout=0.5), "model.dropout: expected none; found 0.5"),
    ],
)  # fmt: skip
def test_what_cannot_be_cut_down_is_refused_by_its_field(own: Tokenizer, message: str) -> None:
    for refused in (algorithm_of, permanent_tokens, lambda own: with_tokens(own, np.arange(2))):
        with pytest.raises(CompressError, match=message):
            refused(own)


def test_numbers_with_a_gap_close_up_and_those_that_cannot_are_refused() -> None:
    gap = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 5, "b": 9}, unk_token="[UNK]"))
    assert with_tokens(gap, np.array([0, 5, 9])).encode("b").ids == [2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_transformers_reads_it_alike(algorithm: str, tmp_path: Path) -> None:
    before = tokenizer(algorithm)
    counts = count_texts(before, [sentences(50, seed=2)])
    after = with_tokens(before, kept_tokens(before, permanent_tokens(before), counts))
    save_tokenizer(after, tmp_path, family="bert" if algorithm == "WordPiece" else "roberta", max_length=64)
    texts = [*sentences(50, seed=3), "É 漢字 [SEP] </s> <mask> zq", ""]
    for fast in (True, False):
        theirs: Any = AutoTokenizer.from_pretrained(tmp_path, use_fast=fast)
        assert len(theirs) == after.get_vocab_size()
        assert theirs(texts)["input_ids"] == [encoding.ids for encoding in after.encode_batch(texts)]
        assert theirs(texts, texts)["input_ids"] == [
            each.ids for each in after.encode_batch([*zip(texts, texts, strict=True)])
        ]
        for name in ("pad", "cls", "sep", "mask", "unk"):
            token = getattr(theirs, f"{name}_token")
            assert token is None or getattr(theirs, f"{name}_token_id") == after.token_to_id(token)


def test_counts_of_texts_in_both() -> None:
    own = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, "ab": 3, "b": 4, "##a": 5}, unk_token="[UNK]"))
    own.pre_tokenizer, own.decoder = pre_tokenizers.Whitespace(), decoders.WordPiece()
    after = with_tokens(own, np.array([0, 1, 2, 4, 5]))
    counts = compare_texts(own, after, [["ab a", "b"], ["z ba", ""]])
    assert counts == TextCounts(texts=4, same=3, tokens=6, unknown=1, tokens_after=7, unknown_after=1)
    assert counts.rates.unknown == pytest.approx(1 / 6) and counts.rates.same == 3
    assert TextCounts().rates.unknown == 0


@pytest.mark.parametrize("unknown", ["", "<nothing>"])
def test_an_unknown_token_that_the_vocabulary_lacks_is_none(unknown: str) -> None:
    """As in byte-level BPE, which knows every byte."""
    own = bpe(("a", "b"), ("ab", "c"), unk_token=unknown)
    assert kept_of(own, "ab") == [*"abcdx", "ab"]
    assert compare_texts(own, with_tokens(own, np.arange(6)), [["ab", "abc"]]) == TextCounts(2, 1, 2, 0, 3, 0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_fewer_tokens_stay_than_are_foreseen(algorithm: str) -> None:
    own, rng = tokenizer(algorithm), np.random.default_rng(0)
    permanent, size = permanent_tokens(own), own.get_vocab_size()
    for texts in (20, 200):
        counts = count_texts(own, [sentences(texts, seed=texts)])
        others = count_texts(own, [sentences(100, seed=7)])
        ranked = counts.copy()
        ranked[rng.integers(size)] = counts.max() + 1  # a token that the run ranks first because of its weights
        whole = len(kept_tokens(own, permanent, counts))
        assert fewest_tokens(own, permanent, counts) == whole
        for most in (len(permanent) + 1, (len(permanent) + whole) // 2, whole + 50):
            fewest = fewest_tokens(own, permanent, counts, most=most)
            for ranks, beside in ((counts, None), (ranked, None), (ranked, others)):
                assert fewest <= len(kept_tokens(own, permanent, ranks, beside, most=most)) <= most
            if algorithm != "BPE":  # in the other algorithms no token needs others
                assert fewest == min(most, whole)
            assert fewest >= min(most, whole) - 16


def test_room_that_a_merged_token_with_its_parts_does_not_fit_into_is_foreseen() -> None:
    own = bpe(("a", "b"), ("c", "d"), ("ab", "cd"))
    permanent, counts = permanent_tokens(own), count_texts(own, [["abcd"]])
    for most, left in ((6, 5), (7, 5), (8, 8)):
        assert len(kept_of(own, "abcd", most=most)) == left
        assert fewest_tokens(own, permanent, counts, most=most) <= left
    assert fewest_tokens(own, permanent, counts) == 8


def test_an_added_token_that_the_algorithm_could_not_spell_is_counted_once() -> None:
    """Byte-level BPE spells `€` in three bytes: none of its tokens is that character."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    own = Tokenizer(models.BPE({token: number for number, token in enumerate([*letters, "ab"])}, [("a", "b")]))
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.add_tokens(["€"])
    permanent, counts = permanent_tokens(own), count_texts(own, [["ab €"]])
    assert counts[own.token_to_id("€")] == 1
    assert fewest_tokens(own, permanent, counts) == len(kept_tokens(own, permanent, counts)) == len(letters) + 2


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_side_to_truncate_on_stays(side: str) -> None:
    own = tokenizer("WordPiece")
    set_truncation_side(own, side)
    assert truncation_side(with_tokens(own, np.arange(own.get_vocab_size()))) == side
