"""The table of int8 models that the committed reports have, in reports/models.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compress.errors import CompressError
from compress.report import collect
from compress.report.grouping.groups import Row, Task, group
from compress.report.grouping.intervals import best_guess
from compress.report.text.numbers import points, significant

REPORTS = Path(__file__).resolve().parents[2] / "reports"


@dataclass(frozen=True)
class Model:
    """Scores are means over seeds, in points; the file is the largest, in MB."""

    task: str
    report: str
    teacher: str
    label: str
    score: float
    megabytes: float

    def beaten_by(self, other: Model) -> bool:
        """Whether `other` is no larger, scores no lower, and is better in one of them."""
        no_worse = other.megabytes <= self.megabytes and other.score >= self.score
        return no_worse and (other.megabytes, other.score) != (self.megabytes, self.score)


def models_table() -> str:
    """Of each task the int8 models that no other one beats in both size and score, the largest first. Tasks on which no teacher beats a
    guess, such as WNLI, are left out: the best model there is one that guesses."""
    models = [model for file in sorted(REPORTS.glob("*/result*.json")) for model in _models(file.parent)]
    lines = ["| task | model | teacher | reported score | int8 file, MB | report |", "|-|-|-|-:|-:|-|"]
    for task in dict.fromkeys(model.task for model in models):
        own = [model for model in models if model.task == task]
        front = {(-model.megabytes, model.score): model for model in own if not any(map(model.beaten_by, own))}
        for _, model in sorted(front.items()):
            lines.append(
                f"| {task} | {model.label} | {model.teacher} | {points(model.score)} | {significant(model.megabytes)} | "
                f"[{model.report}]({model.report}/report.md) |"
            )
    return "\n".join(lines)


def _models(folder: Path) -> list[Model]:
    try:
        tasks = group(collect([folder]), lambda *_: None, best_guess([folder]))  # differences are not shown
    except CompressError:  # an ablation, or a page of a benchmark
        return []
    rows = [(task, row) for task in tasks if not task.is_guessed for row in task.rows]
    return [_model(folder.name, task, row) for task, row in rows if row.model.precision == "int8"]


def _model(report: str, task: Task, row: Row) -> Model:
    (teachers,) = {run.teachers for run, _ in task.models_of(row)}
    return Model(
        task=task.first.task.marked_title,
        report=report,
        teacher=teachers,
        label=row.label,
        score=row.headline,
        megabytes=max(model.file_bytes for model in row.models) / 1e6,
    )
