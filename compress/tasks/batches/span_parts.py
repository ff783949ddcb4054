"""Windows of questions and contexts in another model's tokens, and the corresponding token positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tokenizers

from ...runtime.passages import Passages
from ...runtime.words import NOWHERE
from .encoded import ENCODE_AT_ONCE, Encoded, ragged_rows
from .spans import EncodedSpans


@dataclass(frozen=True)
class EncodedParts(Encoded):
    """A row for each window of a reader: its question, and the part of the context in the window. `places` int32 [token, 2] per row:
    positions in the window of the tokens with the first and the last character of this token; `NOWHERE` if there is none, or the token is
    not of the context. [CLS] maps to the window's. `labels` are unused."""

    places: list[np.ndarray]

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return `places` int64 [window, length, 2]."""
        places = np.full((len(indices), length, 2), NOWHERE, np.int64)
        for row, index in enumerate(indices.tolist()):
            places[row, : len(self.places[index])] = self.places[index]
        return {"places": places}


def encode_parts(tokenizer: tokenizers.Tokenizer, windows: EncodedSpans, max_length: int) -> EncodedParts:
    """Return the windows in at most `max_length` tokens each; the rest of a part is left out. The given tokenizer is not changed."""
    passages = Passages(tokenizer, max_length)
    ids: list[np.ndarray] = []
    types: list[np.ndarray] = []
    places: list[np.ndarray] = []
    for start in range(0, len(windows), ENCODE_AT_ONCE):
        rows = range(start, min(start + ENCODE_AT_ONCE, len(windows)))
        bounds = [_context_range(windows, row) for row in rows]
        contexts = [windows.context(row)[first:end] for row, (first, end) in zip(rows, bounds, strict=True)]
        cut = passages([windows.question(row) for row in rows], contexts)
        each = np.searchsorted(cut.question, np.arange(len(rows))).tolist()
        encodings = [cut.encodings[window] for window in each]
        lengths = [len(encoding) for encoding in encodings]
        ids += ragged_rows([encoding.ids for encoding in encodings], lengths, np.int32)
        types += ragged_rows([encoding.type_ids for encoding in encodings], lengths, np.int8)
        for row, window, size, (begin, _) in zip(rows, each, lengths, bounds, strict=True):
            first, end, cls = cut.readable(window)
            own = np.full((size, 2), NOWHERE, np.int32)
            own[first:end] = _token_places(windows, row, cut.offsets(window) + begin)
            own[cls] = windows.cut.readable(row)[2]
            places.append(own)
    return EncodedParts(ids, types, np.zeros(len(ids), np.int8), places)


def _context_range(windows: EncodedSpans, row: int) -> tuple[int, int]:
    """Return the range of characters of the context in the window, including spaces before it, which some tokenizers count with a word."""
    spans = windows.cut.offsets(row)
    if not len(spans):
        return 0, 0
    context, first = windows.context(row), int(spans[0, 0])
    return len(context[:first].rstrip()), int(spans[-1, 1])


def _token_places(windows: EncodedSpans, row: int, spans: np.ndarray) -> np.ndarray:
    """Return int64 [token, 2] for the character ranges [token, 2] of the other model's tokens; if several window tokens share a character,
    a start maps to the first, an end to the last."""
    own, first = windows.cut.offsets(row), windows.cut.readable(row)[0]
    shown = np.flatnonzero(own[:, 1] > own[:, 0])
    places = np.full((len(spans), 2), NOWHERE, np.int64)
    if not len(shown):
        return places
    starts, ends = own[shown].T
    begins = np.minimum(np.searchsorted(ends, spans[:, 0], side="right"), len(shown) - 1)
    stops = np.maximum(np.searchsorted(starts, spans[:, 1] - 1, side="right") - 1, 0)
    real = spans[:, 1] > spans[:, 0]
    for side, (place, character) in enumerate(((begins, spans[:, 0]), (stops, spans[:, 1] - 1))):
        inside = real & (starts[place] <= character) & (character < ends[place])
        places[inside, side] = first + shown[place[inside]]
    return places
