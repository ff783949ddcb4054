"""Build a student and start it from its teacher."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ..cards import StudentCard
from ..checkpoints.pretrained import transformers_config
from ..dimensions import Dimensions, dimensions
from ..families import FAMILIES, Family
from ..heads import head_of, model_from
from ..layer_maps import blocks_of, copied_layers, distinct_blocks
from ..sentence_encoders.pooling import FIELD
from .activations import Sample
from .conversion import convert
from .copying import Form, copied_body, copied_head
from .projection import project

if TYPE_CHECKING:
    from torch import nn


def build_student(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """Return a transformers model of `sizes` that starts from `teacher` as the card says, with a head of the same kind.

    `sample`: padded batches (`input_ids`, `attention_mask`, `token_type_ids`, each [batch, length], arrays or tensors) with as many tokens
    as `sample_tokens` says. Weights not taken from the teacher have transformers' random initialisation, under the caller's torch seed.
    Without a sample these are all weights of a projected student, and all but the head of a converted one; use that if `load_body` loads
    the body later.
    """
    kind = head_of(teacher)
    student = model_from(kind, config_of_student(card, teacher.config, sizes))
    _initialize_student(card, student, teacher, sample)
    if card.init == "copy" and not kind.bare:
        models = teacher, student
        prefixes = teacher.base_model_prefix, student.base_model_prefix
        layers = [_family(model).heads.layers(kind.on_tokens, pooled=kind.pooled) for model in models]
        head = copied_head(teacher.state_dict(), *layers, prefixes=prefixes)
        student.load_state_dict(head, strict=False)
    return student


def build_encoder(card: StudentCard, teacher: Any, sizes: Dimensions, sample: Sample | None = None) -> nn.Module:
    """Like `build_student`, without heads: teacher and student are encoders (`AutoModel`)."""
    from transformers import AutoModel

    student = AutoModel.from_config(config_of_student(card, teacher.config, sizes))
    _initialize_student(card, student, teacher, sample)
    return student


def _family(model: Any) -> Family:
    return FAMILIES[model.config.model_type]


def config_of_student(card: StudentCard, teacher: Any, sizes: Dimensions) -> Any:
    """Return transformers' config of the student with these `sizes` that `card` makes from a model with the config `teacher`."""
    return student_config(teacher, sizes, _kept_layers(card, teacher))


def student_config(teacher: Any, sizes: Dimensions, layers: Sequence[int] = ()) -> Any:
    """Return transformers' config of `sizes`. Other settings are the `teacher`'s; settings per layer are those of its `layers`."""
    family = FAMILIES[sizes.architecture]
    named = {
        "vocab_size": sizes.vocabulary,
        "max_position_embeddings": sizes.positions,
        "type_vocab_size": sizes.token_types,
        "num_hidden_layers": sizes.layers,
        "num_hidden_groups": sizes.blocks,
        "num_attention_heads": sizes.heads,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "embedding_size": sizes.embedding,
    }
    own = {family.own_name(name): value for name, value in named.items() if family.own_name(name) in family.fields}
    if family.as_student is None:
        raise RuntimeError(f"no student is made as a {family.name}")
    kept = family.as_student.settings(partial(FAMILIES[teacher.model_type].setting, teacher))
    lists = {name: [getattr(teacher, name)[layer] for layer in layers] for name in family.layers.config_lists if layers}
    vectors = {FIELD: getattr(teacher, FIELD)} if hasattr(teacher, FIELD) else {}
    return transformers_config({"model_type": family.name, **own, **kept, **lists, **vectors})


def _initialize_student(card: StudentCard, student: Any, teacher: Any, sample: Sample | None) -> None:
    if card.init == "copy":
        _copy_body(card, student.base_model, teacher.base_model)
    elif card.init == "project" and sample is not None:
        project(student, teacher, _layers(card, teacher.config), sample)
    elif card.init == "convert" and card.albert is not None:
        convert(student, teacher, card.albert, sample)


def _copy_body(card: StudentCard, student: Any, teacher: Any) -> None:
    """Fill an encoder from its teacher's; tensors are copied, never shared. Either may lack a pooler."""
    teacher_form, student_form = _form_of(teacher), _form_of(student)
    blocks = (
        distinct_blocks(card.copy_layers, teacher_form.sizes, layers=card.layers, card=card.name)
        if student_form.family.shares_layers
        else blocks_of(_layers(card, teacher.config), teacher_form.sizes)
    )
    state = copied_body(teacher.state_dict(), teacher_form, student_form, blocks)
    wrong = [name for names in student.load_state_dict(state, strict=False) for name in names]
    if any(not name.startswith("pooler.") for name in wrong):
        raise RuntimeError(f"student {card.name}: {wrong} do not pass from a {teacher.config.model_type} to it")


def _form_of(encoder: Any) -> Form:
    family = _family(encoder)
    epsilon = family.setting(encoder.config, "layer_norm_eps")
    return Form(family, dimensions(encoder.config.to_dict(), classes=1), epsilon)


def _kept_layers(card: StudentCard, teacher: Any) -> tuple[int, ...]:
    """Return the teacher layers whose per-layer settings the student's layers take; () if there are none, or if it is deeper than the
    teacher, when transformers decides."""
    has = FAMILIES[teacher.model_type].layers.config_lists and card.layers <= teacher.num_hidden_layers
    return _layers(card, teacher) if has else ()


def _layers(card: StudentCard, teacher: Any) -> tuple[int, ...]:
    return copied_layers(
        card.copy_layers,
        teacher_layers=teacher.num_hidden_layers,
        student_layers=card.layers,
        card=card.name,
    )
