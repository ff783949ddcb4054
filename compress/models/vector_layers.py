"""Which layers a sentence encoder's vectors are made of: the last, one before it, the mean of the last few, or a mix of all.

Of one layer the encoder is cut off behind it. In config.json `sentence_layers` is the number of last layers that the mean is of, or
the weights of a mix, of the embeddings' states and each layer's (`layer_mix`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from .families import FAMILIES

if TYPE_CHECKING:
    from torch import Tensor

AVERAGED = "sentence_layers"  # of config.json
LEARNT = "layer_mix"  # the module of a model that learns its mix
LAST = "last"
MIX = "mix"
Layers = int | str  # `last`, the number of a layer, from 1, or `last-N`
_LAYERS = "num_hidden_layers"


def problem_of(layers: Layers, *, is_random: bool) -> str | None:
    """What is wrong with what the card of a checkpoint, or of random weights, says; None where nothing is."""
    if layers != LAST and is_random:
        return "of random weights none is better than another; leave it out"
    if layers == MIX:
        return "a teacher's vectors are not trained, so it has no mix to learn; a student has one (`vector_layers: mix` of its card)"
    if isinstance(layers, int) and not isinstance(layers, bool):
        return None if layers >= 1 else f"expected the number of a layer, from 1 on; found {layers}"
    if layers == LAST or (isinstance(layers, str) and re.fullmatch(r"last-([2-9]|[1-9]\d+)", layers)):
        return None
    return f"expected `last`, the number of a layer from 1 on, or `last-N` with N at least 2, the mean of the last N; found {layers!r}"


def with_layers(config: Mapping[str, Any], layers: Layers, who: str) -> dict[str, Any]:
    """The `config` of the encoder whose vectors are of these `layers`. CompressError naming `who`: it has not so many, or its family
    has none that can be taken."""
    family = FAMILIES[config["model_type"]]
    name = family.own_name(_LAYERS)
    if layers == LAST:
        _check_count(config, name, who)
        return dict(config)
    if not family.fast or family.layerless:
        raise CompressError(
            f"{who}: layers: found {layers}, and the layers of a {family.title} cannot be taken apart here; leave it out"
        )
    depth, wanted = int(config[name]), layers if isinstance(layers, int) else int(layers.removeprefix("last-"))
    if wanted > depth:
        raise CompressError(f"{who}: layers: found {layers}, and the checkpoint has {depth} layers")
    if isinstance(layers, str):
        return {**config, AVERAGED: wanted}
    if int(config.get("num_hidden_groups", 1)) > 1 and family.shares_layers:
        raise CompressError(
            f"{who}: layers: its layers share weights in groups, which one layer would part; leave it out"
        )
    return {field: value for field, value in config.items() if field != AVERAGED} | {name: wanted}


def _check_count(config: Mapping[str, Any], name: str, who: str) -> None:
    found, depth = config.get(AVERAGED, 1), int(config.get(name, 0))
    where = f"{who}: config.json: {AVERAGED}: expected"
    if isinstance(found, list):
        if len(found) != depth + 1:
            raise CompressError(
                f"{where} a weight for the embeddings and for each of its {depth} layers, found {len(found)}"
            )
    elif found > 1 and found > depth:
        raise CompressError(f"{where} at most its {depth} layers, found {found}")


def vector_words(config: Mapping[str, Any]) -> str | None:
    """What of several layers the vectors are made of; None where it is the last alone."""
    found = config.get(AVERAGED, 1)
    if isinstance(found, list):
        return f"a mix of the states of its embeddings and {len(found) - 1} layers"
    return f"the mean of its last {found} layers' states" if found > 1 else None


def is_mix(config: Any) -> bool:
    """Whether vectors are made of a mix, by transformers' config of the model."""
    return isinstance(getattr(config, AVERAGED, 1), list)


def layer_weights(config: Any) -> list[float]:
    """Of the last states that vectors are made of, the last one's last, by transformers' config of the model: those of a mix begin with
    the embeddings'."""
    found = getattr(config, AVERAGED, 1)
    return [float(weight) for weight in found] if isinstance(found, list) else [1 / found] * found


def loading_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says beside, so that transformers' model gives the states of all layers, where vectors are made of several."""
    return {} if vector_words(config) is None else {"output_hidden_states": True}


def layer_states(model: Any, output: Any) -> Tensor:
    """The states [batch, length, hidden] that vectors are made of, in the `output` of transformers' model."""
    weights = layer_weights(model.config)
    if len(weights) == 1:
        return output.last_hidden_state
    several = output.hidden_states[-len(weights) :]
    learnt = getattr(model, LEARNT, None)
    found, *others = (
        state * weight for state, weight in zip(several, weights if learnt is None else learnt(), strict=True)
    )
    for other in others:
        found = found + other
    return found
