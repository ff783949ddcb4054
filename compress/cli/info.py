"""The commands `list` (the catalogue, tasks and runs) and `doctor` (this machine)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CompressError
from .options import UngroupedJson, path_option

if TYPE_CHECKING:
    from rich.table import Table

    from ..models.cards import StudentCard


Row = dict[str, str | int | float | None]


class Kind(StrEnum):
    recipes = "recipes"
    teachers = "teachers"
    students = "students"
    tasks = "tasks"
    runs = "runs"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    out: Annotated[Path, path_option("--out", "-o", help="Folder of the runs.")] = Path("runs"),
    json: UngroupedJson = False,
) -> None:
    """List recipes, teachers, students, tasks or finished runs."""
    rows = _runs(out) if kind is Kind.runs else _tasks() if kind is Kind.tasks else _cards(kind.value)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(rows, indent=1))
        return
    if not rows:
        typer.echo(f"no finished runs in {out}" if kind is Kind.runs else f"no {kind.value}")
        return
    from .screen import console

    console().print(_table(rows))


def _table(rows: list[Row]) -> Table:
    from rich.table import Table

    first, *others = rows[0]
    table = Table(box=None, pad_edge=False)
    table.add_column(first, no_wrap=True, min_width=max(len(str(row[first])) for row in rows))
    for title in others:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(title, value) for title, value in row.items()))
    return table


def _cell(title: str, value: str | float | None) -> str:
    """Return a value for the table; numbers with decimals are points, and megabytes."""
    if isinstance(value, float):
        return f"{value:.1f}" if title == "MB" else f"{value:.2f}"
    return "" if value is None else str(value)


def _cards(kind: str) -> list[Row]:
    from ..catalog import list_cards
    from ..models.cards import StudentCard, TeacherCard
    from ..spec.recipe import Recipe

    if kind == "recipes":
        return [
            {
                "recipe": name,
                "stages": " -> ".join(stage.id for stage in card.stages),
                "paper": card.paper or "",
                "about": card.description,
            }
            for name, card in list_cards("recipes", Recipe).items()
        ]
    if kind == "students":
        return [
            {
                "student": name,
                "architecture": _architecture(card),
                "layers": card.layers or None,
                "starts": _describe_start(card),
                "about": card.title,
            }
            for name, card in list_cards("students", StudentCard).items()
        ]
    return [
        {"teacher": name, "from": _origin(card), "licence": card.licence, "about": card.title}
        for name, card in list_cards("teachers", TeacherCard).items()
    ]


def _architecture(card: StudentCard) -> str:
    if card.checkpoint is not None:
        return "as the checkpoint"
    if isinstance(card.architecture, str):
        return card.architecture
    named = (f"{student} of a {teacher}" for teacher, student in card.architecture.items())
    return ", ".join([*named, "else as the teacher"] if card.architecture else ["as the teacher"])


def _describe_start(card: StudentCard) -> str:
    """Return e.g. `copy every_other`, `project 1 3 5`, `convert` or `pretrained minilm-l6`."""
    if card.init in ("copy", "project"):
        rule = card.copy_layers
        return f"{card.init} {rule if isinstance(rule, str) else ' '.join(map(str, rule))}"
    return f"{card.init} {card.checkpoint}" if card.checkpoint else card.init


def _origin(card: object) -> str:
    checkpoint = getattr(card, "checkpoint", None)
    if checkpoint is None:
        small = getattr(getattr(card, "random", None), "grow_from", None)
        return "random weights" if small is None else f"grown from {small}"
    return checkpoint.hub or (checkpoint.package.name if checkpoint.package else checkpoint.path)


def _tasks() -> list[Row]:
    from ..tasks import BUILTIN_TASKS, TASK_KINDS

    return [
        {
            "task": name,
            "texts": " + ".join(spec.text),
            "labels": ", ".join(spec.labels) if spec.labels else TASK_KINDS[spec.kind].labels.description,
            "metrics": ", ".join(spec.metrics),
            "data": "embedded" if spec.synthetic else "--data-dir, or the hub",
        }
        for name, spec in BUILTIN_TASKS.items()
    ]


def _runs(root: Path) -> list[Row]:
    from ..results import RESULT, Result, read_result
    from ..results.copies import without_copies

    places: list[tuple[Path, Result]] = []
    for path in sorted(root.glob(f"*/{RESULT}")):
        try:
            places.append((path, read_result(path)))
        except CompressError as error:
            typer.echo(f"note: {error}", err=True)
    return [
        {
            "run": result.run,
            "task": result.task.name,
            "seed": result.seed,
            "model": f"{result.final.name} {result.final.precision}",
            "score": result.final.headline,
            "teacher": result.models[0].headline,
            "MB": result.final.file_bytes / 1e6,
            "created": result.created,
        }
        for _, result in without_copies(places)
    ]


def doctor(
    measure: Annotated[
        bool, typer.Option("--measure", help="Time an int8 and an fp32 matmul here (two seconds).")
    ] = False,
    json: UngroupedJson = False,
) -> None:
    """Show CPU features, threads, versions and the expected int8 speed-up. Warn of combinations known to be bad."""
    from ..machine import training_gpu, training_precision, usable_cores, versions
    from ..results import Machine
    from .advice import advice
    from .expected_speedup import expected_speedup, measured_speedup

    machine = Machine.here()
    document = {
        "machine": machine.model_dump(mode="json"),
        "usable_cores": usable_cores(),
        "training_device": training_gpu() or "cpu",
        "training_precision": training_precision(),
        "int8": expected_speedup(),
        "versions": versions(),
        "advice": advice(),
    }
    if measure:
        from ..bench.floor import measured_rates

        document["macs_per_second"] = measured_rates()
    if json:
        import json as encoder

        typer.echo(encoder.dumps(document, indent=1))
        return
    cores = usable_cores()
    typer.echo(
        f"CPU        {machine.cpu}, {cores} usable core{'s' if cores != 1 else ''}, {machine.memory_bytes / 2**30:.0f} GiB"
    )
    typer.echo(f"vectors    {', '.join(machine.isa) or 'none that matter'}")
    typer.echo(
        f"training   on {training_gpu() or 'the CPU'}; --precision auto is {document['training_precision']} here"
    )
    typer.echo(f"int8       {expected_speedup()}")
    if measure:
        typer.echo(f"           {measured_speedup(document['macs_per_second'])}")
    for name, version in versions().items():
        typer.echo(f"{name:<14} {version}")
    for line in advice():
        typer.echo(f"note: {line}")
