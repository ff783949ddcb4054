"""Words of texts and their tokens, for any script, tokenizer and window length."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tokenizer_toys import TOKENIZERS, text, wordpiece
from tokenizers import Tokenizer

from compress.runtime import words as words_module
from compress.runtime.words import NOWHERE, Windower, word_spans

EACH = pytest.mark.parametrize("name", list(TOKENIZERS))


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\r\n\u00a0\u2003", []),
        ("Ann's x1, e-mail.", ["Ann", "'", "s", "x1", ",", "e", "-", "mail", "."]),
        ("caf\u00e9 cafe\u0301", ["café", "cafe\u0301"]),
        ("क्षि का है।", ["क्षि", "का", "है", "।"]),
        ("ภาษาไทย ดี", ["ภาษาไทย", "ดี"]),
        ("שָׁלוֹם مُحَمَّد", ["שָׁלוֹם", "مُحَمَّد"]),
        ("می\u200cخواهم co\u00adop", ["می\u200cخواهم", "co\u00adop"]),
        ("👩\u200d👧 ⚠\ufe0f!", ["👩", "👧", "⚠\ufe0f", "!"]),
        ("\ufeffa\u200bb\x00\u202ec\u2066", ["a", "b", "c"]),
        ("漢字。", ["漢字", "。"]),
    ],
)
def test_words_of_every_script(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_spans_are_in_order_apart_and_leave_out_no_letter() -> None:
    rng = random.Random(0)
    for _ in range(300):
        odd = text(rng)
        spans = word_spans(odd)
        assert (spans[:, 0] < spans[:, 1]).all()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        inside = {place for start, end in spans for place in range(start, end)}
        assert {match.start() for match in re.finditer(r"\w", odd)} <= inside
        assert not {match.start() for match in re.finditer(r"\s", odd)} & inside
    assert word_spans("").shape == (0, 2)
    assert word_spans("").dtype == np.int64


def whole(own: Tokenizer, text: str) -> tuple[list[int], np.ndarray]:
    """Return (ids of a text that is not cut, without special tokens; the number of each word's first token), by a plain loop."""
    encoding = own.encode(text, add_special_tokens=False)
    first = [
        next((i for i, (a, b) in enumerate(encoding.offsets) if b > a and a < end and b > start), NOWHERE)
        for start, end in word_spans(text)
    ]
    return encoding.ids, np.array(first, np.int64)


@EACH
def test_windows_of_any_length_give_each_word_its_first_token(name: str) -> None:
    """Compares the token's number in the whole text, so that equal tokens are not confused."""
    own, rng = TOKENIZERS[name](), random.Random(name)
    special = own.num_special_tokens_to_add(False)
    windowers = {length: Windower(own, length) for length in (4, 5, 7, 9, 16, 33, 512)}
    several = unread = total = 0
    for _ in range(300):
        odd = re.sub(r"<mask>|</s>", "", text(rng)) if name == "roberta" else text(rng)  # see the test below
        ids, expected = whole(own, odd)
        length = rng.choice(list(windowers))
        cut = windowers[length]([odd], [word_spans(odd)])
        room = length - special
        step = room - min(max(room // 4, 1), room - 1)
        read = cut.places.window != NOWHERE
        actual = np.where(read, cut.places.window * step + cut.places.position - special // 2, NOWHERE)
        np.testing.assert_array_equal(actual, expected, err_msg=repr(odd))
        for number, encoding in enumerate(cut.encodings):
            assert len(encoding) <= length
            assert (
                encoding.ids[special // 2 : len(encoding) - special // 2] == ids[number * step : number * step + room]
            )
        several += len(cut.encodings) > 2
        unread, total = unread + int((~read).sum()), total + len(read)
    assert several > 80
    assert unread < 0.1 * total


def test_what_a_byte_level_tokenizer_says_after_an_added_token() -> None:
    """With `add_prefix_space` it counts a space that is not there, so a `[` after <mask> has no characters and its word no token. In a
    window that begins there it has one. Both are within the contract."""
    own = TOKENIZERS["roberta"]()
    assert own.encode("<mask>[").offsets[-2] == (7, 7)
    cut = Windower(own, 16)(["<mask>["], [word_spans("<mask>[")])
    assert cut.places.window[-1] == NOWHERE


@EACH
def test_texts_together_are_what_they_are_alone(name: str) -> None:
    rng = random.Random(name)
    own = TOKENIZERS[name]()
    windower, texts = Windower(own, 12), ["", *(text(rng) for _ in range(20)), " ", "film"]
    spans = [word_spans(each) for each in texts]
    together = windower(texts, spans)
    start = before = 0
    for each, of_each in zip(texts, spans, strict=True):
        alone = windower([each], [of_each])
        count = len(alone.encodings)
        assert [one.ids for one in alone.encodings] == [one.ids for one in together.encodings[before : before + count]]
        window = together.places.window[start : start + len(of_each)]
        np.testing.assert_array_equal(window, np.where(alone.places.window < 0, NOWHERE, alone.places.window + before))
        np.testing.assert_array_equal(together.places.position[start : start + len(of_each)], alone.places.position)
        start, before = start + len(of_each), before + count
    assert start == len(together.places.window)
    assert before == len(together.encodings)


def test_a_word_is_decided_where_it_has_most_context() -> None:
    """Windows of 8 tokens share 2: the first of these belongs to the window before, the second to the one after."""
    own = wordpiece(True, True)
    line = " ".join(["a"] * 20)
    cut = Windower(own, 10)([line], [word_spans(line)])
    assert [len(one) for one in cut.encodings] == [10, 10, 10]
    assert cut.places.window.tolist() == [0] * 7 + [1] * 6 + [2] * 7
    assert cut.places.position.tolist() == [*range(1, 8), *range(2, 8), *range(2, 9)]


def test_a_text_that_fits_is_one_window() -> None:
    own = wordpiece(True, True)
    line = " ".join(["a"] * 8)
    cut = Windower(own, 10)([line, ""], [word_spans(line), word_spans("")])
    assert len(cut.encodings) == 2
    assert set(cut.places.window.tolist()) == {0}
    assert cut.places.position.tolist() == list(range(1, 9))


def test_words_that_become_no_token_are_nowhere() -> None:
    """Words that a normalizer removes, also at both ends of a text and alone in it."""
    own = wordpiece(True, True)
    texts = ["\u0301", "good \u0301 film", "\u200d a", "a \ue000", ""]
    places = [[(0, 1)], [(0, 4), (5, 6), (7, 11)], [(0, 1), (2, 3)], [(0, 1), (2, 3)], []]
    spans = [np.array(each, np.int64).reshape(-1, 2) for each in places]
    cut = Windower(own, 10)(texts, spans)
    assert cut.places.window.tolist() == [NOWHERE, 1, NOWHERE, 1, NOWHERE, 2, 3, NOWHERE]
    assert cut.places.position.tolist() == [NOWHERE, 1, NOWHERE, 2, NOWHERE, 1, 1, NOWHERE]


def test_a_word_that_begins_inside_a_token_gets_that_token() -> None:
    own = wordpiece(True, False)
    cut = Windower(own, 10)(["漢字 a"], [np.array([(0, 1), (1, 2), (3, 4)])])
    assert cut.places.position.tolist() == [1, 1, 2]


def test_a_word_longer_than_a_window_is_decided_by_its_first_token() -> None:
    own = TOKENIZERS["roberta"]()
    line = "film " + "x" * 300 + " film"
    cut = Windower(own, 12)([line], [word_spans(line)])
    ids, expected = whole(own, line)
    tokens = [
        cut.encodings[window].ids[position]
        for window, position in zip(cut.places.window, cut.places.position, strict=True)
    ]
    assert tokens == [ids[i] for i in expected]


def test_a_token_without_characters_stands_for_no_word() -> None:
    """A byte-level tokenizer trims spaces off its tokens; tokens of only spaces have no characters left."""
    own = TOKENIZERS["roberta"]()
    cut = Windower(own, 12)(["film   a"], [np.array([(0, 4), (5, 8)])])
    offsets = [cut.encodings[0].offsets[position] for position in cut.places.position]
    assert offsets == [(0, 4), (7, 8)]
    assert any(start == end for start, end in cut.encodings[0].offsets[1:-1])


def test_padding_and_truncation_of_the_tokenizer_have_no_say() -> None:
    own = wordpiece(True, True)
    own.enable_padding(length=50)
    own.enable_truncation(5, direction="left")
    before = own.truncation, own.padding
    line = " ".join(["a"] * 20)
    cut = Windower(own, 10)([line], [word_spans(line)])
    assert [len(one) for one in cut.encodings] == [10, 10, 10]
    assert (own.truncation, own.padding) == before


def test_words_are_looked_for_near_each_window_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching all words would make the work grow with windows times words."""
    looked: list[int] = []
    words_near = words_module._words_near

    def counted(*arguments: Any, **more: Any) -> Any:
        near = words_near(*arguments, **more)
        looked.append(len(near.position))
        return near

    monkeypatch.setattr(words_module, "_words_near", counted)
    count, windower = 4_000, Windower(wordpiece(True, True), 16)
    spans = np.arange(count)[:, None] * 2 + np.array([0, 1])
    cut = windower(["a " * count], [spans])
    assert len(cut.places.window) == count and len(cut.encodings) > 300
    assert sum(looked) <= 14 * len(cut.encodings)  # a window has room for 14
