"""The differences between families of encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .counts import BERT_COUNTS, Counts
from .fields import Field

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

RELATIVE_BUCKETS = 32  # of distances; rows of a `relative_bias` table
Setting = Callable[..., Any]  # like `getattr` of a teacher's config: (BERT's name of a setting[, default]) -> its value


@dataclass(frozen=True, kw_only=True)
class MaskedLmHead:
    """Module paths in transformers' masked language model. `activation` None: GELU, called as a function."""

    dense: str
    norm: str
    decoder: str
    activation: str | None = None


@dataclass(frozen=True, kw_only=True)
class Student:
    """What students of a family need in addition to `Family`.

    `inits`: values of the card's `init` that they support. `settings`: what their config takes from the teacher's besides sizes, under the
    family's own names.
    """

    inits: tuple[str, ...]
    settings: Callable[[Setting], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family, as transformers implements it. Defaults are BERT's.

    `name`: transformers' `model_type`. `title`: its name for readers.
    `fields`: what its config.json may hold. Some fields imply parts: `embedding_size`, narrow embeddings; `type_vocab_size`, segments;
    `task_type_vocab_size`, task types; `num_hidden_groups`, layers that share weights.
    `own_names`: BERT's name of a setting -> its own. `fixed`: BERT's name of a setting that it lacks -> its value.
    `positions_after_padding`: positions are counted from the row after the padding's index.
    `relative_segments`: tokens' segments are read, without a segment table.
    `pads_left`: transformers' own model expects padding on the left; ours, like all here, on the right.
    `time_major`: its layers take and return states [length, batch, hidden], not [batch, length, hidden].
    `tokenizer`: stem of its tokenizer classes, `Bert` of `BertTokenizerFast`. `wordpiece_class`: the class that loads a WordPiece tokenizer
    like BERT's; None: the general one.
    `layer`: part -> module of a layer; if empty, its parts have no names here, and students of the family copy whole layers. `layer_path`:
    of a layer in the encoder, by number; if layers share weights, by number of the block.
    `own_first_layer`: the first layer has other parts than the rest, so a copied student's first layer is the teacher's.
    `layer_lists`: settings of config.json with one value per layer. `local_layers`: some layers attend only to tokens within transformers'
    `sliding_window`.
    `fast`: whether the fast graph supports its parts; otherwise its models are exported by torch's exporter.
    `counts`: its formulas for parameters and FLOPs. `own_sizes`: what these read besides BERT's sizes, as config.json's names -> default
    (true counts as 1).
    `captures_attention`: whether scores, queries, keys and values can be read from a running model.
    `packs_documents`: whether documents packed into one sequence can be masked from each other.
    `own_attention`: the module of a layer that computes attention itself, not through transformers' `AttentionInterface`.
    `layerless`: it has no layers: a token's state is its vector, a text's the mean of these. Its students start from the token vectors of
    any teacher that has layers.
    `own_model`: registers the classes of a family that transformers does not have.
    `relative_bias`: the encoder's table [bucket, head] of relative position biases, added to attention scores.
    `projection`: the module that projects embeddings to the hidden size; `always_projected`: even between equal sizes.
    `pooler`: the linear layer of the encoder's pooler; None: it has none.
    `head`: modules that the classifier applies to the first token's state, each with the activation after it; `base_model` is the encoder.
    Needed if there is a `layer`. Heads per token are the same in all families (`head_on`). `pooled_head`: that of multiple-choice models,
    if different.
    `masked_lm`: None: stages that need such a head do not support the family.
    `students`: families of students that can start from a teacher of this one; if empty, it can only teach pre-trained students, which
    learn from its logits.
    `student`: of students in this form; None: none are made.
    `random_config`: (config.json under BERT's names, special tokens) -> config.json; None: no card describes a model with random weights.
    `byte_level`: such a model has a byte-level vocabulary, not WordPiece.
    `growth`: part of a weight's name -> the output and input axes of a weight [out, in], or the axis of a vector [out]: h hidden, a
    attention (all heads), f feed-forward, - unchanged; the first match counts. None: it does not grow from a smaller one.
    `cooccurrence_init`: whether random weights can start from co-occurrence counts.
    """

    name: str
    title: str
    fields: Mapping[str, Field]
    own_names: Mapping[str, str]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    positions_after_padding: bool = False
    relative_segments: bool = False
    pads_left: bool = False
    time_major: bool = False
    tokenizer: str
    wordpiece_class: str | None = None

    layer: Mapping[str, str] = field(default_factory=dict)
    layer_path: str
    own_first_layer: bool = False
    layer_lists: tuple[str, ...] = ()
    local_layers: bool = False
    fast: bool = True
    counts: Counts = BERT_COUNTS
    own_sizes: Mapping[str, int] = field(default_factory=dict)
    captures_attention: bool = True
    packs_documents: bool = True
    own_attention: str | None = None
    layerless: bool = False
    own_model: Callable[[], None] | None = None
    relative_bias: str | None = None
    projection: str | None = None
    always_projected: bool = False
    pooler: str | None = None
    head: tuple[tuple[str, str | None], ...] = ()
    pooled_head: tuple[tuple[str, str | None], ...] = ()
    masked_lm: MaskedLmHead | None = None

    students: tuple[str, ...] = ()
    student: Student | None = None
    random_config: Callable[[dict[str, Any], SpecialIds], dict[str, Any]] | None = None
    byte_level: bool = False
    growth: Mapping[str, str] | None = None
    cooccurrence_init: bool = False

    @property
    def shares_layers(self) -> bool:
        return "num_hidden_groups" in self.fields

    @property
    def attention(self) -> str:
        """transformers' name of the attention implementation that models are loaded with."""
        return "eager" if self.own_attention or not self.captures_attention else "sdpa"

    def head_on(self, tokens: str | None, *, pooled: bool = False) -> tuple[tuple[str, str | None], ...]:
        """Return the head: for a model with logits per token, the module named `tokens`, applied to each token's last state; if `pooled`,
        that of a multiple-choice model; else `head`."""
        if tokens and self.head:
            return ((tokens, None),)
        return (self.pooled_head or self.head) if pooled else self.head

    def reads_segments(self, types: int) -> bool:
        """Whether a model with a segment table of `types` rows takes `token_type_ids`; not if there is only one."""
        return self.relative_segments or types > 1

    def own_name(self, name: str) -> str:
        return self.own_names.get(name, name)

    def setting(self, config: Any, name: str, *default: Any) -> Any:
        """Return a setting of transformers' config by BERT's name."""
        if name in self.fixed:
            return self.fixed[name]
        return getattr(config, self.own_name(name), *default)

    def projects(self, *, embedding: int, hidden: int) -> bool:
        """Whether embeddings are projected to the hidden size."""
        return self.always_projected or embedding != hidden
