"""What quantizing a model changed, compared with the fp32 model it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from ...results import ModelResult, Result
from ...results.fidelity import Fidelity, Flip
from ...spec.kinds import KINDS
from ...tasks import TASK_KINDS
from ..grouping.groups import Task, Variant, title
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table, text_cells
from ..text.words import of_first_split, row_word
from . import sensitivity
from .differences import difference_cell

LISTED = 20  # flipped rows per model and seed
NOISIEST = 12  # parts of a model, in the table of signal to noise
Comparison = tuple[Result, ModelResult, Fidelity]


@dataclass(frozen=True)
class Detail:
    """One quantized model, over seeds."""

    title: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Section:
    table: Table
    details: tuple[Detail, ...]


def section(task: Task) -> Section | None:
    """Return the section; None if no result records the fidelity of a model: nothing was quantized, or by an old version."""
    models = [
        (variant, name, comparisons)
        for variant in task.variants
        for name, comparisons in _quantized_models(variant).items()
    ]
    if not models:
        return None
    seeds = any(len(variant.runs) > 1 for variant, _, _ in models)
    flips = _flips_column(task)
    vectors = any(each[2].mean_cosine is not None for _, _, comparisons in models for each in comparisons)
    lines = [
        _model_line(variant, each, seeds, flips, vectors) for variant, _, comparisons in models for each in comparisons
    ]
    caption = f"{task.first.task.marked_title}: quantized models beside the fp32 models they were made from"
    table = Table(caption, _columns(seeds, flips, vectors), tuple(lines), headings=3 if seeds else 2)
    details = (_detail(f"{variant.label}, {name}", comparisons, seeds) for variant, name, comparisons in models)
    return Section(table, tuple(detail for detail in details if detail.tables))


def _quantized_models(variant: Variant) -> dict[str, list[Comparison]]:
    models: dict[str, list[Comparison]] = {}
    for run in variant.runs:
        for model in run.models:
            if model.fidelity is not None:
                models.setdefault(title(model), []).append((run, model, model.fidelity))
    return models


def _flips_column(task: Task) -> Column | None:
    """Return the column of counted changes; None if answers are scores, which all change a little."""
    if TASK_KINDS[task.first.task.kind].decisions:
        return Column("Flips", "share")
    return Column("Best passage changes", "share of queries") if KINDS[task.first.task.kind].grouped else None


def _columns(seeds: bool, flips: Column | None, vectors: bool) -> tuple[Column, ...]:
    decided = flips is not None and flips.text == "Flips"
    return (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        *((Column("Seed", numeric=False),) if seeds else ()),
        Column("Against its fp32", "points, 95% interval"),
        *((flips,) if flips else ()),
        *((Column("Cosine with fp32", "mean / worst"), Column("Ten nearest", "share kept")) if vectors else ()),
        *(() if vectors else (Column("Logit difference", "mean / worst"),)),
        *((Column("Calibration error", "points, fp32 / int8"),) if decided else ()),
        Column("Matmuls", "int8 / fp32"),
        Column("Signal to noise", "dB, lowest part"),
    )


def _model_line(variant: Variant, comparison: Comparison, seeds: bool, column: Column | None, vectors: bool) -> Line:
    run, model, fidelity = comparison
    decided = column is not None and column.text == "Flips"
    flips = Cell(NOTHING)
    if fidelity.flips is not None and fidelity.flip_rate is not None:
        flips = Cell(
            f"{fidelity.flips:,}",
            f"({numbers.percent(fidelity.flip_rate)}{_of_entities(fidelity)}{_of_exact(fidelity)})",
        )
    if fidelity.query_flips is not None:
        query_flips = fidelity.query_flips
        flips = Cell(f"{query_flips.changed:,}", f"({numbers.percent(query_flips.changed / query_flips.queries)})")
    differences = (fidelity.mean_logit_difference, fidelity.worst_logit_difference)
    errors = (fidelity.fp32_calibration_error, fidelity.int8_calibration_error)
    cells = (
        Cell(variant.label),
        Cell(title(model)),
        *((Cell(str(run.seed)),) if seeds else ()),
        difference_cell(fidelity.delta),
        *((flips,) if column else ()),
        *(_of_vectors(fidelity) if vectors else (_pair(differences, numbers.significant),)),
        *((_pair(errors, numbers.points),) if decided else ()),
        _pair(_matmuls(model), str),
        Cell(_lowest(model)),
    )
    return Line(cells)


def _of_vectors(fidelity: Fidelity) -> tuple[Cell, Cell]:
    kept = fidelity.nearest_kept
    cosines = _pair((fidelity.mean_cosine, fidelity.worst_cosine), lambda cosine: f"{cosine:.4f}")
    return cosines, Cell(NOTHING if kept is None else numbers.percent(kept))


def _of_entities(fidelity: Fidelity) -> str:
    flips = fidelity.entity_flips
    return f"; {numbers.percent(flips.changed / flips.entities)} of entities" if flips and flips.entities else ""


def _of_exact(fidelity: Fidelity) -> str:
    flips = fidelity.exact_flips
    return f"; exact: {flips.lost:,} lost, {flips.gained:,} gained" if flips else ""


def _pair(values: tuple[Any, Any], written: Callable[[Any], str]) -> Cell:
    return Cell(" / ".join(NOTHING if value is None else written(value) for value in values))


def _matmuls(model: ModelResult) -> tuple[int | None, int | None]:
    """Return the matmuls computed in integers, and in fp32, whether their weights are int8 or not."""
    int8, fp32 = (model.info.get(name) for name in ("int8_matmuls", "fp32_matmuls"))
    return int8, None if fp32 is None else fp32 + model.info.get("weight_only_matmuls", 0)


def _lowest(model: ModelResult) -> str:
    ratios = [value for value in _noise(model).values() if value is not None]
    return _decibels(min(ratios)) if ratios else NOTHING


def _noise(model: ModelResult) -> dict[str, float | None]:
    return model.info.get("signal_to_noise_db") or {}


def _decibels(value: float | None) -> str:
    return "exact" if value is None else f"{value:.1f}".replace("-", numbers.MINUS)


def _detail(name: str, comparisons: list[Comparison], seeds: bool) -> Detail:
    tables = {
        "flips": [_flips(comparisons, seeds)],
        "noise of each part": [_noise_table(comparisons)],
        "each matmul alone": list(_sensitivity_tables(comparisons, seeds)),
        "what is fp32": [_fp32_table(comparisons)],
    }
    shown = {what: [table for table in group if table.lines] for what, group in tables.items()}
    named = ", ".join(what for what, group in shown.items() if group)
    return Detail(f"{name}: {named}", tuple(table for group in shown.values() for table in group))


def _sensitivity_tables(comparisons: list[Comparison], seeds: bool) -> Iterator[Table]:
    for run, model, _ in comparisons:
        if model.info.get("divergence"):
            count = model.info.get("texts_alone")
            unit = f"{KINDS[run.task.kind].unit}s"
            caption = f"Each matmul alone as int8, on {count or ''} {unit} of the tuning split, too few for an interval of points"
            yield sensitivity.table(run, model, f"{caption}, seed {run.seed}" if seeds else caption)


def _flips(comparisons: list[Comparison], seeds: bool) -> Table:
    run, _, fidelity = comparisons[0]
    row = row_word(run.task)
    columns = (
        *((Column("Seed", numeric=False),) if seeds else ()),
        Column(row, numeric=False),
        Column("fp32 says", numeric=False),
        Column("int8 says", numeric=False),
        Column("Confidence", "fp32"),
        Column("Gold agrees with", numeric=False),
    )
    lines = [
        Line((*((Cell(str(run.seed)),) if seeds else ()), *_flip(flip)))
        for run, _, each in comparisons
        for flip in each.flipped[:LISTED]
    ]
    caption = f"{row}s of {of_first_split(run.task)} that flip, those of which fp32 is most sure first"
    if any(len(each.flipped) > LISTED for _, _, each in comparisons):
        caption += f" ({LISTED} a seed; all in the result file)" if seeds else f" ({LISTED} of {fidelity.flips:,})"
    return Table(caption, columns, tuple(lines), headings=2 if seeds else 1)


def _flip(flip: Flip) -> tuple[Cell, ...]:
    return text_cells(str(flip.row), flip.fp32, flip.int8, numbers.share(flip.confidence), flip.gold)


def _noise_table(comparisons: list[Comparison]) -> Table:
    """Return the parts with the least signal to noise in any seed, in the graph's order."""
    known = dict.fromkeys(name for _, model, _ in comparisons for name in _noise(model))
    shown = [(run, _noise(model)) for run, model, _ in comparisons]
    least = {name: min(_as_number(noise[name]) for _, noise in shown if name in noise) for name in known}
    noisiest = set(sorted(known, key=lambda name: least[name])[:NOISIEST])
    names = [name for name in known if name in noisiest]
    caption = "Signal to noise of what each part gives"
    if len(names) < len(known):
        caption += f": the {NOISIEST} parts with the least, of {len(known)} (all in the result file)"
    columns = [Column("dB", f"seed {run.seed}") if len(shown) > 1 else Column("dB") for run, _ in shown]
    lines = [
        Line((Cell(name), *(Cell(_decibels(noise[name]) if name in noise else NOTHING) for _, noise in shown)))
        for name in names
    ]
    return Table(caption, (Column("Part", numeric=False), *columns), tuple(lines))


def _as_number(decibels: float | None) -> float:
    """None: int8 gives what fp32 gives, to the bit."""
    return inf if decibels is None else decibels


def _fp32_table(comparisons: list[Comparison]) -> Table:
    """Return what stays fp32; a part for which only some seeds do names them."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for run, model, _ in comparisons:
        for part in (model.info.get("stayed_fp32") or {}).items():
            reasons.setdefault(part, []).append(str(run.seed))
    columns = (Column("Part", numeric=False), Column("Why", numeric=False))
    lines = tuple(
        Line((Cell(name), Cell(why if len(seeds) == len(comparisons) else f"{why} (seed {', '.join(seeds)})")))
        for (name, why), seeds in reasons.items()
    )
    return Table("What is computed in fp32, and why", columns, lines)
