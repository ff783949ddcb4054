"""What a smaller vocabulary saves, and how often it tokenizes texts alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...results import ModelResult, Result
from ...results.vocabulary import TextRates, VocabularyRecord
from ..grouping.groups import Task, Variant, title
from ..text import numbers
from ..text.cells import Column, Line, Table, text_cells
from ..text.words import join_words

READING = (
    "A text is cut alike where a smaller vocabulary gives it the same tokens. Alone in its batch, it then has the answer of before from "
    "the fp32 model, to the bit. Any other text has smaller pieces of words. Which tokens stay is chosen on train and on plain text alone.",
)
SEEN = {"train": "train, seen", "tuning": "tuning", "corpus": "the corpus, seen"}


def vocabulary_sentences(task: Task) -> list[str]:
    """Return a sentence for each recipe that reduces a vocabulary, for its first seed."""
    records = ((variant, variant.first.vocabulary) for variant in task.variants)
    return [_sentence(variant, record) for variant, record in records if record is not None]


def _sentence(variant: Variant, record: VocabularyRecord) -> str:
    final = variant.first.final
    alike = [f"{share(rates)} of {split}'s texts" for split, rates in record.reported.items()]
    return (
        f"{variant.label}: {record.tokens:,} of {record.tokens_before:,} tokens stay{_saved_size(final, record)}. "
        f"{_capital(join_words(alike))} are cut into the same tokens as before. "
        "Fewer tokens make the file smaller, and the model no faster."
    )


def _saved_size(model: ModelResult, record: VocabularyRecord) -> str:
    before = record.files_before.get(f"{model.name}-{model.precision}")
    if before is None:
        return ""
    size, whole = numbers.megabytes(model.file_bytes), numbers.megabytes(before)
    return f", and the {model.precision} file has {size} MB where it would have {whole} ({numbers.percent(model.file_bytes / before)})"


def vocabulary_tables(variant: Variant) -> Iterator[Table]:
    """Yield two tables, if a run of the recipe reduces a vocabulary: the texts, and the file of each model."""
    runs = [(run, run.vocabulary) for run in variant.runs if run.vocabulary is not None]
    if not runs:
        return
    columns = (
        Column("Texts", numeric=False),
        Column("Seed"),
        Column("Number"),
        Column("Cut alike"),
        Column("Unknown before", "% of tokens"),
        Column("Unknown now", "% of tokens"),
    )
    lines = [line for run, record in runs for line in _rate_lines(run, record)]
    yield Table("Texts in the smaller vocabulary", columns, tuple(lines))
    sizes = (Column("Model", numeric=False), Column("Seed"), Column("File", "MB"), Column("With all tokens", "MB"))
    yield Table(
        "Files with the smaller vocabulary", sizes, tuple(line for run, record in runs for line in _files(run, record))
    )


def _rate_lines(run: Result, record: VocabularyRecord) -> Iterator[Line]:
    named: Mapping[str, TextRates] = {
        SEEN.get(name, name): rates for name, rates in record.seen.items()
    } | record.reported
    for name, rates in named.items():
        unknown = (f"{100 * value:.3f}" for value in (rates.unknown, rates.unknown_after))
        yield Line(text_cells(name, str(run.seed), f"{rates.texts:,}", share(rates), *unknown))


def _files(run: Result, record: VocabularyRecord) -> Iterator[Line]:
    for model in run.models:
        if before := record.files_before.get(f"{model.name}-{model.precision}"):
            sizes = (numbers.megabytes(model.file_bytes), numbers.megabytes(before))
            yield Line(text_cells(title(model), str(run.seed), *sizes))


def share(rates: TextRates) -> str:
    """Return per cent; 100.0% only if all texts are the same."""
    whole = 100 * rates.same / max(1, rates.texts)
    return f"{min(whole, 99.9) if rates.same < rates.texts else whole:.1f}%"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
