"""The parts of a family's record. Paths are of modules in transformers' models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

RELATIVE_BUCKETS = 32  # of distances; rows of a `relative_bias` table
Setting = Callable[..., Any]  # like `getattr` of a teacher's config: (BERT's name of a setting[, default]) -> its value
HeadLayers = tuple[tuple[str, str | None], ...]  # linear layers in order: (path, activation after it)


@dataclass(frozen=True, kw_only=True)
class TokenizerClasses:
    """transformers' classes of the family's tokenizers.

    `stem`: of their names, `Bert` of `BertTokenizerFast`. `wordpiece_class`: the class that loads a WordPiece tokenizer like BERT's; None:
    the general one. `pads_left`: they pad on the left, as transformers' model expects; here all pad on the right.
    """

    stem: str
    wordpiece_class: str | None = None
    pads_left: bool = False


@dataclass(frozen=True, kw_only=True)
class Embeddings:
    """Embeddings of words, positions and segments.

    `positions_after_padding`: positions are counted from the row after the padding's index.
    `relative_segments`: attention compares the segments of two tokens; there is no segment table.
    `projection`: the module that projects embeddings to the hidden size; `always_projected`: even between equal sizes.
    """

    positions_after_padding: bool = False
    relative_segments: bool = False
    projection: str | None = None
    always_projected: bool = False

    def projects(self, *, embedding: int, hidden: int) -> bool:
        """Whether embeddings are projected to the hidden size."""
        return self.always_projected or embedding != hidden

    def reads_segments(self, types: int) -> bool:
        """Whether a model with a segment table of `types` rows takes `token_type_ids`; not if there is only one."""
        return self.relative_segments or types > 1


@dataclass(frozen=True, kw_only=True)
class EncoderLayers:
    """The encoder's layers.

    `path`: of a layer in the encoder, with `{}` for its number; if layers share weights, of a block; empty: there are no layers.
    `parts`: `query`, `key`, `value`, `output`, `attention_norm`, `up`, `down` and `norm` -> their modules in a layer; if empty, students of
    the family copy whole layers.
    `first_differs`: the first layer has other parts than the rest, so a copied student's first layer is the teacher's.
    `config_lists`: settings of config.json with one value per layer.
    `time_major`: layers take and return states [length, batch, hidden], not [batch, length, hidden].
    """

    path: str
    parts: Mapping[str, str] = field(default_factory=dict)
    first_differs: bool = False
    config_lists: tuple[str, ...] = ()
    time_major: bool = False


@dataclass(frozen=True, kw_only=True)
class Attention:
    """How attention is computed, and what can be read of it.

    `readable`: scores, queries, keys and values can be read from a running model.
    `own_module`: the module of a layer that computes attention itself, not through transformers' `AttentionInterface`.
    `relative_bias`: the encoder's table [bucket, head] of relative position biases, added to attention scores.
    `local_layers`: some layers attend only to tokens within transformers' `sliding_window`.
    `separates_documents`: documents packed into one sequence can be masked from each other.
    """

    readable: bool = True
    own_module: str | None = None
    relative_bias: str | None = None
    local_layers: bool = False
    separates_documents: bool = True

    @property
    def implementation(self) -> str:
        """transformers' name of the attention implementation that models are loaded with."""
        return "eager" if self.own_module or not self.readable else "sdpa"


@dataclass(frozen=True, kw_only=True)
class MaskedLmHead:
    """Module paths in transformers' masked language model. `activation` None: GELU, called as a function."""

    dense: str
    norm: str
    decoder: str
    activation: str | None = None


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The pooler and the heads. In paths, `base_model` is the encoder.

    `pooler`: the linear layer of the encoder's pooler; None: it has none.
    `classifier`: what is applied to the first token's state; needed if layers have `parts`. `multiple_choice`: that of multiple-choice
    models, if different. Heads per token are the same in all families (`layers`).
    `masked_lm`: None: stages that need such a head do not support the family.
    """

    pooler: str | None = None
    classifier: HeadLayers = ()
    multiple_choice: HeadLayers = ()
    masked_lm: MaskedLmHead | None = None

    def layers(self, tokens: str | None, *, pooled: bool = False) -> HeadLayers:
        """Return the head: for a model with logits per token, the module named `tokens`, applied to each token's last state; if `pooled`,
        that of a multiple-choice model; else `classifier`."""
        if tokens and self.classifier:
            return ((tokens, None),)
        return (self.multiple_choice or self.classifier) if pooled else self.classifier


@dataclass(frozen=True)
class OptionalDropout:
    """A dropout that transformers' class leaves out where the config's rate is 0. `module`: the attribute that holds it; `rate`: the
    config's field, whose value is `default` where it is missing."""

    module: str
    rate: str
    default: float


@dataclass(frozen=True, kw_only=True)
class Student:
    """How a student of the family starts. `inits`: values of the card's `init` that it supports. `settings`: what its config takes from the
    teacher's besides sizes, under the family's own names."""

    inits: tuple[str, ...]
    settings: Callable[[Setting], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RandomWeights:
    """What a teacher card with `random` weights can describe.

    `config`: (config.json under BERT's names, special tokens) -> config.json; None: no card describes such a model.
    `byte_level`: it has a byte-level vocabulary, not WordPiece.
    `growth`: part of a weight's name -> the output and input axes of a weight [out, in], or the axis of a vector [out]: h hidden, a
    attention (all heads), f feed-forward, - unchanged; the first match counts. None: it does not grow from a smaller one.
    `cooccurrence_init`: its weights can start from co-occurrence counts.
    """

    config: Callable[[dict[str, Any], SpecialIds], dict[str, Any]] | None = None
    byte_level: bool = False
    growth: Mapping[str, str] | None = None
    cooccurrence_init: bool = False
