"""Shapes, parameter counts and FLOPs of an encoder from its config.json alone: no weights, no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import CompressError

# DistilBERT's config writes its own names; transformers' objects alias them, the JSON file does not.
_ALIASES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
}

_COUNTED_FROM_PADDING = ("roberta", "xlm-roberta", "camembert")

_NO_NUMBER = (TypeError, ValueError, OverflowError)
SUPPORTED = ("bert", "distilbert", "roberta", "xlm-roberta", "camembert", "electra", "albert", "partial-albert")


@dataclass(frozen=True)
class Dimensions:
    """Sizes of an encoder with a classification head. `classes` is 1 for regression."""

    architecture: str
    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocabulary: int
    positions: int
    token_types: int
    classes: int
    embedding: int
    attention_blocks: int
    feed_forward_blocks: int
    pooled: bool

    @property
    def projected(self) -> bool:
        """Whether a matrix takes embeddings to the hidden size; ALBERT has one even between equal sizes."""
        return self.embedding != self.hidden or "albert" in self.architecture

    @property
    def embedding_parameters(self) -> int:
        tables = (self.vocabulary + self.positions + self.token_types) * self.embedding
        projection = self.embedding * self.hidden + self.hidden if self.projected else 0
        return tables + 2 * self.embedding + projection

    @property
    def parameters(self) -> int:
        """All of them, embeddings and head included; what layers share counts once."""
        h, f = self.hidden, self.intermediate
        attention, feed_forward = 4 * (h * h + h) + 2 * h, (h * f + f) + (f * h + h) + 2 * h
        layers = self.attention_blocks * attention + self.feed_forward_blocks * feed_forward
        pooler = h * h + h if self.pooled else 0
        return self.embedding_parameters + layers + pooler + self.classes * (h + 1)

    def flops_per_example(self, length: float) -> float:
        """Multiply-adds × 2 of all matrix products for one text of `length` tokens; look-ups count nothing."""
        h, f = self.hidden, self.intermediate
        projection = 2 * length * self.embedding * h if self.projected else 0
        layer = 2 * length * (4 * h * h + 2 * h * f) + 4 * length * length * h
        head = 2 * h * ((h if self.pooled else 0) + self.classes)
        return projection + self.layers * layer + head

    def flops_per_token(self, length: int = 128) -> float:
        return self.flops_per_example(length) / length

    def __str__(self) -> str:
        return f"{self.layers} x {self.hidden}, {self.heads} heads, FFN {self.intermediate}"

    def with_classes(self, classes: int) -> Dimensions:
        return replace(self, classes=classes)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a checkpoint folder. Raises `CompressError` naming the file."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CompressError(f"{path}: no such file; expected a transformers checkpoint folder") from None
    except (OSError, ValueError, RecursionError) as error:  # no text, no JSON, numbers too long, too deep
        raise CompressError(f"{path}: cannot be read: {error}") from None
    if not isinstance(config, dict) or config.get("model_type") not in SUPPORTED:
        found = config.get("model_type") if isinstance(config, dict) else type(config).__name__
        raise CompressError(f"{path}: model_type: expected one of {', '.join(SUPPORTED)}; found {found!r}")
    return config


def usable_positions(config: dict[str, Any]) -> int:
    """The longest text in tokens. Raises `CompressError` where the config's numbers are none."""
    try:
        before = first_position(config["model_type"], config.get("pad_token_id", 1))
        return int(config["max_position_embeddings"]) - before
    except (KeyError, *_NO_NUMBER) as error:
        raise CompressError(
            f"config.json: max_position_embeddings, pad_token_id: expected whole numbers: {error}"
        ) from None


def word_and_position_widths(hidden: int, heads: int) -> tuple[int, int]:
    """How many dimensions of the hidden states tell words, and how many positions, where these begin apart: 16, or what a
    narrower head has, an even number. Raises `CompressError` where too few are left for words."""
    positions = min(16, hidden // heads) // 2 * 2
    if not 0 < positions <= hidden // 2:
        raise CompressError(f"heads are {hidden // heads} wide, too narrow to tell positions")
    return hidden - positions, positions


def first_position(family: str, padding: int | None) -> int:
    """The number of a text's first position: RoBERTa's family starts to count after its padding's index."""
    return int(padding or 0) + 1 if family in _COUNTED_FROM_PADDING else 0


def dimensions(config: dict[str, Any], *, classes: int) -> Dimensions:
    """Sizes named as the field names them, whatever the family calls them.

    optimum's table knows the layer and head counts of most families; for the others
    the config's own names are the standard ones.
    """
    from optimum.utils import NormalizedConfigManager

    family = config["model_type"]
    config = {**config, **{alias: config[name] for name, alias in _ALIASES.items() if name in config}}
    namespace = SimpleNamespace(**config)
    normalized: Any = namespace
    known = family.removeprefix("partial-")
    if known in NormalizedConfigManager._conf:
        normalized = NormalizedConfigManager.get_normalized_config_class(known)(namespace)
    try:
        hidden, layers = int(normalized.hidden_size), int(normalized.num_layers)
        heads = int(normalized.num_attention_heads)
        intermediate, blocks = int(config["intermediate_size"]), _distinct(config, layers)
        vocabulary, positions = int(config["vocab_size"]), int(config["max_position_embeddings"])
        token_types = 0 if family == "distilbert" else int(config.get("type_vocab_size", 2))
        embedding = int(config.get("embedding_size", hidden)) if "albert" in family or family == "electra" else hidden
    except (AttributeError, KeyError) as error:
        raise CompressError(f"config.json: a size that a {family} has is missing: {error}") from None
    except _NO_NUMBER as error:
        raise CompressError(f"config.json: the sizes of a {family} are whole numbers: {error}") from None
    if min(hidden, layers, heads, intermediate, vocabulary, positions) < 1 or hidden % heads:
        raise CompressError(
            f"config.json: expected sizes of 1 or more and heads that divide the hidden size, found {layers} layers, hidden "
            f"{hidden}, {heads} heads, intermediate {intermediate}, {vocabulary} tokens, {positions} positions"
        )
    return Dimensions(
        architecture=family,
        layers=layers,
        hidden=hidden,
        heads=heads,
        intermediate=intermediate,
        vocabulary=vocabulary,
        positions=positions,
        token_types=token_types,
        classes=classes,
        embedding=embedding,
        attention_blocks=blocks["attention"],
        feed_forward_blocks=blocks["ffn"],
        pooled=True,
    )


def _distinct(config: dict[str, Any], layers: int) -> dict[str, int]:
    """How many attentions and feed-forward networks with weights of their own."""
    groups = int(config.get("num_hidden_groups", 1)) if "albert" in config["model_type"] else layers
    return {part: 1 if config.get("shared") == part else groups for part in ("attention", "ffn")}
