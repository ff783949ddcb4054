"""Which layers a sentence encoder's vectors are made of: the last, an earlier one, the mean of the last few, or a mix of all.

For an earlier layer, the encoder is cut off after it. In config.json, `sentence_layers` is the number of last layers to average, or the
weights of a mix, of the embeddings' states and each layer's (`layer_mix`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ..families import FAMILIES

if TYPE_CHECKING:
    from torch import Tensor

AVERAGED = "sentence_layers"  # of config.json
LEARNT = "layer_mix"  # the module of a model that learns its mix
LAST = "last"
MIX = "mix"
Layers = int | str  # `last`, the number of a layer, from 1, or `last-N`
_LAYERS = "num_hidden_layers"


def problem_of(layers: Layers, *, is_random: bool) -> str | None:
    """Return what is wrong with the `layers` of a card, for a checkpoint or random weights; None if nothing is."""
    if layers != LAST and is_random:
        return "with random weights no layer is better than another; leave it out"
    if layers == MIX:
        return "a teacher's vectors are not trained, so it has no mix to learn; a student has one (`vector_layers: mix` of its card)"
    if isinstance(layers, int) and not isinstance(layers, bool):
        return None if layers >= 1 else f"expected the number of a layer, from 1 on; found {layers}"
    if layers == LAST or (isinstance(layers, str) and re.fullmatch(r"last-([2-9]|[1-9]\d+)", layers)):
        return None
    return f"expected `last`, the number of a layer from 1 on, or `last-N` with N at least 2, the mean of the last N; found {layers!r}"


def with_layers(config: Mapping[str, Any], layers: Layers, who: str) -> dict[str, Any]:
    """Return the `config` of the encoder whose vectors are of these `layers`. Raises `CompressError` naming `who` if it has too few, or if
    layers of its family cannot be selected."""
    family = FAMILIES[config["model_type"]]
    name = family.own_name(_LAYERS)
    if layers == LAST:
        _check_count(config, name, who)
        return dict(config)
    if not family.fast_graph or family.layerless:
        raise CompressError(
            f"{who}: layers: found {layers}, and the layers of a {family.title} cannot be taken apart here; leave it out"
        )
    depth, wanted = int(config[name]), layers if isinstance(layers, int) else int(layers.removeprefix("last-"))
    if wanted > depth:
        raise CompressError(f"{who}: layers: found {layers}, and the checkpoint has {depth} layers")
    if isinstance(layers, str):
        return {**config, AVERAGED: wanted}
    if int(config.get("num_hidden_groups", 1)) > 1 and family.shares_layers:
        raise CompressError(f"{who}: layers: its layers share weights in groups, which cannot be cut; leave it out")
    return {field: value for field, value in config.items() if field != AVERAGED} | {name: wanted}


def _check_count(config: Mapping[str, Any], name: str, who: str) -> None:
    averaging, depth = config.get(AVERAGED, 1), int(config.get(name, 0))
    where = f"{who}: config.json: {AVERAGED}: expected"
    if isinstance(averaging, list):
        if len(averaging) != depth + 1:
            raise CompressError(
                f"{where} a weight for the embeddings and for each of its {depth} layers, found {len(averaging)}"
            )
    elif averaging > 1 and averaging > depth:
        raise CompressError(f"{where} at most its {depth} layers, found {averaging}")


def vector_words(config: Mapping[str, Any]) -> str | None:
    """Return in words which layers the vectors are made of; None if the last alone."""
    averaging = config.get(AVERAGED, 1)
    if isinstance(averaging, list):
        return f"a mix of the states of its embeddings and {len(averaging) - 1} layers"
    return f"the mean of its last {averaging} layers' states" if averaging > 1 else None


def is_mix(config: Any) -> bool:
    """Whether vectors are a mix, by transformers' config of the model."""
    return isinstance(getattr(config, AVERAGED, 1), list)


def layer_weights(config: Any) -> list[float]:
    """Return weights of the last states that vectors are made of, in layer order, by transformers' config of the model; those of a mix
    start with the embeddings'."""
    averaging = getattr(config, AVERAGED, 1)
    return [float(weight) for weight in averaging] if isinstance(averaging, list) else [1 / averaging] * averaging


def loading_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the additional config fields that make transformers' model return the states of all layers, if several are needed."""
    return {} if vector_words(config) is None else {"output_hidden_states": True}


def layer_states(model: Any, output: Any) -> Tensor:
    """Return the states [batch, length, hidden] that vectors are made of, from the `output` of transformers' model."""
    weights = layer_weights(model.config)
    if len(weights) == 1:
        return output.last_hidden_state
    several = output.hidden_states[-len(weights) :]
    learnt = getattr(model, LEARNT, None)
    total, *others = (
        state * weight for state, weight in zip(several, weights if learnt is None else learnt(), strict=True)
    )
    for other in others:
        total = total + other
    return total
