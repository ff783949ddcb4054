"""The differences between families of encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .counts import BERT_COUNTS, Counts
from .fields import Field
from .parts import (
    Attention,
    Embeddings,
    EncoderLayers,
    Heads,
    OptionalDropout,
    RandomWeights,
    Student,
    TokenizerClasses,
)


@dataclass(frozen=True, kw_only=True)
class Family:
    """One family, as transformers implements it. `parts.py` and `counts.py` describe its parts, whose defaults are BERT's or none.

    `name`: transformers' `model_type`. `title`: its name for readers.
    `fields`: what its config.json may hold. Some fields imply parts: `embedding_size`, narrow embeddings; `type_vocab_size`, segments;
    `task_type_vocab_size`, task types; `num_hidden_groups`, layers that share weights.
    `own_names`: BERT's name of a setting -> its own. `fixed`: BERT's name of a setting that it lacks -> its value.
    `fast_graph`: whether the fast graph supports its parts; otherwise its models are exported by torch's exporter.
    `optional_dropout`: the dropout, if any, that its class leaves out where the config's rate is 0.
    `register_classes`: registers the classes of a family that transformers does not have.
    `student_families`: families of students that can start from a teacher of this one; if empty, it can only teach pre-trained students,
    which learn from its logits.
    `as_student`: None: no student is made as one of this family.
    """

    name: str
    title: str
    fields: Mapping[str, Field]
    own_names: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: TokenizerClasses
    embeddings: Embeddings = field(default_factory=Embeddings)
    layers: EncoderLayers
    attention: Attention = field(default_factory=Attention)
    heads: Heads = field(default_factory=Heads)
    optional_dropout: OptionalDropout | None = None
    counts: Counts = BERT_COUNTS
    fast_graph: bool = True
    register_classes: Callable[[], None] | None = None
    student_families: tuple[str, ...] = ()
    as_student: Student | None = None
    random: RandomWeights = field(default_factory=RandomWeights)

    @property
    def layerless(self) -> bool:
        """Whether it has no layers: a token's state is its vector, a text's the mean of these. Its students start from the token vectors of
        any teacher that has layers."""
        return not self.layers.path

    @property
    def shares_layers(self) -> bool:
        return "num_hidden_groups" in self.fields

    def own_name(self, name: str) -> str:
        return self.own_names.get(name, name)

    def setting(self, config: Any, name: str, *default: Any) -> Any:
        """Return a setting of transformers' config by BERT's name."""
        if name in self.fixed:
            return self.fixed[name]
        return getattr(config, self.own_name(name), *default)
