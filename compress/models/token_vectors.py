"""Token vectors of a teacher: each vocabulary token is passed through its encoder alone, projected on principal axes, and weighted by
rarity (Tulkens and van Dongen 2024, Model2Vec; the weights: Arora et al. 2017, A Simple but Tough-to-Beat Baseline, §3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CompressError
from ..tokenization.special import MASK, PAD, plain_copy, token_named

VECTORS = "vectors.npy"  # the table, float32 [vocabulary, hidden]
_BATCH = 1024  # texts, of one token each
_ROWS = 8192  # of states held in float64 at a time


@dataclass(frozen=True)
class TextFrame:
    """What a tokenizer puts around texts. `ids`, `types`: of a text of one token, which is at index `place`. `special`: ids that are not
    part of a text. `separator`: the first id between the two texts of a pair; None if there is none, or if it also precedes them."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    place: int
    special: tuple[int, ...]
    separator: int | None


def text_frame(tokenizer: Any) -> TextFrame:
    """Return what `tokenizer` puts around texts. Raises `CompressError` if it has no token for the letter a."""
    own = plain_copy(tokenizer)
    one, two = own.encode("a"), own.encode("a", "a")
    texts = np.flatnonzero(np.array(two.special_tokens_mask) == 0)
    places = np.flatnonzero(np.array(one.special_tokens_mask) == 0)
    if not len(places):
        raise CompressError("the tokenizer has no token for the letter a; expected one that reads texts")
    first, last = int(places[0]), int(places[-1])
    ids, types = ([*sequence[: first + 1], *sequence[last + 1 :]] for sequence in (one.ids, one.type_ids))
    around = {number for number, special in zip(two.ids, two.special_tokens_mask, strict=True) if special}
    named = {number for names in (PAD, MASK) if (number := token_named(own, names)) is not None}
    special = tuple(sorted({*around, *ids[:first], *ids[first + 1 :], *named}))
    end = int(texts[0]) + len(places)  # of the first text
    separator = two.ids[end] if end < len(two.ids) and two.special_tokens_mask[end] else None
    if separator in two.ids[:end]:
        separator = None
    return TextFrame(tuple(ids), tuple(types), first, special, separator)


def token_states(
    model: Any, frame: TextFrame, states: np.ndarray, *, mean: bool, on_progress: Callable[[int], None]
) -> None:
    """Fill `states` [vocabulary, hidden] with the last state of each token, alone in a text, or if `mean` with the mean of its states
    before the first layer and after each. The model is put into evaluation mode; `on_progress` receives the number of tokens done."""
    import torch

    from .features.named import compute_features

    device = next(model.parameters()).device
    layers = range(model.config.num_hidden_layers + 1) if mean else [model.config.num_hidden_layers]
    names = [f"hidden[{layer}]" for layer in layers]
    for start in range(0, len(states), _BATCH):
        numbers = torch.arange(start, min(start + _BATCH, len(states)), device=device)
        with torch.inference_mode():
            features = compute_features(model.eval(), _single_token_batch(numbers, frame), names)
            each = torch.stack([features[name][:, frame.place].float() for name in names]).mean(dim=0)
        states[start : start + len(numbers)] = each.cpu().numpy()
        on_progress(start + len(numbers))


def _single_token_batch(numbers: Any, frame: TextFrame) -> dict[str, Any]:
    """Return a batch of texts of one token each."""
    ids, types = (numbers.new_tensor(values).repeat(len(numbers), 1) for values in (frame.ids, frame.types))
    ids[:, frame.place] = numbers
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": ids.new_ones(ids.shape)}


def principal_axes(states: np.ndarray, rows: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (mean [hidden], axes [hidden, width], share of the variance along them) of the `rows` (bool) of `states`, in float64.

    The axes are the first right singular vectors of the centred matrix, exact, computed from its scatter matrix so that a long vocabulary
    need not fit in memory. The largest component of each axis is positive.
    """
    count, hidden = int(rows.sum()), states.shape[1]
    mean = sum((block.sum(axis=0) for block in _blocks(states, rows)), np.zeros(hidden)) / count
    scatter = np.zeros((hidden, hidden))
    for block in _blocks(states, rows):
        centred = block - mean
        scatter += centred.T @ centred
    variances, axes = np.linalg.eigh(scatter)
    variances, axes = variances[::-1], axes[:, ::-1][:, :width]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return mean, axes * signs, float(variances[:width].sum() / max(variances.sum(), np.finfo(float).tiny))


def _blocks(states: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(states), _ROWS):
        kept = rows[start : start + _ROWS]
        yield states[start : start + _ROWS][kept].astype(np.float64)


def token_frequencies(counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return frequencies p [vocabulary] of the tokens in `rows` (bool), counted `counts` times in texts.

    Tokens that do not occur have the frequency of their rank in the vocabulary by Zipf's law, at most that of a token seen once. Tokens
    outside `rows` have 0.
    """
    total, known = max(int(counts[rows].sum()), 1), int(rows.sum())
    ranks = np.cumsum(rows)
    harmonic = float((1.0 / np.arange(1, known + 1)).sum())
    zipf = 1.0 / (np.maximum(ranks, 1) * harmonic)
    frequencies = np.where(counts > 0, counts / total, np.minimum(zipf, 1.0 / total))
    return np.where(rows, frequencies, 0.0)


def weighted_vectors(
    states: np.ndarray, rows: np.ndarray, frequencies: np.ndarray, *, width: int, a: float | None
) -> tuple[np.ndarray, float]:
    """Return (float32 [vocabulary, width], share of the variance that is kept): the centred `states` of `rows` (bool) along their principal
    axes, with variance 1 on average, times a / (a + p) unless `a` is None. Rows of other tokens are 0.

    Vectors as wide as the states keep the states' own axes, because a sentence encoder learns its teacher's directions.
    """
    mean, axes, kept = principal_axes(states, rows, width)
    axes = np.eye(width) if width == states.shape[1] else axes
    vectors, squares = np.zeros((len(states), width), np.float32), 0.0
    for start in range(0, len(states), _ROWS):
        part = slice(start, start + _ROWS)
        projections = ((states[part].astype(np.float64) - mean) @ axes) * rows[part, None]
        vectors[part] = projections
        squares += float(np.square(projections).sum())
    size = math.sqrt(squares / max(1, int(rows.sum()) * width))
    weights = np.ones(len(states)) if a is None else a / (a + frequencies)
    weights /= max(size, float(np.finfo(np.float32).tiny))
    vectors *= weights[:, None].astype(np.float32)
    return vectors, kept
