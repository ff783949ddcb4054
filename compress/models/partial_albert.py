"""ALBERT whose layers share half of a block: their attention, or their feed-forward network (Lan et al. 2020, §4.5).

transformers' `AlbertConfig` cannot say this, so these are subclasses of ours. Importing this module makes
transformers' Auto classes know them; a tool that does not import it cannot load such a checkpoint. An ONNX bundle
of one needs ONNX Runtime alone.
"""

from __future__ import annotations

from typing import Any

from transformers import (
    AlbertConfig,
    AlbertForSequenceClassification,
    AlbertModel,
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
)

PARTS = {
    "attention": ("attention",),
    "ffn": ("ffn", "ffn_output", "full_layer_layer_norm"),
}  # modules of an AlbertLayer


class PartialAlbertConfig(AlbertConfig):
    """An `AlbertConfig` with a group for each layer, of which the groups have `shared` in common: `attention` or `ffn`."""

    model_type = "partial-albert"
    shared: str = "attention"


class PartialAlbertModel(AlbertModel):
    config_class = PartialAlbertConfig

    def __init__(self, config: PartialAlbertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config, add_pooling_layer)
        _share(self, self)


class PartialAlbertForSequenceClassification(AlbertForSequenceClassification):
    config_class = PartialAlbertConfig

    def __init__(self, config: PartialAlbertConfig) -> None:
        super().__init__(config)
        self.albert = PartialAlbertModel(config)
        _share(self, self.albert)


def _share(model: Any, encoder: Any) -> None:
    """Give all layers of `encoder` the same modules, and tell transformers which names of `model`'s weights are one."""
    layers = [group.albert_layers[0] for group in encoder.encoder.albert_layer_groups]
    parts = PARTS[encoder.config.shared]
    prefix = "" if model is encoder else f"{model.base_model_prefix}."
    tied: dict[str, str] = {}
    for part in parts:
        module = getattr(layers[0], part)
        for number, layer in enumerate(layers[1:], 1):
            setattr(layer, part, module)
            for name, _ in module.named_parameters():
                stem = f"{prefix}encoder.albert_layer_groups.{{}}.albert_layers.0.{part}.{name}"
                tied[stem.format(number)] = stem.format(0)
    model._tied_weights_keys = tied  # what `save_pretrained` leaves out
    model.all_tied_weights_keys = dict(tied)  # what `from_pretrained` does not miss


AutoConfig.register("partial-albert", PartialAlbertConfig)
AutoModel.register(PartialAlbertConfig, PartialAlbertModel)
AutoModelForSequenceClassification.register(PartialAlbertConfig, PartialAlbertForSequenceClassification)
