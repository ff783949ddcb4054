"""How many examples of a task are cut at its `max_length`, in the tokens of the teacher, and which length would keep them whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from ...models.dimensions import usable_positions
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ...tasks import LongExamples, long_examples
from ..plan import Plan
from .reported import ReportedSource

# Of a split's examples: where no more are cut, accuracy cannot lose more than a point by it, even if all of them are answered wrongly.
_SHARE = 0.01
_MULTIPLE = 8  # of tokens: a length that is recommended
_IN_WINDOWS = ("word", "question")  # what is labelled in long texts that are read in windows, not cut


@dataclass(frozen=True)
class Truncation:
    """Examples of each split of a task that may be cut. `positions`: tokens that the model `limited_by`, which has the fewest positions,
    can read."""

    spec: TaskSpec
    splits: Mapping[str, LongExamples]
    positions: int
    limited_by: str

    @property
    def matters(self) -> bool:
        """Whether more than 1% of some split's examples are cut."""
        return any(split.share(self.spec.max_length) > _SHARE for split in self.splits.values())

    @property
    def counts(self) -> str:
        """E.g. `290 of 294 train and about 9,400 of 98,000 dev texts have more than 128 tokens and are cut`."""
        most, kind = self.spec.max_length, KINDS[self.spec.kind]
        parts = [
            f"{_count(split, most)} of {split.examples:,} {name}"
            for name, split in self.splits.items()
            if split.longer_than(most)
        ]
        listed = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        one = sum(split.longer_than(most) for split in self.splits.values()) == 1
        has, are = ("has", "is") if one else ("have", "are")
        if kind.unit == "pair":
            return f"{listed} examples {has} a text of more than {most:,} tokens, which is cut"
        return f"{listed} {'pairs' if self.spec.pairs else 'texts'} {has} more than {most:,} tokens and {are} cut"

    @property
    def advice(self) -> str:
        """How to keep them whole; empty for a built-in task, whose length is fixed."""
        spec, limit = self.spec, f"the most that {self.limited_by} has positions for"
        if spec.file is None and spec.files is None:
            return ""
        if spec.max_length >= self.positions:
            return f"{spec.max_length} is {limit}"
        splits = tuple(self.splits.values())
        needed = _needed_length(splits, self.positions)
        length = self.positions if needed is None else needed
        setting = f"--max-length {length}" if spec.file is None else f"max_length: {length} in {spec.file.name}"
        cut, still_cut = (sum(split.longer_than(tokens) for split in splits) for tokens in (spec.max_length, length))
        if needed is None:
            return f"{setting}, {limit}, keeps {1 - still_cut / cut:.0%} of them whole"
        return f"{setting} keeps {'nearly all' if still_cut else 'all'} of them whole"

    @property
    def note(self) -> str:
        return "; ".join(filter(None, (self.counts, self.advice)))


def truncation(plan: Plan, reported: ReportedSource) -> Truncation | None:
    """Return the examples that may be cut; None where long texts are read in windows. Reads the data."""
    spec, data = plan.task.spec, plan.task.data
    if KINDS[spec.kind].unit in _IN_WINDOWS:
        return None
    positions, limited_by = _fewest_positions(plan)
    tokenizer = plan.teacher.tokenizer
    splits = {"train": data.train, "tuning": data.tuning, **reported.data.splits}
    counted = {name: long_examples(tokenizer, split, spec.max_length, positions) for name, split in splits.items()}
    return Truncation(spec, counted, positions, limited_by)


def truncation_counts(plan: Plan, reported: ReportedSource) -> tuple[str, ...]:
    """Return the note that a result has of examples that are cut; () if they do not matter."""
    cut = truncation(plan, reported)
    return (cut.counts,) if cut is not None and cut.matters else ()


def truncation_notes(plans: Sequence[Plan], reported: Mapping[str, ReportedSource]) -> dict[str, str]:
    """Return name of a plan -> a note on examples that are cut, with advice, if they matter. `reported`: by the fingerprint of the task.
    Reads the data."""
    known: dict[tuple[str, str, int], Truncation | None] = {}
    notes = {}
    for plan in plans:
        fingerprint = plan.task.fingerprint
        key = (fingerprint, plan.teacher.vocabulary, _fewest_positions(plan)[0])
        if key not in known:
            known[key] = truncation(plan, reported[fingerprint])
        cut = known[key]
        if cut is not None and cut.matters:
            notes[plan.name] = cut.note
    return notes


def _fewest_positions(plan: Plan) -> tuple[int, str]:
    """Return the longest text in tokens that all models can read, and the name of the one that limits it."""
    sources = [*plan.teachers.values(), *([plan.pretrained] if plan.pretrained else [])]
    return min((usable_positions(source.config), source.card.name) for source in sources)


def _needed_length(splits: Sequence[LongExamples], positions: int) -> int | None:
    """Return the shortest recommended length at which at most 1% of each split's examples are cut; None if it exceeds `positions`."""
    counted = {int(length) for split in splits for length in split.lengths if length <= positions}
    lengths = sorted({min(positions, -(-length // _MULTIPLE) * _MULTIPLE) for length in counted})
    return next((length for length in lengths if all(split.share(length) <= _SHARE for split in splits)), None)


def _count(split: LongExamples, tokens: int) -> str:
    """Format how many examples are longer; of an estimate two digits."""
    count = split.longer_than(tokens)
    return f"{round(count):,}" if split.is_exact else f"about {round(count, 1 - floor(log10(count))):,.0f}"
