"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): BERT's layers behind narrow embeddings, no pooler."""

from __future__ import annotations

from typing import Any

from .bert import BERT, KEPT
from .fields import MOST_WIDE, whole_number
from .parts import Embeddings, Heads, MaskedLmHead, Setting, Student, TokenizerClasses
from .record import Family


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in KEPT}


ELECTRA = Family(
    name="electra",
    title="ELECTRA",
    fields={**BERT.fields, "embedding_size": whole_number(1, MOST_WIDE)},
    tokenizer=TokenizerClasses(stem="Electra", wordpiece_class="BertTokenizer"),
    embeddings=Embeddings(projection="embeddings_project"),
    layers=BERT.layers,
    heads=Heads(
        classifier=(("classifier.dense", "gelu"), ("classifier.out_proj", None)),
        multiple_choice=(("sequence_summary.summary", "gelu"), ("classifier", None)),
        masked_lm=MaskedLmHead(
            dense="generator_predictions.dense",
            activation="generator_predictions.activation",
            norm="generator_predictions.LayerNorm",
            decoder="generator_lm_head",
        ),
    ),
    student_families=("electra", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "random"), settings=_settings),
)
