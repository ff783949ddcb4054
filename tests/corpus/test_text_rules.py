"""Texts for tokenizers other than BERT's: a space between paragraphs, and text that spells the names of special tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from corpus_toys import bert_tokenizer, roberta_tokenizer, text, write_text
from tokenizers import models, normalizers, pre_tokenizers, processors

from compress.corpus import (
    MaskedBatches,
    TextBatches,
    TokenShards,
    corpus_sources,
    text_rules,
    tokenize_corpus,
    tokenizing,
)
from compress.corpus.vocabulary import byte_level
from compress.tokenization.word_starts import continuing


def unigram_tokenizer(*, scheme: str = "always", unknown: str | None = "<unk>") -> tokenizers.Tokenizer:
    """Return a tokenizer that works like XLM-R's, with letters and two words; without `unknown` its vocabulary covers all test texts."""
    special = ["<s>", "<pad>", "</s>", *([unknown] if unknown else [])]
    pieces = [*((token, 0.0) for token in special), ("▁", -2.0), ("▁hello", -6.0), ("hello", -6.0), ("pad", -7.0)]
    pieces += [(letter, -5.0) for letter in "abcdefghijklmnopqrstuvwxyz<>/"]
    tokenizer = tokenizers.Tokenizer(models.Unigram(pieces, unk_id=special.index(unknown) if unknown else None))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.add_special_tokens(special)
    around = [("<s>", 0), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=around)
    return tokenizer


def tokens(folder: Path, tokenizer: tokenizers.Tokenizer) -> list[str | None]:
    """Return the tokens of the `text.txt` in `folder`."""
    sources = corpus_sources([str(folder / "text.txt")])
    tokenize_corpus(sources, tokenizer, folder / "out", folder / "work", max_tokens=None, threads=1)
    shards = TokenShards.open(folder / "out")
    return [tokenizer.id_to_token(int(number)) for number in shards.read(0, len(shards))]


def lowercased(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    tokenizer.normalizer = normalizers.Lowercase()
    return tokenizer


SPACE, SPELLED = {"leading_space": "paragraphs"}, {"spelled_special": "unknown"}


@pytest.mark.parametrize(
    ("tokenizer", "rules"),
    [
        (bert_tokenizer(), {}),
        (byte_level(["good film"], 300), {}),
        (roberta_tokenizer(), SPACE),
        (lowercased(roberta_tokenizer()), SPACE),
        (unigram_tokenizer(), SPELLED),
        (unigram_tokenizer(scheme="first"), SPELLED),
        (unigram_tokenizer(scheme="never"), SPACE | SPELLED),
    ],
)
def test_only_tokenizers_that_need_a_rule_have_it_in_their_keys(
    tokenizer: tokenizers.Tokenizer, rules: dict[str, str]
) -> None:
    assert text_rules(tokenizer) == rules


@pytest.mark.parametrize("characters", [1, 1000])
def test_a_space_stands_before_each_paragraph_but_a_documents_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, characters: int
) -> None:
    """Also if a block ends with a paragraph, or with a document."""
    monkeypatch.setattr(tokenizing, "BLOCK_CHARACTERS", characters)
    (tmp_path / "text.txt").write_text("a b\nc\n\n\nd\ne\n")
    assert tokens(tmp_path, roberta_tokenizer()) == ["a", "Ġ", "b", "Ġ", "c", "</s>", "d", "Ġ", "e", "</s>"]


def test_whole_words_end_with_their_paragraph(tmp_path: Path) -> None:
    """The first word of a paragraph and the last of the one before are masked independently."""
    write_text(tmp_path / "text.txt", text(60, sentences=6))
    tokenizer = roberta_tokenizer()
    tokens(tmp_path, tokenizer)
    batches = TextBatches(TokenShards.open(tmp_path / "out"), length=64, batch_size=4, seed=0)
    masked = MaskedBatches(batches, continues=continuing(tokenizer))
    ends = np.array([tokenizer.token_to_id("."), tokenizer.token_to_id("Ġ")])
    differ, met = 0, 0
    for step in range(20 * len(masked)):
        numbers = masked.indices(step)
        ids = batches.collate(numbers % batches.count)["input_ids"]
        selected = masked.collate(numbers)["labels"] >= 0
        border = (ids[:, :-1] == ends[0]) & (ids[:, 1:] == ends[1])
        met += int(border.sum())
        differ += int((selected[:, :-1] != selected[:, 1:])[border].sum())
    assert met > 1000
    assert 0.2 < differ / met < 0.31  # 2 · 0.15 · 0.85


def test_special_tokens_that_a_text_spells_are_unknown_ones(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello <s>a</s> hello\nhello <pad> <unk>\n")
    middle = ["▁hello", "▁", "<unk>", "a", "<unk>", "▁hello"]
    assert tokens(tmp_path, unigram_tokenizer()) == [*middle, "▁hello", "▁", "<unk>", "▁", "<unk>", "</s>"]


def test_or_are_left_out_where_none_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello <s>a</s> hello\n")
    assert tokens(tmp_path, unigram_tokenizer(unknown=None)) == ["▁hello", "▁", "a", "▁hello", "</s>"]
