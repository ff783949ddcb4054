"""A text cut before tokenization has the same tokens as the whole text, for any tokenizer and content."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from default_suite import keeping
from runtime_toys import bag
from tokenizer_toys import CORPUS, TOKENIZERS, text, wordpiece
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers

from compress.corpus.vocabulary import byte_level
from compress.runtime import Classifier, cutting
from compress.runtime.cutting import Cutter
from compress.runtime.long_pairs import LongPairs, Tokens

EACH = pytest.mark.parametrize("name", list(TOKENIZERS))


@EACH
def test_the_tokens_are_those_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch):
    """Uses short texts with small limits, because tokenizers keeps an entry for each pair of parts of two long texts."""
    for size, value in (("LONG", 2), ("_FIRST", 1), ("_PART", 20)):
        monkeypatch.setattr(cutting, size, value)
    whole_text, rng = TOKENIZERS[name]().to_str(), random.Random(name)
    kept = {length: Tokenizer.from_str(whole_text) for length in (12, 13, 14, 15)}
    for length, own in kept.items():
        own.enable_truncation(length, strategy="longest_first")
    cutters = {length: Cutter(own) for length, own in kept.items()}
    cut = 0
    for number in range(200):
        own = kept[length := rng.choice((12, 13, 14, 15))]
        texts = [text(rng), text(rng)] if number % 2 else [text(rng)]
        whole = texts[0] if len(texts) == 1 else (texts[0], texts[1])
        short = cutters[length].cut(whole)
        cut += short != whole
        expected, actual = own.encode_batch([whole])[0], own.encode_batch([short])[0]
        assert (actual.ids, actual.type_ids) == (expected.ids, expected.type_ids), repr(texts)
    assert cut > 15


@pytest.mark.parametrize("name", keeping(TOKENIZERS, ("bert, uncased", "roberta", "xlm-roberta")))
def test_of_a_long_text_little_is_left(name: str):
    own = TOKENIZERS[name]()
    own.enable_truncation(16)
    words = " ".join(f"film {number}" for number in range(100_000))
    assert len(str(Cutter(own).cut(words))) < 300
    first, second = Cutter(own).cut((words, "good"))
    assert len(first) < 300
    assert second == "good"
    assert max(map(len, Cutter(own).cut((words, words)))) < 300


def test_text_without_spaces():
    own = wordpiece(True, True)
    own.enable_truncation(16)
    assert len(str(Cutter(own).cut("漢字" * 100_000))) < 300


def whole_for(own: Tokenizer) -> None:
    words = "good film [MASK] " * 10_000
    assert Cutter(own).cut(words) == words


def test_a_tokenizer_that_could_read_over_the_cut_is_given_the_whole():
    own = wordpiece(True, True)
    whole_for(own)  # it truncates nothing
    own.enable_truncation(16, direction="left")
    whole_for(own)
    own.enable_truncation(16, strategy="only_first")
    whole_for(own)
    own.enable_truncation(16)
    assert Cutter(own).cut("good film " * 10_000) != "good film " * 10_000
    own.add_tokens(["film good"])
    whole_for(own)


@pytest.mark.parametrize("what", ["dropout", "no words", "spaces away", "one word", "Metaspace in one"])
def test_so_is_one_whose_words_are_not_known(what: str):
    own = byte_level(CORPUS, 300)
    own.enable_truncation(16)
    if what == "dropout":
        own.model.dropout = 0.1
    elif what == "no words":
        own.pre_tokenizer = pre_tokenizers.ByteLevel(use_regex=False)
    elif what == "spaces away":
        own.normalizer = normalizers.Replace(" ", "")
    elif what == "one word":
        own.pre_tokenizer = None  # type: ignore[assignment]
    else:
        own.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
        own.decoder = decoders.Metaspace()
    whole_for(own)


def test_a_classifier_cuts_what_it_is_given(tmp_path: Path):
    classifier = Classifier(bag(tmp_path / "bundle"))
    seen: list[int] = []

    class Recorder:
        def encode_batch_fast(self, window: list[str]) -> list:
            seen.extend(map(len, window))
            return own.encode_batch_fast(window)

    own, long = classifier._cutter._tokenizer, "good film " * 100_000
    expected = classifier.logits([long[:20_000]])
    classifier._cutter._tokenizer = Recorder()  # type: ignore[assignment]
    assert (classifier.logits([long]) == expected).all()
    assert max(seen) < 100_000


CHILD = """
import sys
from tokenizers import Tokenizer
import numpy as np
from compress.bench.child import peak_memory_bytes
from compress.tasks import Split, encode
own, texts, kept = Tokenizer.from_file(sys.argv[1]), eval(sys.argv[2]), int(sys.argv[3])
before = peak_memory_bytes()
encoded = encode(own, Split(texts, np.zeros(len(texts[0]))), kept)
assert len(encoded.input_ids[-1]) == kept
print(peak_memory_bytes() - before)
"""
RECORD = """'{"id":1,"tags":["film","good"],"n":2.5},' * 400"""


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        # 5 MB of text; tokenized whole they take some 500 MB.
        ("(['good film '] * 3 + ['good film ' * 500_000],)", 32),
        # A pair of 16 kB each, without spaces; tokenizers would keep each part of one beside each part of the other, gigabytes.
        (f"([{RECORD}], [{RECORD}])", 64),
    ],
    ids=["a long text", "a pair without spaces"],
)
def test_encoding_a_split_takes_no_memory_for_what_is_cut_away(tmp_path: Path, texts: str, kept: int):
    wordpiece(True, True).save(str(tmp_path / "tokenizer.json"))
    command = [sys.executable, "-c", CHILD, tmp_path / "tokenizer.json", texts, str(kept)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 60e6


@EACH
@pytest.mark.parametrize("side", ["left", "right"])
def test_long_pairs_are_truncated_as_tokenizers_does_it(name: str, side: Literal["left", "right"]):
    whole, rng = TOKENIZERS[name](), random.Random(f"{name} {side}")
    kept = {length: Tokenizer.from_str(whole.to_str()) for length in (12, 13, 40)}
    for length, own in kept.items():
        own.enable_truncation(length, strategy="longest_first", direction=side)
    truncated = 0
    for _ in range(150):
        length, pair = rng.choice([*kept]), (text(rng), text(rng) if rng.random() < 0.9 else "")
        expected, actual = kept[length].encode(*pair), LongPairs(whole, length, side).encode(*pair)
        assert (actual.ids, actual.type_ids) == (expected.ids, expected.type_ids), repr(pair)
        assert actual.attention_mask == expected.attention_mask and len(actual) == len(expected)
        truncated += bool(expected.overflowing)
    assert truncated > 50


@pytest.mark.parametrize("side", ["left", "right"])
def test_pairs_that_cannot_be_cut_are_not_truncated_by_tokenizers(side: Literal["left", "right"]):
    own = wordpiece(True, True)
    own.enable_truncation(16, strategy="longest_first", direction=side)
    long = "good-film," * 60
    texts: list[str | tuple[str, str]] = [("good", "film"), (long, "film"), "good", ("film", long), (long, long)]
    encodings = Cutter(own).encode(texts)
    assert [isinstance(each, Tokens) for each in encodings] == [False, True, False, True, True]
    for each, whole in zip(encodings, own.encode_batch(texts), strict=True):
        assert (each.ids, each.type_ids) == (whole.ids, whole.type_ids)


@pytest.mark.parametrize("length", [12, 14, 16])
def test_the_odd_token_is_the_longer_texts_also_where_its_first_part_is_the_shorter(length: int):
    own = wordpiece(True, True)
    own.enable_truncation(length)
    first, second = "a " * 1000, "the " + "a " * 2000
    cut_first, cut_second = Cutter(own).cut((first, second))
    assert own.encode(cut_first, cut_second).ids == own.encode(first, second).ids
