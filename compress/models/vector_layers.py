"""Which layers a sentence encoder's vectors are made of: the last, one before it, or the mean of the last few.

Of one layer the encoder is cut off behind it. How many last layers the mean is of stands in config.json, as `sentence_layers`.
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
LAST = "last"
Layers = int | str  # `last`, the number of a layer, from 1, or `last-N`
_LAYERS = "num_hidden_layers"


def problem_of(layers: Layers, *, is_random: bool) -> str | None:
    """What is wrong with what the card of a checkpoint, or of random weights, says; None where nothing is."""
    if layers != LAST and is_random:
        return "of random weights none is better than another; leave it out"
    if layers == "mix":
        return "a learned mix of layers is not supported; expected `last`, the number of a layer, or `last-N`, the mean of the last N"
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
        _check_mean(config, name, who)
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


def _check_mean(config: Mapping[str, Any], name: str, who: str) -> None:
    count, depth = int(config.get(AVERAGED, 1)), int(config.get(name, 0))
    if count > 1 and count > depth:
        raise CompressError(f"{who}: config.json: {AVERAGED}: expected at most its {depth} layers, found {count}")


def averaged(config: Any) -> int:
    """Of how many last layers vectors are the mean, by transformers' config of the model: 1 where it says nothing."""
    return int(getattr(config, AVERAGED, 1))


def loading_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config says beside, so that transformers' model gives the states of all layers, where vectors are made of several."""
    return {"output_hidden_states": True} if int(config.get(AVERAGED, 1)) > 1 else {}


def layer_states(model: Any, output: Any) -> Tensor:
    """The states [batch, length, hidden] that vectors are made of, in the `output` of transformers' model."""
    count = averaged(model.config)
    if count == 1:
        return output.last_hidden_state
    states = output.hidden_states[-1]
    for other in output.hidden_states[-count:-1]:
        states = states + other
    return states / count
