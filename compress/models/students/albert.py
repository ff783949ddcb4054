"""ALBERT students (Lan et al. 2020, arXiv:1909.11942, §3.1): small embeddings, layers that share their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dimensions import Dimensions
from ..layer_maps import layer_pairs

_KEPT = (
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
    "id2label",
    "label2id",
    "problem_type",
)


def student_config(teacher: Any, sizes: Dimensions) -> Any:
    """An `AlbertConfig` of `sizes`, or a `PartialAlbertConfig` where layers share half a block; the rest is the teacher's."""
    from transformers import AlbertConfig

    from ..partial_albert import PartialAlbertConfig

    blocks = {"attention": sizes.attention_blocks, "ffn": sizes.feed_forward_blocks}
    shared = {"shared": min(blocks, key=blocks.__getitem__)} if len(set(blocks.values())) > 1 else {}
    head_dropout = getattr(teacher, "classifier_dropout", getattr(teacher, "classifier_dropout_prob", None))
    return (PartialAlbertConfig if shared else AlbertConfig)(
        vocab_size=sizes.vocabulary,
        embedding_size=sizes.embedding,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.token_types,
        num_hidden_layers=sizes.layers,
        num_hidden_groups=max(blocks.values()),
        num_attention_heads=sizes.heads,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.intermediate,
        classifier_dropout_prob=teacher.hidden_dropout_prob if head_dropout is None else head_dropout,
        bos_token_id=None,
        eos_token_id=None,
        **shared,
        **{name: getattr(teacher, name) for name in _KEPT},
    )


@dataclass(frozen=True)
class Repeat:
    """One pass through a block: the `AlbertLayer`, and the teacher layers (from 0) `first` … `last` that it stands for."""

    layer: Any
    first: int
    last: int


def repeats(encoder: Any, *, teacher_layers: int) -> list[Repeat]:
    """The passes of an ALBERT encoder in their order, with the teacher's layers dealt out by the uniform map."""
    config = encoder.config
    count, groups = config.num_hidden_layers, config.num_hidden_groups
    ends = layer_pairs("uniform", student_layers=count, teacher_layers=teacher_layers)
    starts = [0, *(end for _, end in ends)]
    blocks = [group.albert_layers[0] for group in encoder.encoder.albert_layer_groups]
    return [Repeat(blocks[number * groups // count], starts[number], end - 1) for number, (_, end) in enumerate(ends)]


def sharing(passes: Sequence[Repeat], part: str) -> list[list[Repeat]]:
    """The passes that have the weights of `part` (`attention` or `ffn`) in common, in order of first use."""
    found: dict[int, list[Repeat]] = {}
    for each in passes:
        found.setdefault(id(getattr(each.layer, part)), []).append(each)
    return list(found.values())
