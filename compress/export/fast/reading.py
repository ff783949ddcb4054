"""Read the parts of transformers' classifiers, at the paths that `compress.models.families` gives."""

from __future__ import annotations

from typing import Any

import torch

from ...models.dimensions import first_position
from ...models.families import FAMILIES, Family
from ...models.families.parts import HeadLayers
from ...models.fast_graph import fast_graph_problem
from ...models.heads import head_of
from ...models.pruned.shape import PrunedShape
from .parts import Array, Block, Encoder, Linear, Norm, RelativeBias


def read_encoder(model: Any) -> Encoder | None:
    """Return the parts of a transformers model, of texts or of tokens; None for a family or variant that is not known here."""
    config = model.config
    if fast_graph_problem(config.to_dict()) is not None:
        return None
    family, prefix = FAMILIES[config.model_type], _prefix(model)
    embeddings, types = f"{prefix}embeddings", getattr(config, "type_vocab_size", 0)
    positions = _positions(model, embeddings)
    encoder = Encoder(
        words=read_table(model, f"{embeddings}.word_embeddings"),
        positions=positions,
        types=read_table(model, f"{embeddings}.token_type_embeddings") if types else None,
        embedding_norm=_norm(model, f"{embeddings}.LayerNorm"),
        projection=_projection(model, family),
        blocks=_blocks(model, family),
        activation=family.setting(config, "hidden_act"),
        head=tuple(
            (read_linear(model, path.replace("base_model.", prefix)), activation)
            for path, activation in _head(model, family)
        ),
        prefix=prefix,
        relative=_relative(model, family, len(positions)),
    )
    return encoder.of_one_segment() if types == 1 else encoder


def _prefix(model: Any) -> str:
    """Return the path of the encoder in the model, such as `bert.`; empty if it is the model."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."


def _head(model: Any, family: Family) -> HeadLayers:
    head = head_of(model)
    return () if head.bare else family.heads.layers(head.on_tokens, pooled=head.pooled)


def _positions(model: Any, embeddings: str) -> Array:
    """Return the positions from a text's first token on, plus the row of the task type, which is 0 in all texts."""
    config = model.config
    table = read_table(model, f"{embeddings}.position_embeddings")
    table = table[first_position(config.model_type, config.pad_token_id) :]
    return (
        table + read_table(model, f"{embeddings}.task_type_embeddings")[0]
        if getattr(config, "use_task_id", False)
        else table
    )


def _blocks(model: Any, family: Family) -> tuple[Block, ...]:
    """Return one block for each layer; layers that share their weights have the same one."""
    layers = model.config.num_hidden_layers
    distinct = model.config.num_hidden_groups if family.shares_layers else layers
    stem = f"{_prefix(model)}{family.layers.path}"
    shape, every = PrunedShape.of(model.config.to_dict()), tuple(range(model.config.num_attention_heads))
    own = [
        _block(model, stem.format(number), family, shape.heads[number] if shape else every)
        for number in range(distinct)
    ]
    return tuple(own[int(number / (layers / distinct))] for number in range(layers))


def _block(model: Any, path: str, family: Family, heads: tuple[int, ...]) -> Block:
    parts: dict[str, Any] = {
        part: (_norm if part.endswith("norm") else read_linear)(model, f"{path}.{name}")
        for part, name in family.layers.parts.items()
    }
    return Block(heads=heads, **parts)


def _projection(model: Any, family: Family) -> Linear | None:
    embeddings, hidden = family.embeddings, model.config.hidden_size
    width = getattr(model.config, "embedding_size", hidden)
    if embeddings.projection is None or not embeddings.projects(embedding=width, hidden=hidden):
        return None
    return read_linear(model, f"{_prefix(model)}{embeddings.projection}")


def _relative(model: Any, family: Family, positions: int) -> RelativeBias | None:
    """Return the biases by distance. The model itself maps distances to table rows, so that its rule is not repeated here."""
    path = family.attention.relative_bias
    if path is None:
        return None
    name = f"{_prefix(model)}{path}"
    table = model.get_submodule(name)
    rows = model.get_submodule(name.rpartition(".")[0]).relative_position_bucket(torch.arange(-positions, positions))
    return RelativeBias(name, _array(table(rows)).T[None])


def read_linear(model: Any, path: str) -> Linear:
    module = model.get_submodule(path)
    return Linear(path, _array(module.weight), None if module.bias is None else _array(module.bias))


def _norm(model: Any, path: str) -> Norm:
    module = model.get_submodule(path)
    return Norm(path, _array(module.weight), _array(module.bias), float(module.eps))


def read_table(model: Any, path: str) -> Array:
    return _array(model.get_submodule(path).weight)


def _array(tensor: Any) -> Array:
    return tensor.detach().float().cpu().numpy()
