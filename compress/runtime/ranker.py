"""Rank the passages of a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from ..errors import CheckFailed, CompressError
from .classifier import Classifier
from .kinds.ranking import RANKING
from .model_folder import Options, check_sizes
from .reading import TextReader, check_unicode


class Ranked(NamedTuple):
    """A passage: its place among those given, counted from 0, its score, and its text."""

    place: int
    score: float
    passage: str


class Ranker(Classifier):
    """A cross-encoder that ranks the passages of a query, on the CPU. One instance may be used from several threads. The options, and the
    way to score single pairs, are those of `Classifier`. Raises `CompressError` also for another kind of model."""

    def __init__(self, folder: str | Path, **options: Unpack[Options]) -> None:
        super().__init__(folder, **options)
        if self.settings.kind is not RANKING:
            raise CompressError(
                f"{self.folder}: its model ranks no passages; open it with compress.runtime.load, which takes the right class"
            )
        self._reader = TextReader(self.settings.columns or ("query", "passage"))

    @property
    def columns(self) -> int | None:
        """Texts per example: 2, a query and a passage, whether or not the folder says so."""
        return super().columns or 2

    def rank(
        self,
        query: str,
        passages: Sequence[str],
        top: int | None = None,
        *,
        batch_size: int | None = None,
        tokens: int | None = None,
    ) -> list[Ranked]:
        """Return the passages, the most relevant first, all or the first `top`; of equal scores the one given first. `batch_size` and
        `tokens` are those of `Classifier.classify`.

        An int8 model scales activations over a whole model run: `batch_size=1` makes scores independent of the other passages. Raises
        `CompressError` for what is no text, `CheckFailed` for a score that is not finite.
        """
        check_sizes(top=top)
        if not isinstance(query, str):
            raise CompressError(f"query: expected a text, found {type(query).__name__}")
        check_unicode("query", query)
        if isinstance(passages, (str, bytes)) or not isinstance(passages, Sequence):
            raise CompressError(f"passages: expected texts in a list, found {type(passages).__name__}")
        for place, passage in enumerate(passages):
            if not isinstance(passage, str):
                raise CompressError(f"passages[{place}]: expected a text, found {type(passage).__name__}")
            check_unicode(f"passages[{place}]", passage)
        scores = self.logits([(query, passage) for passage in passages], batch_size=batch_size, tokens=tokens)[:, 0]
        if not np.isfinite(scores).all():
            first = int(np.isfinite(scores).argmin())
            raise CheckFailed(f"{self.model}: gives a non-finite score for passages[{first}]; do not use this model")
        order = np.argsort(-scores, kind="stable")[:top].tolist()
        return [Ranked(place, float(scores[place]), str(passages[place])) for place in order]
