"""Trials that several processes share and that outlive each of them: Optuna's sampler over a journal in one folder.

What trial n tries depends only on the seed, on n and on the finished trials, and on no state of a process. So a killed trial
is resumed with the same values, and a search that is continued equals one that was not stopped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from ..errors import CompressError
from .journal import open_study, quiet
from .shared_folder import SharedFolder
from .space import RECIPE, Axis, Point

if TYPE_CHECKING:
    import optuna

_MISSES, _SAME_AS, _WHY = "misses", "same_as", "refused"
_WAIT = 10.0  # seconds
_REASONS = 3  # in a message
_REPEATS = 3  # in a row, after which a trial takes an untried point


@dataclass(frozen=True)
class Trial:
    """A finished trial: its number, its point, and the `values` to minimize, in the order of the study. `refused`: why it
    was not run, and then there are no values. `info`: what the caller stored. `same_as`: the earlier trial of the same
    point."""

    number: int
    point: dict[str, Any]
    values: tuple[float, ...]
    refused: str | None
    info: dict[str, Any]
    same_as: int | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of one trial: `values`, each to minimize; `misses`: limit -> above 0 if it is missed; or why it was
    `refused`."""

    values: tuple[float, ...] = ()
    misses: Mapping[str, float] = field(default_factory=dict)
    refused: str | None = None
    info: dict[str, Any] | None = None


def check_optuna() -> None:
    """Raise CompressError if Optuna is missing. Imports nothing."""
    if importlib.util.find_spec("optuna") is None:
        raise CompressError("compress search needs optuna, found none installed; pip install 'optuna>=5.0'")


class Search:
    """A search in `folder`. `identity`: JSON of what is searched; a folder of another search is refused. `parts`:
    recipe -> its parts, which decide which axes apply to it."""

    def __init__(
        self,
        folder: Path,
        identity: dict[str, Any],
        axes: Sequence[Axis],
        parts: dict[str, set[str]],
        *,
        objectives: int,
        seed: int,
    ) -> None:
        check_optuna()
        self.folder, self.axes, self.parts, self.seed = folder, tuple(axes), parts, seed
        self._shared = SharedFolder(folder, identity)
        self._study = open_study(folder, objectives)

    def run(self, trials: int, work: Callable[[int, Point], Outcome]) -> list[Trial]:
        """Run until there are `trials` in all, including those of other processes and of earlier calls; return all finished
        ones, by number.

        `work` is called with each number and point; no other process works on the same point at the same time. A trial of a
        point that was tried before is not worked on and does not count, and the search ends once all points were tried.
        Waits for trials that other processes work on.
        """
        most = min(trials, sum(math.prod(len(axis.values) for axis in axes) for axes in self._counting()))
        while (claimed := self._next_trial(most)) is not None:
            trial, lock = claimed
            try:
                self._work(trial, work)
            finally:
                lock.release()
        return self.finished()

    def finished(self) -> list[Trial]:
        return [
            Trial(
                trial.number,
                _point(trial),
                tuple(trial.values or ()),
                trial.user_attrs.get(_WHY),
                trial.user_attrs.get("info") or {},
                trial.user_attrs.get(_SAME_AS),
            )
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state.is_finished()
        ]

    def discard(self) -> None:
        """Remove the search, unless it is from an earlier call or another process takes part in it."""
        self._shared.remove()

    def _next_trial(self, trials: int) -> tuple[optuna.Trial, FileLock] | None:
        """Return a trial that a dead process left, or a new one, locked as long as somebody works on it."""
        import optuna

        while True:
            with FileLock(self.folder / "locks" / "next"):
                all_trials = self._study.get_trials(deepcopy=False)
                left = [trial for trial in all_trials if not trial.state.is_finished()]
                for trial in left:
                    if (lock := self._try_lock(trial.number)) is not None:
                        return optuna.Trial(self._study, trial._trial_id), lock
                if sum(_SAME_AS not in trial.user_attrs for trial in all_trials) < trials:
                    number = len(all_trials)
                    if (lock := self._try_lock(number)) is None:
                        raise CompressError(f"{self.folder}: trial {number} is locked and not there; start again")
                    return self._study.ask(), lock
            if not left:
                return None
            lock = FileLock(self.folder / "locks" / f"trial-{left[0].number}")
            with suppress(Timeout):  # until its process is done or dead; another of `left` may be free earlier
                lock.acquire(timeout=_WAIT)
                lock.release()

    def _try_lock(self, number: int) -> FileLock | None:
        lock = FileLock(self.folder / "locks" / f"trial-{number}")
        with suppress(Timeout):
            lock.acquire(timeout=0)
            return lock
        return None

    def _work(self, trial: optuna.Trial, work: Callable[[int, Point], Outcome]) -> None:
        from optuna.trial import TrialState

        point = self._suggest_point(trial)
        digest = hashlib.sha256(_point_text(point).encode()).hexdigest()[:16]
        with FileLock(self.folder / "locks" / f"point-{digest}"):
            same = self._same_trial(trial.number, point)
            if same is None:
                outcome = work(trial.number, point)
            else:
                trial.set_user_attr(_SAME_AS, same.number)
                outcome = Outcome(
                    tuple(same.values or ()),
                    same.user_attrs.get(_MISSES, {}),
                    same.user_attrs.get(_WHY),
                    same.user_attrs.get("info"),
                )
            trial.set_user_attr("info", outcome.info or {})
            trial.set_user_attr(_MISSES, dict(outcome.misses))
            with quiet():
                for name, value in outcome.misses.items():
                    trial.set_constraint(name, value)
            if outcome.refused is not None:
                trial.set_user_attr(_WHY, outcome.refused)
                self._study.tell(trial, state=TrialState.PRUNED)
            else:
                self._study.tell(trial, list(outcome.values))

    def _same_trial(self, number: int, point: Point) -> optuna.trial.FrozenTrial | None:
        """Return the first finished trial with the same point, if any."""
        all_trials = self._study.get_trials(deepcopy=False)
        return next(
            (
                other
                for other in all_trials
                if other.number != number and other.state.is_finished() and _point(other) == point
            ),
            None,
        )

    def _suggest_point(self, trial: optuna.Trial) -> dict[str, Any]:
        """Suggest each axis with its own sampler, so that a trial that was killed between two of them gets the same values
        again."""
        fixed, point = self._untried_point(trial.number), dict[str, Any]()
        for axis in self.axes:
            if not self._counts(axis, point.get(RECIPE)):
                continue
            sampler = _sampler(f"{self.seed} {trial.number} {axis.name}")
            self._study.sampler = _fixing(axis.name, fixed[axis.name], sampler) if axis.name in fixed else sampler
            point[axis.name] = trial.suggest_categorical(axis.name, axis.values)
        return point

    def _untried_point(self, number: int) -> dict[str, Any]:
        """Return a point that no earlier trial tried, if the last few only repeated others; else an empty one."""
        before = [trial for trial in self._study.get_trials(deepcopy=False) if trial.number < number]
        if len(before) < _REPEATS or not all(_SAME_AS in trial.user_attrs for trial in before[-_REPEATS:]):
            return {}
        tried = {_point_text(_point(trial)) for trial in before}
        every = (
            {axis.name: value for axis, value in zip(axes, values, strict=True)}
            for axes in self._counting()
            for values in itertools.product(*(axis.values for axis in axes))
        )
        return next((point for point in every if _point_text(point) not in tried), {})

    def _counting(self) -> list[list[Axis]]:
        """Return the axes that apply to each recipe; the recipe's own axis has only that value."""
        return [
            [
                Axis(RECIPE, (recipe,)) if axis.name == RECIPE else axis
                for axis in self.axes
                if self._counts(axis, recipe)
            ]
            for recipe in self.parts
        ]

    def _counts(self, axis: Axis, recipe: str | None) -> bool:
        return axis.part is None or axis.part in self.parts[str(recipe)]


def first_reasons(trials: Sequence[Trial]) -> str:
    """Return the first few reasons for which trials were refused, each once, with its first trial."""
    numbers: dict[str, int] = {}
    for trial in trials:
        if trial.refused is not None:
            numbers.setdefault(trial.refused, trial.number)
    return "; ".join(f"trial {number} was refused: {why}" for why, number in list(numbers.items())[:_REASONS])


def _point(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    return dict(trial.params)


def _point_text(point: Point) -> str:
    return json.dumps(point, sort_keys=True)


def _fixing(name: str, value: Any, sampler: optuna.samplers.BaseSampler) -> optuna.samplers.BaseSampler:
    import optuna

    with quiet():
        return optuna.samplers.PartialFixedSampler({name: value}, sampler)


def _sampler(words: str) -> optuna.samplers.BaseSampler:
    import optuna

    seed = int.from_bytes(hashlib.sha256(words.encode()).digest()[:4], "big")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, multivariate=False)
