"""Models without some of their attention heads and feed-forward neurons, in numbers that differ between layers.

transformers has no config for such a model. Its class is a subclass of transformers' own whose `__init__` puts in narrower matrices
(`PrunedBertForSequenceClassification`), or `empty_parts` if nothing is left. config.json keeps the family's `model_type`, so transformers
alone rejects the checkpoint for its shapes. If every layer has all its heads and equally many neurons, the class is transformers' own, with
a smaller `intermediate_size`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from torch import nn

from ...errors import CompressError
from ..families import FAMILIES, Family
from .empty_parts import headless_class, linear_or_empty
from .shape import FIELD, PrunedShape, prunable_families, why_not_prunable

ATTENTION = ("query", "key", "value")  # parts of a layer whose outputs are split into heads
UNPRUNED = "unpruned"  # attribute of a pruned class: the class of the whole model


@cache
def pruned_class(kind: Any) -> Any:
    """Return the subclass of `kind`, a transformers class, whose models have the shape in their config's `pruned`."""

    def initialise(self: Any, config: Any) -> None:
        kind.__init__(self, config)
        _narrow(self)

    about = f"{kind.__name__} whose layers have the heads and neurons that `config.{FIELD}` says."
    fields = {"__init__": initialise, "__doc__": about, "__module__": __name__, UNPRUNED: kind}
    return type(f"Pruned{kind.__name__}", (kind,), fields)


def prunable_family(model: Any) -> Family:
    """Return the family of a model that can be pruned. Raises `CompressError` if it cannot."""
    family = FAMILIES[model.config.model_type]
    if family not in prunable_families():
        raise CompressError(why_not_prunable(family.name))
    return family


def shape_of(model: Any) -> PrunedShape:
    """Return the heads and neurons in each layer of a model, pruned or not."""
    family, layers = prunable_family(model), model.config.num_hidden_layers
    whole = PrunedShape(
        (tuple(range(_heads(model))),) * layers, (getattr(model.config, family.own_name("intermediate_size")),) * layers
    )
    return PrunedShape.of(model.config.to_dict()) or whole


def layer_name(model: Any, number: int) -> str:
    """Return the path of a layer in `model`, which may be an encoder alone."""
    path = FAMILIES[model.config.model_type].layers.path.format(number)
    return path if model.base_model is model else f"{model.base_model_prefix}.{path}"


def layer_part(model: Any, number: int, part: str) -> Any:
    """Return the module of a layer by its name in `EncoderLayers.parts`."""
    family = FAMILIES[model.config.model_type]
    return model.get_submodule(f"{layer_name(model, number)}.{family.layers.parts[part]}")


def head_size(model: Any) -> int:
    return model.config.hidden_size // _heads(model)


def _heads(model: Any) -> int:
    return model.config.num_attention_heads


def _narrow(model: Any) -> None:
    """Replace matrices by ones of the shapes in the config's `pruned`; weights are loaded later."""
    family, shape, size = prunable_family(model), PrunedShape.of(model.config.to_dict()), head_size(model)
    if shape is None:
        raise RuntimeError(f"a config without `{FIELD}`")
    for number, (heads, neurons) in enumerate(zip(shape.heads, shape.neurons, strict=True)):
        width = size * len(heads)
        for part in ATTENTION:
            _replace(model, number, part, outputs=width)
        _replace(model, number, "output", inputs=width)
        _replace(model, number, "up", outputs=neurons)
        _replace(model, number, "down", inputs=neurons)
        path, _, _ = family.layers.parts["query"].rpartition(".")
        attention = model.get_submodule(f"{layer_name(model, number)}.{path}")
        for name, value in (("num_attention_heads", len(heads)), ("n_heads", len(heads)), ("all_head_size", width)):
            if hasattr(attention, name):
                setattr(attention, name, value)
        if not heads:
            around, _, output = family.layers.parts["output"].rpartition(".")
            attention.__class__ = headless_class(type(attention), output if around == path else None)
        elif family.attention.relative_bias:
            attention.register_forward_pre_hook(partial(_own_distances, list(heads)))


def _replace(model: Any, number: int, part: str, *, outputs: int | None = None, inputs: int | None = None) -> None:
    old = layer_part(model, number, part)
    path = f"{layer_name(model, number)}.{FAMILIES[model.config.model_type].layers.parts[part]}"
    sizes = (old.in_features if inputs is None else inputs), (old.out_features if outputs is None else outputs)
    model.set_submodule(path, linear_or_empty(*sizes, like=old.weight))


def _own_distances(heads: list[int], module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Keep the rows of the relative position bias [1, head, query, key] that belong to the remaining heads."""
    states, mask, bias, *rest = arguments
    return (states, mask, bias[:, heads], *rest)
