"""The parts of an encoder, independent of its family's names: modules of its layers, and its embedding tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..dimensions import first_position
from ..families import FAMILIES, Family
from ..heads import head_of
from .activations import Array, array

TABLES = WORDS, POSITIONS, SEGMENTS = "word_embeddings", "position_embeddings", "token_type_embeddings"
TASKS = "task_type_embeddings"  # every text has the first row


def family_of(model: Any) -> Family:
    return FAMILIES[model.config.model_type]


def layer_parts(encoder: Any, number: int) -> Any:
    """Return the modules of a layer (from 0), or of the block it shares, by the names of `EncoderLayers.parts`."""
    family, config = family_of(encoder), encoder.config
    block = int(number * config.num_hidden_groups / config.num_hidden_layers) if family.shares_layers else number
    layer = encoder.get_submodule(family.layers.path.format(block))
    return SimpleNamespace(**{part: layer.get_submodule(path) for part, path in family.layers.parts.items()})


def head_parts(model: Any) -> list[Any]:
    """Return the linear layers of a classifier's head, the first of which may be the encoder's pooler; a head per token has only the
    last."""
    return [
        model.get_submodule(path.replace("base_model.", f"{model.base_model_prefix}."))
        for path, _ in family_of(model).heads.layers(head_of(model).on_tokens, pooled=head_of(model).pooled)
    ]


def projection_of(encoder: Any) -> Any:
    """Return the embedding projection; None if embeddings are as wide as the hidden states and need none."""
    embeddings, config = family_of(encoder).embeddings, encoder.config
    width = getattr(config, "embedding_size", config.hidden_size)
    projects = embeddings.projects(embedding=width, hidden=config.hidden_size)
    return encoder.get_submodule(embeddings.projection) if embeddings.projection and projects else None


def tables_of(encoder: Any) -> dict[str, Array]:
    """Return the embedding tables [row, embedding], whose rows are added: positions start at a text's first token and include the first
    task type; segments only if the encoder has them."""
    embeddings, config = encoder.embeddings, encoder.config
    tables = {name: array(getattr(embeddings, name).weight) for name in (WORDS, POSITIONS)}
    tables[POSITIONS] = tables[POSITIONS][first_position(config.model_type, config.pad_token_id) :]
    if hasattr(embeddings, TASKS):
        tables[POSITIONS] = tables[POSITIONS] + array(embeddings.task_type_embeddings.weight[0])
    if hasattr(embeddings, SEGMENTS):
        tables[SEGMENTS] = array(embeddings.token_type_embeddings.weight)
    return tables
