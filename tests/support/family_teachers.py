"""Tiny teachers of every family, with random weights and the family's type of tokenizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from compress.corpus.vocabulary import bert_tokenizer, byte_level, wordpiece
from compress.models.checkpoints.folders import save_tokenizer
from compress.models.usable_classes import usable_class
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate
from compress.tokenization.special import special_ids

LAYERS, POSITIONS = 4, 32
LABELS = ("no", "maybe", "yes")
KINDS = {
    "bert": "wordpiece",
    "distilbert": "wordpiece",
    "electra": "wordpiece",
    "ernie": "wordpiece",
    "roberta": "bytes",
    "xlm-roberta": "pieces",
    "camembert": "pieces",
    "albert": "albert pieces",
    "modernbert": "modern bytes",
}
WHOLE_LAYERS = (
    "modernbert",
)  # copied as they are, within the family; no BERT or ALBERT starts from them, and they have no fast graph
_AFTER_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
_BERT_WORDS = 260
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>")


def texts() -> list[str]:
    return [str(row[0]) for row in generate(Synthetic(generator="sentiment", train=120, dev=40))["train"]]


def tokenizer_of(family: str, more_words: int = 0) -> Tokenizer:
    """Return the family's type of tokenizer. `more_words`: further words that no text contains, like those XLM-R has for each of
    its languages."""
    kind = KINDS[family]
    if kind == "wordpiece":
        letters = sorted({letter for text in texts() for letter in text.lower() if not letter.isspace()})
        return bert_tokenizer(wordpiece(texts(), letters, _BERT_WORDS))
    if kind == "modern bytes":
        return _modern_bytes(texts(), 320)
    if kind == "bytes":
        tokenizer = byte_level(texts(), 320)
        tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        return tokenizer
    ends = ("[CLS]", "[SEP]") if kind == "albert pieces" else ("<s>", "</s>")
    front = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]") if kind == "albert pieces" else ROBERTA
    return pieces(texts(), front, ends, "[MASK]" if kind == "albert pieces" else "<mask>", more_words)


def _modern_bytes(lines: Iterable[str], size: int) -> Tokenizer:
    """Return a byte-level BPE tokenizer with BERT's special tokens, which adds no space before a text."""
    front = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(front), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    ends = [(token, front.index(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer


def pieces(lines: Iterable[str], front: tuple[str, ...], ends: tuple[str, str], mask: str, more: int = 0) -> Tokenizer:
    """Return a SentencePiece unigram tokenizer of half of the texts' words, and letters; the mask comes last unless in
    `front`."""
    counts = Counter(word for line in lines for word in line.lower().split())
    whole = [word for word, _ in counts.most_common(len(counts) // 2)]
    words = [*(f"▁{word}" for word in whole), "▁", *sorted(set("".join(counts)))]
    rows = [(piece, -4.0 - place / 100) for place, piece in enumerate(words)]
    rows += [(f"▁mot{number}", -20.0) for number in range(more)]
    table = [*((token, 0.0) for token in front), *rows, *(() if mask in front else [(mask, 0.0)])]
    tokenizer = Tokenizer(
        models.Unigram(table, unk_id=next(front.index(name) for name in ("<unk>", "[UNK]") if name in front))
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens([*front, mask])
    number = tokenizer.token_to_id
    pair = (
        f"{ends[0]} $A {ends[1]} $B {ends[1]}"
        if ends[0] == "[CLS]"
        else f"{ends[0]} $A {ends[1]} {ends[1]} $B {ends[1]}"
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{ends[0]} $A {ends[1]}", pair=pair, special_tokens=[(end, number(end)) for end in ends]
    )
    return tokenizer


def teacher_of(family: str, folder: Path, *, masked_lm: bool = False, more_words: int = 0) -> Path:
    """Write a checkpoint folder without a classification head; `masked_lm`: with a masked-LM head."""
    tokenizer = tokenizer_of(family, more_words)
    auto = AutoModelForMaskedLM if masked_lm else AutoModelForSequenceClassification
    model = _with_words(auto, family, tokenizer)
    (model if masked_lm else model.base_model).save_pretrained(folder)
    save_tokenizer(tokenizer, folder, family=family, max_length=POSITIONS)
    return folder


def masked_lm_of(family: str, tokenizer: Tokenizer) -> Any:
    return _with_words(AutoModelForMaskedLM, family, tokenizer)


def _with_words(auto: Any, family: str, tokenizer: Tokenizer) -> Any:
    words, padding = max(tokenizer.get_vocab().values()) + 1, special_ids(tokenizer).pad
    return _varied(auto, _config(family, words, padding or 0))


def classifier_of(family: str, **fields: Any) -> Any:
    """Return a classifier of `LABELS` with 90 tokens; `fields` are added to its config."""
    padding = 1 if family in _AFTER_PADDING else 0
    return _varied(AutoModelForSequenceClassification, _config(family, 90, padding, num_labels=len(LABELS), **fields))


def tagger_of(family: str, **fields: Any) -> Any:
    """Like `classifier_of`, with a token classification head."""
    padding = 1 if family in _AFTER_PADDING else 0
    return _varied(AutoModelForTokenClassification, _config(family, 90, padding, num_labels=len(LABELS), **fields))


def reader_of(family: str, **fields: Any) -> Any:
    """Like `classifier_of`, with a question answering head."""
    padding = 1 if family in _AFTER_PADDING else 0
    return _varied(AutoModelForQuestionAnswering, _config(family, 90, padding, **{"num_labels": 2, **fields}))


def chooser_of(family: str, **fields: Any) -> Any:
    """Like `classifier_of`, with a multiple choice head, of the package's class."""
    padding = 1 if family in _AFTER_PADDING else 0
    model = _varied(AutoModelForMultipleChoice, _config(family, 90, padding, **{"num_labels": 1, **fields}))
    model.__class__ = usable_class(type(model), model.config)
    return model


def _varied(auto: Any, config: Any) -> Any:
    """Return a model whose every weight and bias is random, larger than transformers' initial values."""
    torch.manual_seed(7)
    model: Any = auto.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def _config(family: str, words: int, padding: int, **fields: Any) -> Any:
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": POSITIONS}
    if family == "distilbert":
        sizes = {"dim": 32, "n_layers": LAYERS, "n_heads": 2, "hidden_dim": 64, "max_position_embeddings": POSITIONS}
    if family == "modernbert":
        ends = {"bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}
        sizes |= {"local_attention": 8, "intermediate_size": 48, **ends}
    if family in _AFTER_PADDING:
        sizes |= {"max_position_embeddings": POSITIONS + padding + 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
        sizes |= {"bos_token_id": 0, "eos_token_id": 2}
    if family in ("albert", "electra"):
        sizes |= {"embedding_size": 16}
    if family == "ernie":
        sizes |= {"use_task_id": True}
    return AutoConfig.for_model(family, **{**sizes, "vocab_size": words, "pad_token_id": padding, **fields})
