"""Candidates for a word in its sentence: a masked language model's predictions in its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import CompressError
from ..files.atomic import replacing
from ..tokenization.special import MASK, token_named
from .batching import Batch, Slots, batches_of
from .words import SPARE, case_folded_ids, exclude_own_word, fold_numbers, whole_words

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CPU_TOKENS, GPU_TOKENS = 1536, 2**15  # per forward; on a CPU, as many as fit in its caches
PART_TOKENS = 2**17  # between two saves: a minute for a small model on one core
HEAD_AT_ONCE = 512  # positions; bounds the scores, [positions, words]


class MaskedLmProposer:
    """Proposes the most likely whole words at a masked word, by a masked language model on the text alone.

    Several words of a text are masked in one forward: disjoint groups of about 15 % of its tokens, spread over it, as in the model's
    training. (Published: one word per forward; the official code also appends the original text.) `tokenizer` is the model's; the model
    runs in fp32 on its current device.
    """

    def __init__(self, model: Any, tokenizer: Tokenizer) -> None:
        self.vocabulary, self._ids = whole_words(tokenizer)
        mask = token_named(tokenizer, MASK)
        if mask is None or not len(self._ids):
            raise CompressError("a masked language model needs a tokenizer with a mask token and whole words")
        self.tokenizer = tokenizer
        self._model, self._mask = model, mask
        self._fold = case_folded_ids(self.vocabulary)

    @property
    def max_length(self) -> int:
        """The longest text in tokens."""
        from ..models.dimensions import usable_positions

        return usable_positions(self._model.config.to_dict())

    def propose(
        self, slots: Slots, candidates: int, work: Path | None, on_progress: Callable[[int, int], None]
    ) -> np.ndarray:
        """Return int32 [word, candidate]: indices into `vocabulary`, best first, padded with -1.

        `work`: a folder for finished parts. `on_progress` receives (words done, words in total) after each.
        """
        tokens = CPU_TOKENS if self._device.type == "cpu" else GPU_TOKENS
        batches, per_part = batches_of(slots, tokens), max(1, PART_TOKENS // tokens)
        own, done = self._own_numbers(slots), 0
        out = np.full((len(slots), candidates), -1, np.int32)
        for start in range(0, len(batches), per_part):
            part = batches[start : start + per_part]
            members = np.concatenate([batch.slots for batch in part])
            file = None if work is None else work / f"candidates-{tokens}-{start:06d}.npy"
            ranked = _load_or_make(
                file, (len(members), self._count(candidates)), lambda part=part: self._rank(slots, part, candidates)
            )
            out[members] = exclude_own_word(ranked, self._fold, own[members], candidates)
            done += len(members)
            on_progress(done, len(slots))
        return out

    @property
    def _device(self) -> Any:
        return next(self._model.parameters()).device

    def _count(self, candidates: int) -> int:
        return min(candidates + SPARE, len(self.vocabulary))

    def _own_numbers(self, slots: Slots) -> np.ndarray:
        """Return int32 [word]: the number of the word itself, ignoring case, as written or else by its token; -1 if none."""
        of_token = dict(zip(self._ids.tolist(), self._fold.tolist(), strict=True))
        by_token = np.array([of_token.get(token, -1) for token in slots.tokens.tolist()], np.int32)
        written = case_folded_ids(slots.words, fold_numbers(self.vocabulary))
        return np.where(written >= 0, written, by_token)

    def _rank(self, slots: Slots, batches: list[Batch], candidates: int) -> np.ndarray:
        """Return the most likely words of the batches' slots, possibly including the word itself: int32 [slot, more]."""
        import torch

        from ..models.masked_lm import decoder

        training = self._model.training
        self._model.eval()
        with torch.inference_mode():
            last, ids = decoder(self._model), torch.from_numpy(self._ids).to(self._device)
            rows = (last.weight[ids], None if last.bias is None else last.bias[ids])
            ranked = [self._rank_batch(slots, batch, rows, self._count(candidates)) for batch in batches]
        self._model.train(training)
        return np.concatenate(ranked)

    def _rank_batch(self, slots: Slots, batch: Batch, rows: tuple[Any, Any], count: int) -> np.ndarray:
        """Return the ranking for one batch. `rows`: weights and biases of the decoder for whole words only."""
        import torch
        from torch.nn.functional import linear

        from ..models.features.predict import to_tensors
        from ..models.masked_lm import masked_states

        pad_id = int(self._model.config.pad_token_id or 0)
        arrays, masked = batch.inputs(slots, mask_id=self._mask, pad_id=pad_id)
        inputs = to_tensors(arrays | {"masked": np.flatnonzero(masked)}, self._device)
        states = masked_states(self._model, inputs, inputs["masked"])
        ranked = [linear(part, *rows).topk(count).indices for part in states.split(HEAD_AT_ONCE)]
        return torch.cat(ranked).cpu().numpy().astype(np.int32)


def _load_or_make(path: Path | None, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """Return the int32 array in the file at `path`, or a new one, saved there atomically; without `path` nothing is saved.

    A file with another shape, or a truncated one, is replaced.
    """
    array = None if path is None else _read_part(path)
    if array is not None and array.shape == shape and array.dtype == np.int32:
        return array
    array = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, part.open("wb") as file:
            np.save(file, array, allow_pickle=False)
    return array


def _read_part(path: Path) -> np.ndarray | None:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
