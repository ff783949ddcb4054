"""Compare int8 methods by their distance to fp32 and their speed, for fine-tuned teachers and for students.

    python benchmarks/int8_methods.py --data-dir GLUE --teacher-task sst2 --teacher-task mrpc --student-task sst2 \\
        --method dynamic --method smoothquant --time sst2 --out runs --report reports/int8-methods.md

Teachers are from `compress run int8`, students from `compress run distilbert`, with `--set quantize.method=…`; models already trained are
taken from the store in OUT. A method may have settings: `--method smoothquant,outlier_splitting=false`. Differences, flips and logits are
measured on the reported split, once per model, against the fp32 file of the same checkpoint. `--time TASK` times all files of that task's
teacher, interleaved, in a process each.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from records import add_json, code_line, write_json

from compress.pipeline import Request, run_all
from compress.processes import children
from compress.results import ModelResult, Result

METHODS = ("dynamic", "static", "smoothquant", "auto")
COUNTED = ("int8_matmuls", "fp32_matmuls", "weight_only_matmuls")
SHAPES = ("1x32", "1x128", "32x128")
BENCH_SECONDS = 4 * 3600.0  # for all files together
HEADINGS = (
    "Task", "Model", "Method", "MB", "Score", "Against fp32, points, 95% interval", "Flips",
    "Mean / worst logit difference", "int8 products",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    method: str
    run: Result
    file: Path

    @property
    def model(self) -> ModelResult:
        return self.run.final


def rows(recipe: str, task: str, methods: Sequence[str], data_dir: Path, out: Path) -> list[Row]:
    """Return a row for each method; the search's goal is the recipe's default."""
    group = []
    for method in methods:
        name, *settings = method.split(",")
        request = Request((recipe,), (task,), teacher="minilm-l6", data_dir=data_dir, root=out, bench=None,
                          overrides=tuple(f"quantize.{one}" for one in (f"method={name}", *settings)))  # fmt: skip
        (run,) = run_all(request)
        files = json.loads((out / run.run / "models.json").read_text(encoding="utf-8"))
        group.append(Row(method, run, out / ".store" / files[run.final.predictions]["onnx"]))
        print(line(group[-1]), flush=True)
    return group


def line(row: Row) -> str:
    model, fidelity = row.model, row.model.fidelity
    if fidelity is None:
        raise SystemExit(f"{row.run.run}: expected a quantized model, found {model.precision}")
    delta, rate = fidelity.delta, fidelity.flip_rate
    cells = (
        row.run.task.title,
        model.name,
        row.method,
        f"{model.file_bytes / 1e6:.1f}",
        f"{model.headline:.2f}",
        f"{delta.points:+.2f} ({delta.low:+.2f} to {delta.high:+.2f})",
        "–" if rate is None else f"{fidelity.flips} ({100 * rate:.2f}%)",
        f"{fidelity.mean_logit_difference:.4f} / {fidelity.worst_logit_difference:.2f}",
        f"{model.info['int8_matmuls']} of {sum(model.info.get(name, 0) for name in COUNTED)}",
    )
    return table_line(cells)


def raw(row: Row) -> dict[str, Any]:
    run = row.run.model_dump(mode="json", include={"run", "seed", "code", "origin", "stages", "task"})
    return run | {"method": row.method, "model": row.model.model_dump(mode="json")}


def table_line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def table(headings: tuple[str, ...], lines: list[str], left: int) -> str:
    rule = (":--",) * left + ("--:",) * (len(headings) - left)
    return "\n".join([table_line(headings), table_line(rule), *lines])


def timed(group: list[Row], runs: int) -> dict[str, Any]:
    """Return the result of `compress bench` for every method's file and the fp32 one."""
    store, first = group[0].file.parents[1], group[0]
    files = json.loads((store.parent / first.run.run / "models.json").read_text(encoding="utf-8"))
    baseline = store / files[f"{first.model.name}-fp32"]["onnx"]
    program = Path(sys.executable).with_name("compress")
    shapes = [word for shape in SHAPES for word in ("--shape", shape)]
    command = [
        program,
        "bench",
        baseline,
        *(row.file for row in group),
        *shapes,
        "--runs",
        str(runs),
        "--threads",
        "1",
        "--json",
    ]
    return json.loads(children.run(command, BENCH_SECONDS))


def time_table(group: list[Row], documents: list[dict[str, Any]]) -> str:
    """Return every method's p50 of CPU time and the fp32 one's, with the speedup over fp32 in brackets."""
    names = ("fp32", *(row.method for row in group))
    lines = []
    for name, document in zip(names, documents, strict=False):
        cells = [f"{one['cpu_p50']:.2f} ({one['cpu_speedup']:.2f}×)" for one in document["latency"]]
        lines.append(table_line((name, *cells)))
    return table(("Method", *(f"{shape}, ms" for shape in SHAPES)), lines, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--teacher-task", action="append", default=[])
    parser.add_argument("--student-task", action="append", default=[])
    parser.add_argument("--method", action="append", help="NAME or NAME,field=value; default: " + ", ".join(METHODS))
    parser.add_argument("--time", help="a task among --teacher-task")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--report", type=Path)
    add_json(parser)
    arguments = parser.parse_args()
    methods = arguments.method or list(METHODS)
    print(table(HEADINGS, [], 3))
    groups = {(recipe, task): rows(recipe, task, methods, arguments.data_dir, arguments.out)
             for recipe, tasks in (("int8", arguments.teacher_task), ("distilbert", arguments.student_task))
             for task in tasks}  # fmt: skip
    first = next(iter(groups.values()))[0].run
    page = [
        "# int8 methods: their fidelity to fp32\n",
        f"Measured on {first.machine.cpu}, {', '.join(first.machine.isa)}, ONNX Runtime {first.versions['onnxruntime']}, by\n",
        f"{code_line()}\n",
        f"```\npython benchmarks/int8_methods.py {shlex.join(sys.argv[1:])}\n```\n",
        table(HEADINGS, [line(row) for group in groups.values() for row in group], 3),
    ]
    measured: dict[str, Any] = {"runs": [raw(row) for group in groups.values() for row in group]}
    if arguments.time:
        group = groups["int8", arguments.time]
        measured["bench"] = timed(group, arguments.runs)
        times = time_table(group, measured["bench"]["latency"])
        page += ["", f"CPU time, p50, one thread, the teacher of {arguments.time}:\n", times]
    write_json(arguments.json, measured)
    text = "\n".join(page) + "\n"
    print(text)
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
