"""A small WordPiece vocabulary for the embedded tasks, the same in every process."""

from __future__ import annotations

from functools import lru_cache

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from compress.errors import CompressError

from .builtin import BUILTIN_TASKS
from .synthetic import generate

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def wordpiece(size: int) -> tokenizers.Tokenizer:
    """A lower-casing BERT tokenizer of at most `size` tokens, trained on the embedded tasks' training texts.

    Raises `CompressError` when `size` is less than the special tokens and letters need.
    """
    tokenizer = _bert(models.WordPiece(vocab=dict(_vocabulary(size)), unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(SPECIAL))
    start, end = (("[CLS]", SPECIAL.index("[CLS]")), ("[SEP]", SPECIAL.index("[SEP]")))
    tokenizer.post_processor = processors.BertProcessing(end, start)
    return tokenizer


def _bert(model: models.Model) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


@lru_cache(maxsize=4)
def _vocabulary(size: int) -> tuple[tuple[str, int], ...]:
    """(token, id) in id order.

    The trainer numbers letters inside words in the order of a hash map, and breaks ties between merges by number:
    giving it those pieces up front, sorted, is what makes its result the same every time.
    """
    texts = _texts()
    letters = sorted({letter for text in texts for letter in text if not letter.isspace()})
    fixed = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    if size < len(fixed):
        raise CompressError(f"vocabulary: expected at least {len(fixed)} tokens, found {size}")
    tokenizer = _bert(models.WordPiece(vocab={}, unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=fixed, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tuple(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))


def _texts() -> list[str]:
    specs = [spec.synthetic for spec in BUILTIN_TASKS.values() if spec.synthetic is not None]
    examples = [example for spec in specs for example in generate(spec)["train"]]
    return [str(text) for example in examples for text in example[:-1]]
