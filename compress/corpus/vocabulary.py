"""Train a vocabulary on plain text: WordPiece like BERT's, or byte-level BPE like RoBERTa's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from ..errors import CompressError
from .sources import Source, paragraphs

BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_LETTERS = 1000  # most distinct letters in a WordPiece vocabulary; the most frequent are kept

Kind = Literal["wordpiece", "bpe"]


def train_vocabulary(
    sources: Sequence[Source], *, kind: Kind, size: int, lowercase: bool = True
) -> tokenizers.Tokenizer:
    """Return a tokenizer of at most `size` tokens, the same for the same text; `lowercase` is for WordPiece, and also strips accents.

    The text is read twice for WordPiece, once for BPE; only its distinct words are kept in memory. Raises `CompressError` for a size below
    what the letters need, text without letters, and any error in reading the sources.
    """

    def texts() -> Iterator[str]:
        return (line for line in paragraphs(sources) if line)

    if kind == "bpe":
        return byte_level(texts(), size)
    untrained = bert_tokenizer(lowercase=lowercase)
    letters = _letters(texts(), untrained.normalizer.normalize_str)
    if not letters:
        raise CompressError(f"{', '.join(map(str, sources))}: no word to make a vocabulary from")
    return bert_tokenizer(wordpiece(texts(), letters, size, lowercase=lowercase), lowercase=lowercase)


def wordpiece(texts: Iterable[str], letters: Sequence[str], size: int, *, lowercase: bool = True) -> dict[str, int]:
    """Return token -> id. Special tokens and `letters` come first, whatever the texts contain.

    The trainer numbers letters inside words in the order of a hash map, and breaks ties between merges by number; giving it these pieces in
    advance makes its result reproducible. Raises `CompressError` for a `size` below what these need.
    """
    fixed = [*BERT, *letters, *(f"##{letter}" for letter in letters)]
    if size < len(fixed):
        raise CompressError(
            f"the size of the vocabulary: expected at least {len(fixed)}, for {len(BERT)} special tokens and the text's "
            f"{len(letters)} different characters at the start and inside of words; found {size}"
        )
    tokenizer = bert_tokenizer(lowercase=lowercase)
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=fixed,
        limit_alphabet=len(letters),  # otherwise it takes all letters of the text, in the order of its map
        initial_alphabet=list(letters),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))


def bert_tokenizer(vocabulary: dict[str, int] | None = None, *, lowercase: bool = True) -> tokenizers.Tokenizer:
    """Return a tokenizer of BERT's form; without a `vocabulary`, one to train."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocab=vocabulary or {}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    if vocabulary:
        tokenizer.add_special_tokens(list(BERT))
        start, end = (("[CLS]", BERT.index("[CLS]")), ("[SEP]", BERT.index("[SEP]")))
        tokenizer.post_processor = processors.BertProcessing(end, start)
    return tokenizer


def _letters(texts: Iterable[str], normalize: Callable[[str], str]) -> list[str]:
    """Return the most frequent letters, sorted by code point."""
    counts: Counter[str] = Counter()
    for line in texts:
        counts.update(normalize(line))
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return sorted(letter for letter, _ in [item for item in frequent if not item[0].isspace()][:_LETTERS])


def byte_level(texts: Iterable[str], size: int) -> tokenizers.Tokenizer:
    """Return a tokenizer of RoBERTa's form: BPE of at most `size` tokens over bytes. Raises `CompressError` for a `size` too small for all
    bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if size < len(alphabet) + len(ROBERTA):
        raise CompressError(
            f"the size of the vocabulary: expected at least {len(alphabet) + len(ROBERTA)}, for {len(ROBERTA)} special tokens "
            f"and {len(alphabet)} bytes; found {size}"
        )
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(ROBERTA), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    start, end = (("<s>", ROBERTA.index("<s>")), ("</s>", ROBERTA.index("</s>")))
    tokenizer.post_processor = processors.RobertaProcessing(end, start, add_prefix_space=True)
    return tokenizer
