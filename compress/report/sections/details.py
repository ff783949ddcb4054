"""What was run: commands, recipes, stages, checks, machine and versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ...provenance import Code
from ...results import Machine, ModelResult, Result
from ..grouping.groups import Task, Variant, title
from ..grouping.labels import letter
from ..grouping.machines import machines
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table, text_cells
from .activations import activation_tables
from .ensembles import ensemble_tables
from .entity_types import type_tables
from .pruned import pruned_tables
from .vocabularies import vocabulary_tables

# Fields of a model's info that have a column of their own.
_IN_COLUMNS = ("parity_max_abs_error", "int8_matmuls", "fp32_matmuls", "weight_matmuls", "weight_only_matmuls")


@dataclass(frozen=True)
class Detail:
    """One recipe on one task."""

    title: str
    facts: tuple[tuple[str, str], ...]
    commands: str
    recipe: str
    tables: tuple[Table, ...]


def details(task: Task) -> list[Detail]:
    return [_detail(variant) for variant in task.variants]


def environment(results: Sequence[Result]) -> list[tuple[str, str]]:
    """Return machine, versions and origins of the results, each different one once."""
    rows = []
    several = machines(results)
    for index, machine in enumerate(several):
        name = "Machine" if len(several) == 1 else f"Machine {letter(index)}"
        rows.append((name, machine_words(machine)))
        rows.append(
            (
                f"{name}: instruction sets" if len(several) > 1 else "Instruction sets",
                ", ".join(machine.isa) or "baseline",
            )
        )
    versions = (", ".join(f"{name} {version}" for name, version in sorted(run.versions.items())) for run in results)
    rows += by_run("Versions", zip((run.run for run in results), versions, strict=True))
    return [*rows, *origins(results)]


def machine_words(machine: Machine) -> str:
    cores = f"{machine.cores} {'core' if machine.cores == 1 else 'cores'}"
    text = f"{machine.cpu}, {cores}, {numbers.significant(machine.memory_bytes / 1e9)} GB, {machine.os}"
    return text + (f", {machine.gpu}" if machine.gpu else "")


def _without_card(result: Result) -> str:
    return "the teacher, pruned" if result.final.name == "student" else "none: the teacher itself"


def _detail(variant: Variant) -> Detail:
    first = variant.first
    facts = [
        ("Teachers" if first.ensemble else "Teacher", first.teachers),
        ("Student", first.student or _without_card(first)),
        ("Seeds", ", ".join(map(str, variant.seeds))),
        ("Runs", ", ".join(run.run for run in variant.runs)),
        *_settings(variant.runs),
    ]
    facts += [
        ("Notice", notice)
        for notice in dict.fromkeys(n for run in variant.runs for n in run.settings.get("notices") or ())
    ]
    recipe = yaml.safe_dump(first.recipe, sort_keys=False, allow_unicode=True, width=100)
    commands = "\n".join(dict.fromkeys(run.command for run in variant.runs))
    tables = (
        *ensemble_tables(variant),
        *type_tables(variant),
        *pruned_tables(variant),
        *activation_tables(variant),
        *vocabulary_tables(variant),
        _stages(variant),
        _checks(variant),
    )
    return Detail(f"{variant.label} on {first.task.marked_title}", tuple(facts), commands, recipe, tables)


def _settings(runs: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield what the seeds were run with, which is the same for all."""
    settings = runs[0].settings
    if "precision" in settings:
        yield "Training precision", str(settings["precision"])
    if settings.get("threads"):
        yield "Threads for scoring", str(settings["threads"])
    bench = next((run.settings["bench"] for run in runs if run.settings.get("bench")), {})
    if bench:
        yield "Latency", ", ".join(f"{name} {value}" for name, value in {**bench, **_timed_runs(runs)}.items())
    tuning = runs[0].task.data.rows.get("tuning", settings.get("tuning_examples"))
    if tuning:
        yield "Tuning split", f"{tuning:,} examples, for selection and calibration; models are not trained on them"


def _timed_runs(seeds: Sequence[Result]) -> dict[str, str]:
    """Return the number of runs made, and how precisely they determine the p50 of shapes; empty if no latency was recorded."""
    models = [model for seed in seeds for model in seed.models]
    runtimes = [runtime for model in models for runtime in (model.onnx, model.torch_eager) if runtime]
    rows = [row for runtime in runtimes for row in runtime.latency]
    if not rows:
        return {}
    counts = sorted({row.runs for row in rows})
    several = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    widths = [row.half_width for row in rows if row.batch]
    known = [width for width in widths if width is not None]
    all_known = known and len(known) == len(widths)
    return {"runs": f"{several} (p50 of shapes known to ±{max(known):.1%} or less)" if all_known else several}


def _stages(variant: Variant) -> Table:
    columns = (
        Column("Stage", numeric=False),
        Column("Seed"),
        Column("Built in"),
        Column("This run", numeric=False),
        Column("Says", numeric=False),
    )
    lines = [
        Line(
            text_cells(
                stage.kind,
                str(run.seed),
                numbers.seconds(stage.seconds),
                "cached" if stage.cached else "built",
                ", ".join(filter(None, (_scalars(stage.info), _thresholds(stage.info)))) or NOTHING,
            )
        )
        for run in variant.runs
        for stage in run.stages
    ]
    return Table("Stages", columns, tuple(lines))


def _checks(variant: Variant) -> Table:
    columns = (
        Column("Model", numeric=False),
        Column("Seed"),
        Column("Architecture", numeric=False),
        Column("Largest error against PyTorch"),
        Column("int8 matmuls"),
        Column("fp32 matmuls"),
        Column("McNemar p"),
        Column("Other checks", numeric=False),
    )
    lines = [Line(_check(run, model)) for run in variant.runs for model in run.models]
    return Table("Checks of every model", columns, tuple(lines))


def _check(run: Result, model: ModelResult) -> tuple[Cell, ...]:
    info = model.info
    parity = info.get("parity_max_abs_error")
    errors = list(parity.values()) if isinstance(parity, dict) else [parity] if parity is not None else []
    int8 = info.get("int8_matmuls", 0 if "weight_matmuls" in info else None)
    fp32 = info.get("fp32_matmuls", info.get("weight_matmuls"))
    fp32 = None if fp32 is None else fp32 + info.get("weight_only_matmuls", 0)  # int8 weights, multiplied in fp32
    p = model.delta.mcnemar_p if model.delta else None
    return text_cells(
        title(model),
        str(run.seed),
        model.architecture,
        f"{max(errors):.1e}" if errors else NOTHING,
        NOTHING if int8 is None else str(int8),
        NOTHING if fp32 is None else str(fp32),
        NOTHING if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001",
        _scalars({name: value for name, value in info.items() if name not in _IN_COLUMNS}) or NOTHING,
    )


def _scalars(info: dict[str, Any]) -> str:
    """Format e.g. `epochs 3, steps 4,329`: the values that fit in a cell; the rest is in the result file."""
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, value in info.items() if (text := _scalar(value)))


def _thresholds(info: dict[str, Any]) -> str:
    """Return the smallest and the largest of the labels' thresholds, if each label has its own."""
    thresholds: dict[str, float] = info.get("thresholds") or {}
    names = sorted(thresholds, key=lambda name: thresholds[name])
    return (
        f"thresholds {thresholds[names[0]]:.4g} ({names[0]}) to {thresholds[names[-1]]:.4g} ({names[-1]})"
        if names
        else ""
    )


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) and len(value) <= 60 else ""


def origins(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield rows (name, text); old results without these records have none."""
    yield from by_run("Code", ((result.run, str(result.code)) for result in results if result.code))
    yield from _built_by_others(results)
    teachers = ((result.teacher, str(result.origin)) for result in results if result.origin)
    others = (
        (teacher.name, str(teacher.origin))
        for result in results
        if result.ensemble
        for teacher in result.ensemble.teachers
    )
    students = ((str(result.student), str(result.student_origin)) for result in results if result.student_origin)
    yield from ((f"Weights of {name}", text) for name, text in dict.fromkeys([*teachers, *others, *students]))
    corpora = [result.corpus for result in results if result.corpus]
    for text in dict.fromkeys(f"{', '.join(each.names)}, SHA-256 {each.fingerprint[:12]}" for each in corpora):
        yield "Plain text", text


def codes(results: Sequence[Result]) -> list[Code]:
    """Return every code version that made a result, one of its stages or a measurement, once."""
    versions: list[Code | None] = []
    for result in results:
        versions += [result.code, result.timed_by, *(part.code for part in (*result.stages, *result.models))]
    return [code for number, code in enumerate(versions) if code is not None and code not in versions[:number]]


def _built_by_others(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield the stages and measurements that were in the store already, made by other code than the result."""
    parts: dict[str, list[str]] = {}
    for result in (result for result in results if result.code):
        for name, code in _code_by_part(result):
            if code is None or code.source != (result.code and result.code.source):
                parts.setdefault("code that was not recorded" if code is None else str(code), []).append(name)
    for code, names in parts.items():
        yield f"Made earlier, by {code}", ", ".join(dict.fromkeys(names))


def _code_by_part(result: Result) -> Iterator[tuple[str, Code | None]]:
    yield from ((stage.kind, stage.code) for stage in result.stages)
    yield from ((f"scores of {model.predictions}", model.code) for model in result.models)
    if any(model.onnx for model in result.models):
        yield "latencies", result.timed_by


def by_run(name: str, texts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield a row for each different text of `texts`, run -> text, naming its runs if there are several texts."""
    runs: dict[str, list[str]] = {}
    for run, text in texts:
        runs.setdefault(text, []).append(run)
    for text, several in runs.items():
        yield name, text if len(runs) == 1 else f"{text} ({', '.join(several)})"
