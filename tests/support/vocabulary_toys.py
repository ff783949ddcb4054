"""Tokenizers with a few thousand tokens, of each algorithm, and texts of made-up words and odd pieces."""

from __future__ import annotations

import random
from functools import cache

import tokenizer_toys
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from compress.corpus.vocabulary import bert_tokenizer, byte_level, wordpiece

ALGORITHMS = ("WordPiece", "BPE", "Unigram")
_CHARACTERS = (*range(0xD800), *range(0xE000, 0x11000), 0x1F469)  # without surrogates
_SYLLABLES = tuple(first + second for first in "bdfklmnprst" for second in ("a", "e", "ir", "o", "un"))


def words(count: int = 3000) -> list[str]:
    """Return `count` distinct words of one to four syllables."""
    rng = random.Random(5)
    candidates = dict.fromkeys(
        "".join(rng.choices(_SYLLABLES, k=rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(3 * count)
    )
    return [*candidates][:count]


def sentences(count: int, *, seed: int, known: list[str] | None = None) -> list[str]:
    rng, chosen = random.Random(seed), known or words()
    return [" ".join(rng.choices(chosen, k=rng.randint(2, 12))) for _ in range(count)]


def strings(count: int, *, seed: int) -> list[str]:
    """Return strings: half of them words, half odd pieces, arbitrary Unicode characters, and parts of words joined."""
    rng, chosen = random.Random(seed), words()

    def one() -> str:
        sort = rng.random()
        if sort < 0.5:
            return " ".join(rng.choices(chosen, k=rng.randint(1, 6)))
        if sort < 0.7:
            return rng.choice(("", " ")).join(rng.choices([*tokenizer_toys.PIECES, *chosen[:40]], k=rng.randint(1, 8)))
        if sort < 0.85:
            return "".join(map(chr, rng.choices(_CHARACTERS, k=rng.randint(1, 12))))
        return "".join(word[: rng.randint(1, len(word))] for word in rng.choices(chosen, k=rng.randint(1, 5)))

    return [one() for _ in range(count)]


@cache
def tokenizer(algorithm: str) -> Tokenizer:
    """Return the full tokenizer as read from a file, which may change the last bit of a score; cached, so do not modify it."""
    return Tokenizer.from_str(_trained(algorithm).to_str())


def _trained(algorithm: str) -> Tokenizer:
    lines = sentences(3000, seed=1) + ["漢字 é ﷺ 한 क्षि 12 …"] * 3
    if algorithm == "WordPiece":
        letters = sorted({letter for line in lines for letter in line if not letter.isspace()})
        return bert_tokenizer(wordpiece(lines, letters, 2500))
    if algorithm == "BPE":
        bpe = byte_level(lines, 2500)
        bpe.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        return bpe
    unigram = Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.NFKC()
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    front = ["<s>", "<pad>", "</s>", "<unk>"]
    unigram.train_from_iterator(
        lines,
        trainers.UnigramTrainer(vocab_size=2500, special_tokens=front, unk_token="<unk>", show_progress=False),
    )
    unigram.add_special_tokens([*front, "<mask>"])
    ends = [(end, unigram.token_to_id(end)) for end in ("<s>", "</s>")]
    pair = "<s> $A </s> </s> $B </s>"
    unigram.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair=pair, special_tokens=ends)
    return unigram
