"""Masked language models: find out whether a checkpoint is one, load it, put a new head on an encoder, run the head at masked positions.

The head is a transform (hidden size -> embedding size) and a decoder (-> vocabulary) tied to the word embedding table. torch is imported
inside the functions, because planning calls `has_masked_lm_head` without it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import CompressError
from ..losses.masked_lm import masked_lm_loss, masked_positions
from .checkpoints.pretrained import check_loading, load_pretrained
from .checkpoints.weights import tensor_names
from .dimensions import read_config
from .families import FAMILIES

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_LIFT = 6.0  # GELU(x) equals x to three digits for x ≥ 3, and normalised states hardly reach -3


def has_masked_lm_head(folder: Path) -> bool:
    """Whether the checkpoint has a trained masked-LM head; an ELECTRA discriminator has none. Raises `CompressError` for a checkpoint that
    cannot be read."""
    head = FAMILIES[read_config(folder)["model_type"]].heads.masked_lm
    return head is not None and f"{head.dense}.weight" in tensor_names(folder)


def load_masked_lm(folder: Path) -> nn.Module:
    """Return the checkpoint's own masked language model, in fp32 and evaluation mode.

    Raises `CompressError` if it has no head, or any weight is missing or has another shape.
    """
    if not has_masked_lm_head(folder):
        raise CompressError(f"{folder}: the checkpoint holds no masked-LM head; train one on text first")
    model, loading = _load(folder)
    check_loading(folder, loading)
    return model.eval()


def new_masked_lm_head(folder: Path) -> nn.Module:
    """Return the checkpoint's encoder with a new masked-LM head that starts near the identity, in fp32 and training mode.

    Initially, a word's score is the product of its embedding and the normalised hidden state. Raises `CompressError` if an encoder weight
    is missing.
    """
    model, loading = _load(folder)
    encoder = f"{model.base_model_prefix}."
    check_loading(folder, loading, lambda name: not name.startswith(encoder) or ".pooler." in name)
    near_identity(model)
    return model.train()


def masked_lm_around(encoder: Any, head: Any = None) -> nn.Module:
    """Return a masked language model that contains `encoder` itself, with the head of the model `head`, or a new one.

    The decoder is tied to the encoder's word table. A new head has transformers' own initialisation, under the caller's torch seed.
    """
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_config(encoder.config) if head is None else head
    setattr(model, model.base_model_prefix, encoder)
    model.tie_weights()
    return model


def copy_head(source: Any, target: Any) -> None:
    """Copy the head of one masked language model to another of any family, with the same widths and vocabulary.

    A decoder tied to the target's word table keeps that table, because the source's may be a separate matrix.
    """
    import torch

    table = target.get_input_embeddings().weight
    with torch.no_grad():
        for target_part, source_part in zip(_head(target), _head(source), strict=True):
            if isinstance(target_part, torch.nn.Module) and isinstance(source_part, torch.nn.Module):
                for name, parameter in target_part.named_parameters():
                    if parameter is table:
                        continue
                    parameter.copy_(source_part.get_parameter(name))


def _load(folder: Path) -> tuple[Any, dict[str, Any]]:
    from transformers import AutoModelForMaskedLM

    return load_pretrained(AutoModelForMaskedLM, folder, "a masked language model")


class _Head(NamedTuple):
    """The parts of a head, in the order in which they are applied."""

    dense: nn.Linear
    activation: Callable[[Tensor], Tensor]
    norm: nn.LayerNorm
    decoder: nn.Linear


def _head(model: Any) -> _Head:
    from torch.nn.functional import gelu

    head = FAMILIES[model.config.model_type].heads.masked_lm
    if head is None:
        raise CompressError(f"the masked-LM head of a {model.config.model_type} is not known")
    activation = gelu if head.activation is None else attrgetter(head.activation)(model)
    dense, norm, decoder = (attrgetter(path)(model) for path in (head.dense, head.norm, head.decoder))
    return _Head(dense, activation, norm, decoder)


def decoder(model: Any) -> nn.Linear:
    """Return the last layer of the head: a row and a bias for each token of the vocabulary."""
    return _head(model).decoder


def masked_states(model: Any, batch: dict[str, Tensor], positions: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Return the decoder's inputs at the `positions`: [position, embedding].

    `positions`: int64 [position], indices into [batch, length] flattened. `hidden`: the encoder's last states [batch, length, hidden], if
    already computed.
    """
    from .features.named import model_inputs

    if hidden is None:
        output: Any = model.base_model(**model_inputs(model, batch))
        hidden = output.last_hidden_state
    states: Any = hidden
    head = _head(model)
    return head.norm(head.activation(head.dense(states.flatten(0, 1)[positions])))


def token_scores(
    model: Any, batch: dict[str, Tensor], hidden: Tensor | None = None, words: Tensor | None = None
) -> Tensor:
    """Return the head's logits at the `masked_positions` of the batch: [position, vocabulary].

    No other position reaches the decoder. `hidden` is as in `masked_states`; `words` [vocabulary, embedding] replaces the table that the
    decoder is tied to.
    """
    from torch.func import functional_call

    states = masked_states(model, batch, masked_positions(batch), hidden)
    return functional_call(decoder(model), {} if words is None else {"weight": words}, states).float()


def masked_text_loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the `masked_lm_loss` of the whole model on `batch`."""
    return masked_lm_loss(token_scores(model, batch), batch["labels"].flatten()[masked_positions(batch)])


def near_identity(model: Any) -> None:
    """Initialise the transform so that its LayerNorm's output is about the normalised input.

    The dense layer is the identity (the pseudo-inverse of the encoder's own projection if embeddings are narrower than hidden states). Its
    bias lifts values to where the activation is the identity too, and LayerNorm removes the constant. Without a bias, the activation
    flattens values below 0.
    """
    import torch

    dense, _, norm, last = _head(model)
    with torch.no_grad():
        dense.weight.copy_(_back_to_embeddings(model, dense))
        norm.weight.fill_(_gain(last.weight))
        if dense.bias is not None:
            dense.bias.fill_(_LIFT)
        for part in (norm, last):
            if part.bias is not None:
                part.bias.zero_()


def _gain(table: torch.Tensor) -> float:
    """Return the gain for which scores have a standard deviation of about 1 between words: neither flat nor overconfident."""
    spread = (table - table.mean(0)).square().sum(1).mean().sqrt()
    return 1.0 / float(spread)


def _back_to_embeddings(model: Any, dense: nn.Linear) -> torch.Tensor:
    import torch

    wide, narrow = dense.in_features, dense.out_features
    if wide == narrow:
        return torch.eye(wide)
    projections = [
        module
        for module in model.base_model.modules()
        if isinstance(module, torch.nn.Linear) and module.in_features == narrow
    ]
    first = next(module for module in projections if module.out_features == wide)
    return torch.linalg.pinv(first.weight)
