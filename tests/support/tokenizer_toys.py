"""Small tokenizers of each algorithm, and texts of odd pieces."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from mpnet_toys import mpnet_tokenizer
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from compress.corpus.vocabulary import byte_level

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
    """Return a tokenizer like ALBERT's and XLM-R's, with an empty character table, because making their own needs another
    program."""
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


def text(rng: random.Random) -> str:
    """Return a few pieces repeated, with or without spaces, long enough to be truncated."""
    some = rng.sample(PIECES, rng.choice((1, 2, 5, len(PIECES)))) + rng.choice(([], ["film", " "], ["film", " "]))
    spaced = rng.choice(("", "", " ", "  "))
    return spaced.join(rng.choices(some, k=rng.choice((3, 100, 200))))[: rng.choice((20, 200, 300))]
