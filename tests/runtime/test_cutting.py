"""A text that is cut before it is tokenized has the tokens of the whole, whatever its tokenizer and whatever is in it."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mpnet_toys import mpnet_tokenizer
from runtime_toys import bag
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from compress.corpus.vocabulary import byte_level
from compress.runtime import Classifier, cutting
from compress.runtime.cutting import Cutter

CORPUS = ["the film is not bad", "a good film, and not the last 漢字", "é zebra [x] 12"]
PIECES = (
    *(
        "a",
        "film",
        "Good",
        "bad.",
        "don't",
        "x1",
        "7",
        "é",
        "e\u0301",
        "\u0301",
        "ﷺ",
        "ǆ",
        "İ",
        "ß",
        "한",
        "\u1112\u1161\u11ab",
    ),
    *(
        " ",
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\u00a0",
        "\u2003",
        "\u200b",
        "\u200d",
        "\u0600",
        "\ufeff",
        "\u00ad",
    ),
    *(
        "漢",
        "字",
        "漢字漢字",
        "豈",
        "👩\u200d👩\u200d👧",
        "🇩🇪",
        "[MASK]",
        "<mask>",
        " <mask>",
        "[SEP]",
        "</s>",
        "[",
        "]",
        "…",
        "``",
        "▁",
    ),
    *("\x00", "\x1c", "\ufffd", "w" * 120, "ab" * 40, "क्षि", "ا", "ـ", "\U000103a0", "-", "'s", "_", "=\u0338"),
)


def wordpiece(lowercase: bool, chinese: bool) -> Tokenizer:
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "good",
        "bad",
        "film",
        "Good",
        "漢",
        "字",
        "漢字",
        ".",
        "a",
        "##b",
        "e",
        "x",
        "##1",
    ]
    own = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    own.normalizer = normalizers.BertNormalizer(lowercase=lowercase, handle_chinese_chars=chinese)
    own.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    own.add_special_tokens(words[:5])
    own.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return own


def unigram(splitter: pre_tokenizers.PreTokenizer, *more: normalizers.Normalizer) -> Tokenizer:
    """As ALBERT and XLM-R have it; their own table of characters needs a program that is not here, so it is an empty one."""
    own = Tokenizer(models.Unigram())
    table = normalizers.Precompiled(struct.pack("<I1024xB", 1024, 0))
    quotes, spaces = normalizers.Replace("``", '"'), normalizers.Replace(Regex(" {2,}"), " ")
    own.normalizer = normalizers.Sequence([quotes, table, *more, spaces])
    own.pre_tokenizer = splitter
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False)
    own.train_from_iterator(CORPUS * 20, trainer)
    own.add_special_tokens(["<mask>"])
    pair = "<s> $A </s> </s> $B </s>"
    own.post_processor = processors.TemplateProcessing("<s> $A </s>", pair, [("<s>", 0), ("</s>", 2)])
    return own


def metaspace_after_words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "bert, uncased": lambda: wordpiece(True, True),
    "bert, cased, Chinese in words": lambda: wordpiece(False, False),
    "roberta": lambda: byte_level(CORPUS, 300),
    "mpnet": mpnet_tokenizer,
    "xlm-roberta": lambda: unigram(metaspace_after_words(), normalizers.Strip()),
    "albert": lambda: unigram(
        pre_tokenizers.Metaspace(), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()
    ),
}
EACH = pytest.mark.parametrize("name", list(TOKENIZERS))


def text(rng: random.Random) -> str:
    """A few pieces again and again, with and without spaces: long enough to be cut."""
    some = rng.sample(PIECES, rng.choice((1, 2, 5, len(PIECES)))) + rng.choice(([], ["film", " "], ["film", " "]))
    spaced = rng.choice(("", "", " ", "  "))
    return spaced.join(rng.choices(some, k=rng.choice((3, 100, 200))))[: rng.choice((20, 200, 300))]


@EACH
def test_the_tokens_are_those_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch):
    """Of short texts, as if they were long: what tokenizers does with two long ones it keeps for each pair of their parts."""
    for size, value in (("LONG", 2), ("_FIRST", 1), ("_PART", 20)):
        monkeypatch.setattr(cutting, size, value)
    whole_text, rng = TOKENIZERS[name]().to_str(), random.Random(name)
    kept = {length: Tokenizer.from_str(whole_text) for length in (12, 13, 14, 15)}
    for length, own in kept.items():
        own.enable_truncation(length, strategy="longest_first")
    cutters = {length: Cutter(own) for length, own in kept.items()}
    cut = 0
    for number in range(600):
        own = kept[length := rng.choice((12, 13, 14, 15))]
        texts = [text(rng), text(rng)] if number % 2 else [text(rng)]
        whole = texts[0] if len(texts) == 1 else (texts[0], texts[1])
        short = cutters[length].cut(whole)
        cut += short != whole
        expected, found = own.encode_batch([whole])[0], own.encode_batch([short])[0]
        assert (found.ids, found.type_ids) == (expected.ids, expected.type_ids), repr(texts)
    assert cut > 50


@EACH
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

    own, long = classifier.tokenizer, "good film " * 100_000
    expected = classifier.logits([long[:20_000]])
    classifier.tokenizer = Recorder()  # type: ignore[assignment]
    assert (classifier.logits([long]) == expected).all()
    assert max(seen) < 100_000


CHILD = """
import sys
from tokenizers import Tokenizer
import numpy as np
from compress.bench.child import peak_memory_bytes
from compress.tasks import Split, encode
own = Tokenizer.from_file(sys.argv[1])
before = peak_memory_bytes()
encoded = encode(own, Split((["good film "] * 3 + ["good film " * 500_000],), np.zeros(4)), 32)
assert len(encoded.input_ids[3]) == 32
print(peak_memory_bytes() - before)
"""


def test_encoding_a_split_takes_no_memory_for_what_is_cut_away(tmp_path: Path):
    """5 MB of text; tokenized whole they take some 500 MB."""
    wordpiece(True, True).save(str(tmp_path / "tokenizer.json"))
    run = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path / "tokenizer.json"], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 60e6
