"""Shapes, parameter counts and FLOPs of an encoder from its config.json alone: no weights, no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..errors import CompressError
from ..runtime.folder import read_json
from ..spec.kinds import KINDS, KindName
from .config_fields import allowed_fields
from .families import FAMILIES, RELATIVE_BUCKETS, Counts, Family
from .families.counts import rest_flops
from .heads import HEADS
from .pruned.shape import PrunedShape

_EMBEDDING = 128  # of ALBERT and ELECTRA, if config.json has none
_MOST_SHOWN = 5  # folders in a message
_NO_NUMBER = (TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Dimensions:
    """Sizes of an encoder with a classification head.

    `classes`: 1 for regression, 0 without a head or pooler. `blocks`: layers with weights of their own. `per_token`: the head is applied to
    every token, directly on the last states except in ModernBERT. `first_position`: rows of the position table before a text's first token.
    `inner_layers`: of each layer, for an ALBERT whose groups hold several. `own`: `Counts.own_sizes`. `pruned`: the heads and intermediate
    neurons left in each layer.
    """

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
    blocks: int
    first_position: int = 0
    inner_layers: int = 1
    per_token: bool = False
    own: Mapping[str, int] = field(default_factory=dict)
    pruned: PrunedShape | None = None

    @property
    def attention(self) -> int:
        """Width of all heads of a layer, concatenated."""
        return self.hidden

    @property
    def projected(self) -> bool:
        """Whether embeddings are projected to the hidden size."""
        return FAMILIES[self.architecture].embeddings.projects(embedding=self.embedding, hidden=self.hidden)

    @property
    def word_parameters(self) -> int:
        """Parameters of the word table, the only ones that grow with the vocabulary."""
        return self.vocabulary * self.embedding

    @property
    def relative_parameters(self) -> int:
        """Parameters of the relative position bias table, which all layers share."""
        return RELATIVE_BUCKETS * self.heads if FAMILIES[self.architecture].attention.relative_bias else 0

    @property
    def task_types(self) -> int:
        """Rows of the task type table, of which every text here uses the first; 0 without one."""
        return self.own.get("task_type_vocab_size", 0) if self.own.get("use_task_id") else 0

    @property
    def embedding_parameters(self) -> int:
        return self._counts.embeddings(self)

    @property
    def layer_parameters(self) -> int:
        """Parameters of all layers that have weights of their own."""
        if self.pruned is not None:
            return sum(self._counts.layer(layer) for layer in self._each_layer())
        return self.blocks * self.inner_layers * self._counts.layer(self)

    @property
    def parameters(self) -> int:
        """All parameters, including embeddings and head; shared ones count once."""
        rest = self._counts.rest(self) if self.classes else self._counts.bare_rest(self)
        return self.embedding_parameters + self.layer_parameters + rest

    def flops_per_example(self, length: float) -> float:
        """Return multiply-adds × 2 of all matmuls for one text of `length` tokens; embedding look-ups count 0."""
        layers = self.layers_flops(length)
        if self._counts.own_rest_flops is not None:
            return layers + self._counts.own_rest_flops(self, length)
        return layers + rest_flops(self, length, dense_of_tokens=self._counts.dense_of_tokens)

    def layers_flops(self, length: float) -> float:
        """Return `flops_per_example` of the layers alone."""
        if self.pruned is not None:
            return sum(self._counts.layer_flops(layer, length) for layer in self._each_layer())
        return self.layers * self.inner_layers * self._counts.layer_flops(self, length)

    def _each_layer(self) -> list[Dimensions]:
        """Return the sizes of each layer of a pruned model."""
        if self.pruned is None:
            raise RuntimeError("only for a pruned model")
        size = self.hidden // self.heads
        return [
            _Layer(**{**vars(self), "pruned": None, "intermediate": neurons}, width=size * len(heads))
            for heads, neurons in zip(self.pruned.heads, self.pruned.neurons, strict=True)
        ]

    @property
    def _counts(self) -> Counts:
        return FAMILIES[self.architecture].counts

    def flops_per_token(self, length: int = 128) -> float:
        return self.flops_per_example(length) / length

    def __str__(self) -> str:
        if not self.layers:
            table = f"table {self.vocabulary} x {self.hidden}"
            return f"{table}, FFN {self.intermediate}" if self.classes else table
        if self.pruned is not None:
            return f"{self.layers} x {self.hidden}, {self.pruned}"
        return f"{self.layers} x {self.hidden}, {self.heads} heads, FFN {self.intermediate}"


@dataclass(frozen=True, kw_only=True)
class _Layer(Dimensions):
    """One layer of a pruned model; `width`: of its heads, concatenated."""

    width: int

    @property
    def attention(self) -> int:
        return self.width


def read_config(folder: Path) -> dict[str, Any]:
    """Return the fields of a checkpoint folder's config.json that its family knows (`allowed_fields`); the rest is ignored.

    Raises `CompressError` naming the file.
    """
    path = folder / "config.json"
    inside = [] if path.exists() else sorted(other.parent.name for other in folder.glob("*/config.json"))
    there = f"; there is one in {', '.join(inside[:_MOST_SHOWN])}" if inside else ""
    return allowed_fields(path, read_json(path, expected=f"expected a transformers checkpoint folder{there}"))


def has_segments(config: dict[str, Any]) -> bool:
    """Whether the model distinguishes the two texts of a pair by token types."""
    family = FAMILIES[config["model_type"]]
    types = int(config.get("type_vocab_size", 2)) if "type_vocab_size" in family.fields else 0
    return family.embeddings.reads_segments(types)


def usable_positions(config: dict[str, Any]) -> int:
    """Return the longest text in tokens. Raises `CompressError` if the config's values are not numbers."""
    try:
        config = _by_berts_names(FAMILIES[config["model_type"]], config)
        before = first_position(config["model_type"], config.get("pad_token_id", 1))
        return int(config["max_position_embeddings"]) - before
    except (KeyError, *_NO_NUMBER) as error:
        raise CompressError(
            f"config.json: max_position_embeddings, pad_token_id: expected whole numbers: {error}"
        ) from None


def word_and_position_widths(hidden: int, heads: int) -> tuple[int, int]:
    """Return how many hidden dimensions are for words and how many for positions, if they start out separate: 16 for positions, or the even
    number that fits a narrower head. Raises `CompressError` if too few are left for words."""
    positions = min(16, hidden // heads) // 2 * 2
    if not 0 < positions <= hidden // 2:
        raise CompressError(f"heads are {hidden // heads} wide, too narrow to tell positions")
    return hidden - positions, positions


def first_position(family: str, padding: int | None) -> int:
    """Return the number of a text's first position."""
    return int(padding or 0) + 1 if FAMILIES[family].embeddings.positions_after_padding else 0


def _by_berts_names(family: Family, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config with its sizes also under BERT's names."""
    own = {name: config[own] for name, own in family.own_names.items() if own in config}
    return {**family.fixed, **config, **own}


def dimensions(
    config: dict[str, Any], *, classes: int, kind: KindName = "classification", folder: Path | None = None
) -> Dimensions:
    """Return the sizes of a config, under the same names for every family. `kind`: of the tasks that the head is for. Raises
    `CompressError` naming the file in `folder`."""
    family, path = FAMILIES[config["model_type"]], (folder or Path()) / "config.json"
    sizes = _read_sizes(path, family, _by_berts_names(family, config), classes, kind)
    if family.layerless and KINDS[kind].unit == "question":
        raise CompressError(
            f"{path}: a {family.name} has no layer that combines question and context, and a task of kind {kind} "
            "needs one"
        )
    hidden, layers, heads = sizes.hidden, sizes.layers, sizes.heads
    counted = (hidden, layers or family.layerless, heads, sizes.intermediate, sizes.vocabulary, sizes.positions)
    if min(counted) < 1 or hidden % heads:
        raise CompressError(
            f"{path}: expected sizes of 1 or more and heads that divide the hidden size, found {layers} layers, hidden {hidden}, "
            f"{heads} heads, intermediate {sizes.intermediate}, {sizes.vocabulary} tokens, {sizes.positions} positions"
        )
    return sizes


def _read_sizes(path: Path, family: Family, config: dict[str, Any], classes: int, kind: KindName) -> Dimensions:
    """Return the sizes of a config with BERT's names, from `path`; they are whole numbers, and not checked further.

    Layers, heads and the hidden size are looked up through optimum's table of families, or by BERT's names if it has no entry.
    """
    from optimum.utils import NormalizedConfigManager, NormalizedTextConfig

    normalized = NormalizedConfigManager._conf.get(family.name, NormalizedTextConfig)(SimpleNamespace(**config))

    def optional(name: str, *, default: int, without: int) -> int:
        """`without`: the value for a family without this setting."""
        return int(config.get(name, default)) if name in family.fields else without

    try:
        hidden, layers = int(normalized.hidden_size), int(normalized.num_layers)
        return Dimensions(
            architecture=family.name,
            layers=layers,
            hidden=hidden,
            heads=int(normalized.num_attention_heads),
            intermediate=int(config["intermediate_size"]),
            vocabulary=int(config["vocab_size"]),
            positions=int(config["max_position_embeddings"]),
            token_types=optional("type_vocab_size", default=2, without=0),
            classes=classes,
            embedding=optional("embedding_size", default=_EMBEDDING, without=hidden),
            blocks=optional("num_hidden_groups", default=1, without=layers),
            first_position=first_position(family.name, config.get("pad_token_id", 1)),
            inner_layers=optional("inner_group_num", default=1, without=1),
            per_token=HEADS[kind].per_token,
            own={name: int(config.get(name, value)) for name, value in family.counts.own_sizes.items()},
            pruned=PrunedShape.of(config),
        )
    except (AttributeError, KeyError) as error:
        raise CompressError(f"{path}: a size that a {family.name} needs is missing: {error}") from None
    except _NO_NUMBER as error:
        raise CompressError(f"{path}: the sizes of a {family.name} are whole numbers: {error}") from None
