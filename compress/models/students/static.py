"""Static students: their sizes, and building one from its teacher's token vectors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...errors import CompressError
from ..cards import StudentCard
from ..checkpoints.pretrained import transformers_config
from ..dimensions import Dimensions
from ..families import FAMILIES, Family
from ..heads import auto_class, head_of
from ..sentence_encoders.pooling import FIELD
from ..student_forms import Static
from ..token_vectors import text_frame


def static_dimensions(card: StudentCard, family: Family, teacher: Dimensions, *, texts: int) -> Dimensions:
    """Return the sizes of a layerless student for examples of `texts` texts; unless its vectors are random, it is no wider than its
    teacher.

    Raises `CompressError` for a teacher without token states, and for a task that labels tokens of two texts.
    """
    where = f"student {card.name}"
    if FAMILIES[teacher.architecture].layerless:
        raise CompressError(f"{where} takes the states of its teacher's tokens, and a {teacher.architecture} has none")
    if teacher.per_token and texts == 2:
        raise CompressError(
            f"{where} has no layer that combines question and context, so it cannot say which part is an answer: "
            "choose another with --student, or another recipe"
        )
    wanted = card.hidden or teacher.hidden
    hidden = wanted if card.init == "random" else min(wanted, teacher.hidden)
    return replace(
        teacher,
        architecture=family.name,
        layers=0,
        blocks=0,
        inner_layers=1,
        hidden=hidden,
        embedding=hidden,
        heads=1,
        intermediate=card.intermediate or hidden,
        positions=teacher.positions - teacher.first_position,
        first_position=0,
        token_types=0,
        own={"texts": texts, "window": (card.static or Static()).window if teacher.per_token else 0},
    )


def build_static(teacher: Any, sizes: Dimensions, tokenizer: Any, vectors: np.ndarray | None) -> Any:
    """Return a static model of `sizes` with the labels of the model `teacher` and its `tokenizer`. Its table is `vectors` [vocabulary,
    hidden], or random if None; its layers are random, under torch's seed.

    Raises `CompressError` for pairs whose two texts the tokenizer does not separate.
    """
    import torch

    family, frame = FAMILIES[sizes.architecture], text_frame(tokenizer)
    if sizes.own["texts"] == 2 and frame.separator is None:
        raise CompressError(
            "a static student tells the texts of a pair apart by the token between them; the tokenizer puts none between them"
        )
    if family.as_student is None:
        raise RuntimeError(f"no student is made as a {family.name}")
    fields = {
        "model_type": family.name,
        "vocab_size": sizes.vocabulary,
        "hidden_size": sizes.hidden,
        "intermediate_size": sizes.intermediate,
        "max_position_embeddings": sizes.positions,
        **sizes.own,
        "special_token_ids": list(frame.special),
        "separator_token_id": frame.separator,
        **family.as_student.settings(partial(FAMILIES[teacher.config.model_type].setting, teacher.config)),
    }
    head = head_of(teacher)
    if head.bare:
        fields |= {FIELD: "mean"}
    student = auto_class(head).from_config(transformers_config(fields))
    if vectors is not None:
        with torch.no_grad():
            student.get_input_embeddings().weight.copy_(torch.from_numpy(vectors))
    return student
