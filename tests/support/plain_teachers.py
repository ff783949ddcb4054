"""Tiny DeBERTa-v3 and XLNet teachers: random weights, and SentencePiece unigram tokenizers with each family's special tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from family_teachers import LABELS, pieces, texts
from tokenizers import Tokenizer, processors
from transformers import (
    AutoConfig,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from compress.models.checkpoints.folders import save_checkpoint
from compress.models.usable_classes import usable_class

POSITIONS, LAYERS = 32, 3
PADDING = {"deberta-v2": 0, "xlnet": 5}
_DEBERTA_FRONT = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
_XLNET_FRONT = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>")
_DEBERTA: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": POSITIONS,
    "relative_attention": True,
    "position_buckets": 8,
    "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "pooler_hidden_act": "gelu",
    "pooler_dropout": 0,
}
_XLNET: dict[str, Any] = {"d_model": 32, "n_layer": LAYERS, "n_head": 2, "d_inner": 64}


def plain_config(family: str, words: int = 90, **fields: Any) -> Any:
    named = dict(enumerate(LABELS))
    labels = {"id2label": named, "label2id": {name: number for number, name in named.items()}}
    sizes = _DEBERTA if family == "deberta-v2" else _XLNET
    return AutoConfig.for_model(
        family, **{**sizes, "vocab_size": words, "pad_token_id": PADDING[family], **labels, **fields}
    )


def plain_classifier(family: str, words: int = 90, *, noise: float = 0.1, tags: bool = False, **fields: Any) -> Any:
    """Return a classifier for batches padded on the right, of the package's class. Every weight gets `noise`, to be larger than
    transformers' initial values. `tags`: a token classifier."""
    auto = AutoModelForTokenClassification if tags else AutoModelForSequenceClassification
    return _noisy_model(auto, plain_config(family, words, **fields), noise)


def plain_reader(family: str) -> Any:
    """Like `plain_classifier`, with a question answering head."""
    named = {0: "start", 1: "end"}
    labels = {"id2label": named, "label2id": {name: number for number, name in named.items()}}
    return _noisy_model(AutoModelForQuestionAnswering, plain_config(family, **labels), 0.1)


def plain_chooser(family: str) -> Any:
    """Like `plain_classifier`, with a multiple choice head."""
    return _noisy_model(
        AutoModelForMultipleChoice, plain_config(family, id2label={0: "score"}, label2id={"score": 0}), 0.1
    )


def _noisy_model(auto: Any, config: Any, noise: float) -> Any:
    torch.manual_seed(7)
    kind = usable_class(type(auto.from_config(config, attn_implementation="eager")), config)
    model = kind._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * noise)
    return model


def plain_tokenizer(family: str) -> Tokenizer:
    if family == "deberta-v2":
        return pieces(texts(), _DEBERTA_FRONT, ("[CLS]", "[SEP]"), "[MASK]")
    tokenizer = pieces(texts(), _XLNET_FRONT, ("<cls>", "<sep>"), "<mask>")
    numbers = [(token, tokenizer.token_to_id(token)) for token in ("<sep>", "<cls>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2", pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2", special_tokens=numbers
    )
    return tokenizer


def plain_teacher(family: str, folder: Path, *, trained: bool = False, **fields: Any) -> Path:
    """Write a checkpoint folder with a tokenizer, without a classification head unless `trained`."""
    tokenizer = plain_tokenizer(family)
    model = plain_classifier(family, max(tokenizer.get_vocab().values()) + 1, **fields)
    save_checkpoint(model if trained else model.base_model, tokenizer, folder)
    return folder
