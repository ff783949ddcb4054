"""ELECTRA (Clark et al. 2020, arXiv:2003.10555): BERT's layers behind narrow embeddings, no pooler."""

from __future__ import annotations

from .bert import BERT
from .fields import MOST_WIDE, whole
from .record import Family, MaskedLmHead

ELECTRA = Family(
    name="electra",
    fields={**BERT.fields, "embedding_size": whole(1, MOST_WIDE)},
    own_names={},
    tokenizer="Electra",
    layer=BERT.layer,
    layer_path=BERT.layer_path,
    projection="embeddings_project",
    pooler=None,
    head=(("classifier.dense", "gelu"), ("classifier.out_proj", None)),
    masked_lm=MaskedLmHead(
        dense="generator_predictions.dense",
        activation="generator_predictions.activation",
        norm="generator_predictions.LayerNorm",
        decoder="generator_lm_head",
        published=False,  # checkpoints are discriminators
    ),
)
