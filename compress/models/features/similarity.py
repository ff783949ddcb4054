"""Similarity of a student's layers to its teacher's: linear CKA of their states (Kornblith et al. 2019, arXiv:1905.00414), and the
Jensen-Shannon divergence of their attention (Lin 1991)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...losses.features import attention, hidden
from ...tasks import Encoded, collate, sorted_chunks
from ..families import FAMILIES
from .attention import headless_layers
from .named import compute_features
from .predict import to_tensors

_TOKENS = 512  # of a batch, padding included; memory for attention grows with its square if it is a single text
_CONSTANT = 1e-12  # of the mean square of a layer's states; a smaller variance is rounding error

States = Sequence[Float[Tensor, "token width"]]


@dataclass(frozen=True)
class Reader:
    """A model in evaluation mode, the texts in its own token ids, and its padding id."""

    model: Any
    texts: Encoded
    pad_id: int


class StateSums:
    """Sums over tokens, in float64, from which the linear CKA of every pair of layers is computed.

    Memory does not grow with the tokens: one matrix [student width, teacher width] per pair of layers.
    """

    def __init__(self) -> None:
        self._tokens = 0
        self._sums: tuple[_OwnSums, _OwnSums] = _OwnSums(), _OwnSums()
        self._products: Tensor | None = None  # [all student widths, all teacher widths]

    def add(self, student: States, teacher: States) -> None:
        """Add the states of the same tokens after each layer of both models."""
        joined = [torch.cat([*states], dim=1).double() for states in (student, teacher)]
        self._tokens += len(joined[0])
        for sums, states, own in zip(self._sums, (student, teacher), joined, strict=True):
            sums.add(own, [layer.shape[1] for layer in states])
        product = joined[0].T @ joined[1]
        self._products = product if self._products is None else self._products.add_(product)

    def cka(self) -> Float[np.ndarray, "student_layer teacher_layer"]:
        """Return ‖Yᵀ X‖² / (‖Xᵀ X‖ ‖Yᵀ Y‖), Frobenius norms, for X and Y with centred columns (§3, linear kernels): 0 to 1. It is 0 for a
        layer with the same state for all tokens."""
        if self._products is None:
            raise ValueError("expected the states of at least one token")
        student_sums, teacher_sums = self._sums
        cross_products = self._products - torch.outer(student_sums.sum, teacher_sums.sum) / self._tokens
        squares = torch.stack(
            [
                torch.stack([block.square().sum() for block in rows.split(teacher_sums.widths, dim=1)])
                for rows in cross_products.split(student_sums.widths)
            ]
        )
        norms = torch.outer(student_sums.norms(self._tokens), teacher_sums.norms(self._tokens))
        return torch.where(norms > 0, squares / norms, 0).clamp(0, 1).numpy()


class _OwnSums:
    """Sums over tokens for one model: its states, and each layer's products with itself."""

    def __init__(self) -> None:
        self.widths: list[int] = []
        self.sum = torch.zeros(0)
        self._products: list[Tensor] = []

    def add(self, states: Float[Tensor, "token all_widths"], widths: list[int]) -> None:
        if not self._products:
            self.widths, self.sum = widths, states.new_zeros(sum(widths))
            self._products = [states.new_zeros(width, width) for width in widths]
        self.sum += states.sum(0)
        for product, layer in zip(self._products, states.split(widths, dim=1), strict=True):
            product.addmm_(layer.T, layer)

    def norms(self, tokens: int) -> Float[Tensor, " layer"]:
        """Return ‖Xᵀ X‖ of each layer, of centred states."""
        return torch.stack(
            [
                _norm(product, layer, tokens)
                for product, layer in zip(self._products, self.sum.split(self.widths), strict=True)
            ]
        )


def _norm(product: Tensor, summed: Tensor, tokens: int) -> Tensor:
    centred = product - torch.outer(summed, summed) / tokens
    constant = centred.trace() <= _CONSTANT * product.trace()
    return torch.where(constant, 0.0, torch.linalg.matrix_norm(centred))


def attention_divergences(
    student: Sequence[Float[Tensor, "token key"]], teacher: Sequence[Float[Tensor, "token key"]]
) -> Float[Tensor, "student_layer teacher_layer"]:
    """Return Σ over tokens of JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2, in bits, for two distributions over the same keys. Per token
    it is exactly 0 if they are equal, and 1 if they share no key (Lin 1991, eq. 4.1)."""
    own, others = ([_entropy(layer) for layer in layers] for layers in (student, teacher))
    divergences = [
        torch.stack(
            [(_entropy((p + q) / 2) - (h + k) / 2).clamp(0, 1).sum() for q, k in zip(teacher, others, strict=True)]
        )
        for p, h in zip(student, own, strict=True)
    ]
    return torch.stack(divergences)


def _entropy(weights: Float[Tensor, "token key"]) -> Float[Tensor, " token"]:
    """Return the entropy in bits."""
    return -torch.special.xlogy(weights, weights).sum(-1) / np.log(2)


@torch.inference_mode()
def layer_similarity(
    student: Reader, teacher: Reader, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Float[np.ndarray, "states teacher_states"], Float[np.ndarray, "layer teacher_layer"] | None]:
    """Return (linear CKA of states, mean Jensen-Shannon divergence of attention in bits) for every pair of layers, over all real tokens.

    Both models read the same tokens in the same order, under their own ids. States are those after the embeddings and after each layer.
    Attention is the mean over a layer's heads: NaN for a layer without heads, None if a model's attention cannot be read.
    `on_progress(done, total)` receives numbers of texts.
    """
    heads = [_layers_with_heads(reader.model) for reader in (student, teacher)]
    heads = heads if all(heads) else [[], []]
    sums, divergences, tokens, done = StateSums(), None, 0, 0
    for rows in sorted_chunks(student.texts.lengths, _TOKENS):
        student_read, teacher_read = (
            _read(reader, rows, layers) for reader, layers in zip((student, teacher), heads, strict=True)
        )
        sums.add(student_read.states, teacher_read.states)
        if all(heads):
            chunk_divergences = attention_divergences(student_read.attention, teacher_read.attention)
            divergences = chunk_divergences if divergences is None else divergences + chunk_divergences
        tokens += len(student_read.states[0])
        done += len(rows)
        on_progress(done, len(student.texts))
    if divergences is None:
        return sums.cka(), None
    table = np.full([reader.model.config.num_hidden_layers for reader in (student, teacher)], np.nan)
    table[np.ix_(*heads)] = divergences.numpy() / tokens
    return sums.cka(), table


def attention_problem(model: Any) -> str | None:
    """Return which attention is not compared, and why; None if all is."""
    config = model.config
    if not (family := FAMILIES[config.model_type]).attention.readable:
        return f"attention, which cannot be read in {family.title} models"
    headless = sorted(headless_layers(config))
    return f"attention in {_name_layers(headless)}, where pruning left no heads" if headless else None


def _name_layers(layers: Sequence[int]) -> str:
    """Return the layers in words, counted from 1."""
    return f"layer{'s' if len(layers) > 1 else ''} {', '.join(str(layer + 1) for layer in layers)}"


def _layers_with_heads(model: Any) -> list[int]:
    """Return layer numbers from 0; [] if attention cannot be read."""
    if not FAMILIES[model.config.model_type].attention.readable:
        return []
    return sorted({*range(model.config.num_hidden_layers)} - headless_layers(model.config))


@dataclass(frozen=True)
class _Layers:
    states: list[Tensor]  # [token, width]
    attention: list[Tensor]  # [token, key], float64


def _read(reader: Reader, rows: np.ndarray, with_heads: list[int]) -> _Layers:
    """Return states and attention at the real tokens of `rows`, on the CPU."""
    batch = to_tensors(collate(reader.texts, rows, reader.pad_id), next(reader.model.parameters()).device)
    states = [hidden(layer) for layer in range(reader.model.config.num_hidden_layers + 1)]
    weights = [attention("weights", layer) for layer in with_heads]
    features = compute_features(reader.model, batch, [*states, *weights])
    return _Layers(
        [_real_tokens(features[name], batch["attention_mask"]) for name in states],
        [_real_tokens(features[name].double().mean(1), batch["attention_mask"]) for name in weights],
    )


def _real_tokens(
    values: Float[Tensor, "batch length size"], mask: Int[Tensor, "batch length"]
) -> Float[Tensor, "token size"]:
    return values[mask.bool()].cpu()
