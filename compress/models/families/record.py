"""What differs between families of encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .counts import BERT_COUNTS, Counts
from .fields import Field

if TYPE_CHECKING:
    from ...corpus import SpecialIds

RELATIVE_BUCKETS = 32  # of distances: rows of a `relative_bias`
Setting = Callable[..., Any]  # like `getattr` of a teacher's config: (BERT's name of a setting[, default]) -> its value


@dataclass(frozen=True, kw_only=True)
class MaskedLmHead:
    """Modules of transformers' masked language model, by path. `activation` None: GELU, as a function."""

    dense: str
    norm: str
    decoder: str
    activation: str | None = None


@dataclass(frozen=True, kw_only=True)
class Student:
    """What a student of the family needs beside the record.

    `inits`: the card's `init` that it can have. `settings`: what its config takes over from its teacher's beside sizes,
    under the family's own names.
    """

    inits: tuple[str, ...]
    settings: Callable[[Setting], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family, as transformers has it. Where a family does not say, it is like BERT.

    `name`: transformers' `model_type`. `title`: its name for readers.
    `fields`: what its config.json may hold. They also say what it has: `embedding_size`, narrow embeddings;
    `type_vocab_size`, segments; `task_type_vocab_size`, task types; `num_hidden_groups`, layers that share weights.
    `own_names`: BERT's name of a setting -> its own. `fixed`: BERT's name of a setting that it has not -> its value.
    `positions_after_padding`: positions are counted from the row after the padding's index.
    `relative_segments`: tokens' segments are read, though there is no table of them.
    `pads_left`: transformers' own model takes batches that are padded on the left; ours, as all, on the right.
    `time_major`: its layers take and return states [length, batch, hidden], not [batch, length, hidden].
    `tokenizer`: stem of its tokenizer classes, `Bert` of `BertTokenizerFast`.
    `wordpiece_class`: the class that loads a tokenizer of BERT's own kind; None: the general one.

    `layer`: part -> module of a layer. `layer_path`: of a layer in the encoder, by number; where layers share weights,
    by number of the block. No `layer`: its parts have no names here, so that students of the family have copies of whole layers.
    `own_first_layer`: the first layer has other parts than the rest, so that a copied student's first is the teacher's.
    `layer_lists`: settings of config.json that hold a value for each layer. `local_layers`: some layers see the tokens alone
    that stand within transformers' `sliding_window` of each.
    `fast`: whether the fast graph knows its parts; without, its models are exported as torch's exporter writes them.
    `counts`: its formulas for parameters and FLOPs; `own_sizes`: what these read beside BERT's sizes, by config.json's names ->
    the value where the file leaves it out (true counts as 1).
    `captures_attention`: whether scores, queries, keys and values can be taken out of a running model.
    `packs_documents`: whether the documents of a sequence can be kept from seeing each other.
    `own_attention`: the module of a layer that attends by code of its own, not through transformers' `AttentionInterface`.
    `layerless`: no layers: a token's state is its vector, and a text's the mean of these. Its students start from the token vectors of
    any teacher that has layers.
    `own_model`: makes transformers know the classes of a family that it has not.
    `relative_bias`: the encoder's table [bucket, head] of values that attention adds to its scores, by the distance of two tokens.
    `projection`: the module that takes embeddings to the hidden size; `always_projected`: even between equal sizes.
    `pooler`: the linear layer of the encoder's pooler; None: it has none.
    `head`: what the classifier does to the first token's state, each module with the activation after it. `base_model`
    stands for the encoder. Needed beside `layer`. One of tokens is the same in all families (`head_on`). `pooled_head`: that of models for
    multiple choice, where it is another.
    `masked_lm`: None: no stage that needs such a head is for it.

    `students`: the families of students that can start from a teacher of this one; none: it teaches pre-trained students, which
    learn from its logits.
    `student`: what its own students need beside the record; None: no student is made in this form.
    `random_config`: (config.json under BERT's names, special tokens) -> config.json; None: no card describes a model
    with random weights. `byte_level`: the words of such a model are bytes, not WordPiece.
    `growth`: part of a weight's name -> what a weight [out, in] or a vector [out] gives and reads: h hidden, a attention (all
    heads), f feed-forward, - as it is; the first that fits. None: it does not grow from a smaller one.
    `cooccurrence_init`: whether random weights can begin with what is counted in a text.
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
        """transformers' name of the attention that models are loaded with."""
        return "eager" if self.own_attention or not self.captures_attention else "sdpa"

    def head_on(self, tokens: str | None, *, pooled: bool = False) -> tuple[tuple[str, str | None], ...]:
        """`head`, or that of a model of `tokens`: the module of this name on the last state of each; or, where it is `pooled`, that of a
        model for multiple choice."""
        if tokens and self.head:
            return ((tokens, None),)
        return (self.pooled_head or self.head) if pooled else self.head

    def reads_segments(self, types: int) -> bool:
        """Whether a model with a table of so many segments takes `token_type_ids`: not where it knows but one."""
        return self.relative_segments or types > 1

    def own_name(self, name: str) -> str:
        return self.own_names.get(name, name)

    def setting(self, config: Any, name: str, *default: Any) -> Any:
        """Of transformers' config: a setting by BERT's name."""
        if name in self.fixed:
            return self.fixed[name]
        return getattr(config, self.own_name(name), *default)

    def projects(self, *, embedding: int, hidden: int) -> bool:
        """Whether a matrix takes embeddings to the hidden size."""
        return self.always_projected or embedding != hidden
