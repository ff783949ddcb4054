"""Small texts, tokenizers and token shards for the tests of the corpus."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from compress.corpus import TokenShards
from compress.corpus.shards import NAME, describe, dtype_for, shard_name
from compress.tokenization.special import SpecialIds

WORDS = ["good", "bad", "film", "the", "is", "not", "a", "very", "long", "old", "new", "story", "of", "two", "and"]


def bert_tokenizer(words: Sequence[str] = WORDS) -> tokenizers.Tokenizer:
    """Return a lower-casing WordPiece tokenizer: special tokens 0 to 4, `words`, [UNK] for the rest; it truncates and pads to
    16."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, "."]
    tokenizer = tokenizers.Tokenizer(
        models.WordPiece({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(vocabulary[:5])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    return tokenizer


def roberta_tokenizer() -> tokenizers.Tokenizer:
    """Return a byte-level tokenizer without merges, which can decode any text from its tokens."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: i for i, token in enumerate([*special, *alphabet, "<mask>"])}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*special, "<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def text(documents: int, seed: int = 0, sentences: int = 4) -> list[list[str]]:
    """Return documents, each a list of paragraphs of words drawn from `WORDS`."""
    rng = np.random.default_rng(seed)
    return [
        [" ".join(rng.choice(WORDS, size=rng.integers(1, 12))) + " ." for _ in range(rng.integers(1, sentences + 1))]
        for _ in range(documents)
    ]


def write_text(path: Path, documents: list[list[str]]) -> Path:
    path.write_text("\n\n".join("\n".join(document) for document in documents) + "\n", encoding="utf-8")
    return path


def reference_tokens(tokenizer: tokenizers.Tokenizer, documents: list[list[str]], sep: int) -> list[int]:
    """Return each paragraph's tokens without special tokens, with `sep` after each document."""
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    tokens: list[int] = []
    for document in documents:
        for paragraph in document:
            tokens += own.encode(paragraph, add_special_tokens=False).ids
        tokens.append(sep)
    return tokens


def write_shards(folder: Path, tokens: np.ndarray, *, vocabulary: int = 1000, parts: int = 3) -> TokenShards:
    """Write shards of arbitrary tokens, with the special ids of BERT's toy tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    special, dtype = SpecialIds(cls=2, sep=3, pad=0, mask=4, every=(0, 1, 2, 3, 4)), dtype_for(vocabulary)
    pieces = np.array_split(tokens, parts)
    for number, piece in enumerate(pieces):
        (folder / shard_name(number)).write_bytes(piece.astype(dtype).tobytes())
    counts = [{"tokens": len(piece), "documents": 0} for piece in pieces]
    (folder / NAME).write_text(json.dumps(describe(dtype, vocabulary, special, counts)))
    return TokenShards.open(folder)
