"""Write a finished search as search.json and report.md, and the command that ships its choice."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..files.atomic import write_text
from ..files.paths import display_path
from ..model_choice import Limits
from ..pipeline import Request
from ..report import ship_command
from .run import FOLDER, SearchResult, command_of

DOCUMENT, PAGE = "search.json", "report.md"


def shipped_by(result: SearchResult, root: str) -> str | None:
    """Return the `compress ship` command of the choice, whose run is below `root`; None if it misses a limit."""
    if result.choice.missed:
        return None
    run = result.runs[result.choice.model.number]
    return ship_command(run, run.final, (Path(root) / run.run).as_posix())


def search_document(result: SearchResult, request: Request, limits: Limits) -> dict[str, Any]:
    """Return the whole search as JSON values, with paths as from `display_path`. Scores of trials are on the tuning split,
    `reported` on the reported one."""
    points = {trial.number: trial.point for trial in result.trials}
    return {
        "limits": asdict(limits),
        "trials": [
            {"number": trial.number, "point": trial.point, "refused": trial.refused, **trial.info}
            for trial in result.trials
        ],
        "front": [
            {
                **asdict(model),
                "point": points[model.number],
                "reported": result.runs[model.number].final.headline,
                "run": result.runs[model.number].run,
                "command": command_of(request, points[model.number], limits),
            }
            for model in result.front
        ],
        "choice": {"number": result.choice.model.number, "missed": list(result.choice.missed)},
        "ship": shipped_by(result, display_path(str(request.root))),
    }


def write_search(document: dict[str, Any], root: Path) -> list[Path]:
    """Write `search/search.json` and `search/report.md` below `root`, and return their paths."""
    folder = root / FOLDER
    write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
    write_text(folder / PAGE, _page(document))
    return [folder / DOCUMENT, folder / PAGE]


def front_rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return trial, settings, tuning score, reported score, ms and MB of each row; an asterisk marks the choice."""
    chosen = document["choice"]["number"]
    return [
        (
            f"{model['number']}{'*' if model['number'] == chosen else ''}",
            _settings(model["point"]),
            f"{model['score']:.2f}",
            f"{model['reported']:.2f}",
            _latency(model),
            f"{model['size_mb']:.2f}",
        )
        for model in document["front"]
    ]


HEADER = ("trial", "settings", "tuning", "reported", "ms", "MB")


def _page(document: dict[str, Any]) -> str:
    limits = ", ".join(f"{name} {value:g}" for name, value in document["limits"].items() if value is not None)
    lines = ["# Search", "", f"Limits: {limits}. Scores of trials are of the tuning split.", "", "## Front", ""]
    lines += _table(HEADER, front_rows(document))
    missed = document["choice"]["missed"]
    lines += [
        "",
        f"Choice: trial {document['choice']['number']}, {'which misses:' if missed else 'which meets all limits.'}",
        "",
    ]
    lines += [f"* {line}" for line in missed]
    lines += ["", "## Trials", ""] if missed else ["", "```", document["ship"], "```", "", "## Trials", ""]
    rows = [
        (
            str(trial["number"]),
            _settings(trial["point"]),
            *(
                (f"refused: {trial['refused']}", "", "")
                if trial["refused"]
                else (f"{trial['score']:.2f}", _latency(trial), f"{trial['size_mb']:.2f}")
            ),
        )
        for trial in document["trials"]
    ]
    return "\n".join([*lines, *_table(("trial", "settings", "tuning", "ms", "MB"), rows), ""])


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    cells = [header, ("-",) * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in cells]


def _settings(point: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in point.items())


def _latency(model: dict[str, Any]) -> str:
    return "–" if model["latency_ms"] is None else f"{model['latency_ms']:.2f}"
