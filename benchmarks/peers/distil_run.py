"""Distillation by `compress` beside TextBrewer, torchdistill and a Trainer of transformers: the same pair, texts and steps.

    python benchmarks/peers/distil_run.py --teacher FOLDER --task sst2 --data-dir ../glue --report reports/distillation-peers.md

FOLDER is a fine-tuned checkpoint of 6 layers, such as `model` of a run's teacher in runs/.store. The student is its layers 1, 3 and
5. Each candidate trains in its own process and environment, in rounds of random order; all candidates of a round share a seed.
Compare CPU time: other work on the machine disturbs it least. Writes a JSON beside the report.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distil_page import render
from distil_variants import CASES, candidates
from environments import environment
from process import CONVERT_SECONDS, start

from compress.errors import CompressError
from compress.files.atomic import write_text
from compress.files.paths import display_path
from compress.models.cards import load_student
from compress.models.checkpoints.folders import load_classifier, load_tokenizer, save_checkpoint
from compress.models.students import build_student, student_dimensions
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.plan.teachers import resolve_teacher
from compress.processes.worker import Worker
from compress.provenance import running_code
from compress.results import Machine
from compress.tasks import BucketSampler, Split, encode, resolve_task

STUDENT = "tiny-3l-384"
BATCH_SIZE, LEARNING_RATE, MAX_LENGTH = 32, 1e-4, 128
_TUNING, _DEV = 500, 64  # texts; `compress run` also needs dev and held-out texts, _DEV of each
_PROGRAM = Path(__file__).with_name("distil_child.py")


def say(*words: str) -> None:
    print(*words, sep=": ", file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    pythons, failed = _pythons(arguments)
    job = prepare(arguments)
    result: dict[str, Any] = {
        "command": shlex.join(["python", *map(display_path, sys.argv)]),
        "code": running_code().model_dump(mode="json"),
        "date": datetime.date.today().isoformat(),
        "machine": Machine.here().model_dump(mode="json"),
        "load": os.getloadavg()[0],
        "task": arguments.task,
        "note": arguments.note,
        "job": {name: job[name] for name in ("examples", "epochs", "batch_size", "learning_rate", "threads")},
        "lines": {peer: lines_of(peer) for peer in sorted({one.peer for one in candidates()})},
        "parts": _written(Path(__file__).with_name("distil_parts.py")),
        "tuning": job["tuning_texts"],
        "runs": [],
        "failed": failed,
    }
    with _children(pythons, arguments.threads, failed, arguments.seconds) as (children, result["versions"]):
        for number in range(arguments.rounds):
            for run in _round(number, children, job, arguments.case or [*CASES], failed):
                result["runs"].append(run)
                write_text(arguments.out / "result.json", json.dumps(result, indent=1) + "\n")
    _check_starts(result["runs"])
    page = render(result)
    if arguments.report:
        write_text(arguments.report, page)
        write_text(arguments.report.with_suffix(".json"), json.dumps(result) + "\n")
    print(page)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="a fine-tuned checkpoint")
    parser.add_argument("--task", default="sst2", help="of one text each")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--case", action="append", choices=CASES, help="default: all")
    parser.add_argument("--examples", type=int, default=1024, help="to train on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=CONVERT_SECONDS, help="for one training")
    parser.add_argument("--environments", type=Path, default=Path("runs/peers/environments"))
    parser.add_argument("--out", type=Path, default=Path("runs/distillation-peers"))
    parser.add_argument("--report", type=Path)
    parser.add_argument(
        "--note", default="", help="for the report: what a reader must know of the teacher and the machine"
    )
    arguments = parser.parse_args()
    if -(-arguments.examples // BATCH_SIZE) * arguments.epochs < 2:
        parser.error(
            f"--examples and --epochs: expected two batches of {BATCH_SIZE} or more, as steps are timed between updates"
        )
    return arguments


def _pythons(arguments: argparse.Namespace) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the interpreter of each peer's environment, and why one is missing."""
    pythons, failed = {"": Path(sys.executable)}, {}
    for name in ("textbrewer", "torchdistill"):
        try:
            pythons[name] = environment(name, arguments.environments)
        except CompressError as error:
            failed[name] = str(error)
    return pythons, failed


def prepare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the files that all candidates train on, and the student that they start from."""
    out = arguments.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    spec, folder = resolve_task(arguments.task)
    data = TaskSource(spec, folder, arguments.data_dir).data
    order = np.random.default_rng(0).permutation(len(data.train))
    train = data.train.select(order[: arguments.examples])
    parts = {
        "train": train,
        "dev": data.train.select(order[-_DEV:]),
        "held_out": data.train.select(order[-2 * _DEV : -_DEV]),
        "tuning": data.tuning.select(np.arange(min(_TUNING, len(data.tuning)))),
    }
    for name, split in parts.items():
        rows = zip(split.texts[0], split.labels.tolist(), strict=True)
        lines = [json.dumps({"text": text, "label": data.labels[label]}) for text, label in rows]
        write_text(out / f"{name}.jsonl", "\n".join(lines) + "\n")
    _write_student(arguments.teacher, out / "student", data.labels)
    return {
        "teacher": str(arguments.teacher.absolute()),
        "student": str(out / "student"),
        **{name: str(out / f"{name}.jsonl") for name in parts},
        "out": str(out / "run"),
        "examples": len(train),
        "tuning_texts": len(parts["tuning"]),
        "epochs": arguments.epochs,
        "batch_size": BATCH_SIZE,
        "learning_rate": LEARNING_RATE,
        "threads": arguments.threads,
        "batches": _batches(train, arguments.teacher),
        "score": True,
    }


def _write_student(teacher: Path, folder: Path, labels: tuple[str, ...]) -> None:
    """Write the student as `compress run` initializes it: copied layers and the teacher's head."""
    card, sizes = load_student(STUDENT), resolve_teacher(str(teacher)).dimensions(len(labels))
    model = load_classifier(teacher, kind="classification", labels=labels, trained=True)
    torch.manual_seed(0)
    student = build_student(card, model, student_dimensions(card, sizes))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    save_checkpoint(student, load_tokenizer(teacher), folder)


def _lengths(split: Split, teacher: Path | str) -> np.ndarray:
    folder = resolve_teacher(str(teacher)).folder
    assert folder is not None
    return encode(load_tokenizer(folder), split, MAX_LENGTH).lengths


def _batches(train: Split, teacher: Path) -> list[list[int]]:
    """Return the batches of our loop's first epoch, for peers that use the same."""
    return [batch.tolist() for batch in BucketSampler(_lengths(train, teacher), BATCH_SIZE, 0).epoch(0)]


def _check_starts(runs: list[dict[str, Any]]) -> None:
    """Check that every student started with the same weights, by the sum of their absolute values."""
    starts = {run["start"] for run in runs}
    if starts and max(starts) - min(starts) > 1e-9 * max(starts):
        raise SystemExit(f"the students began with different weights: sums of {sorted(starts)}")


def lines_of(peer: str) -> int:
    """Return the number of lines that a user of the peer writes, without blank lines, comments and module docstrings."""
    return sum(map(_written, files_of(peer)))


def files_of(peer: str) -> list[Path]:
    """Return the FILES of the peer's module, read from its source, because it may not import here."""
    source = Path(__file__).with_name(f"{peer}.py").read_text(encoding="utf-8")
    line = next(line for line in source.splitlines() if line.startswith("FILES = "))
    names = line.removeprefix("FILES = ").strip("()").split(",")
    return [Path(__file__).with_name(name.strip().strip('"')) for name in names if name.strip()]


def _written(path: Path) -> int:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    quotes = [at for at, line in enumerate(lines) if line.startswith('"""')]
    if quotes and path.suffix == ".py":  # the docstring ends on its own line, or on its first
        end = (
            quotes[0]
            if lines[quotes[0]].count('"""') == 2
            else next(i for i in range(1, len(lines)) if '"""' in lines[i])
        )
        lines = lines[end + 1 :]
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)


def _round(
    number: int, children: dict[str, Worker], job: dict[str, Any], cases: list[str], failed: dict[str, str]
) -> Iterator[Any]:
    every = [(case, one) for case in cases for one in candidates() if case in one.cases and one.peer in children]
    for case, one in random.sample(every, len(every)):
        name = f"{case}, {one.name}"
        shutil.rmtree(job["out"], ignore_errors=True)
        try:
            run = children[one.peer].ask("run", case=case, pad=one.pad, job={**job, "seed": number})
        except CompressError as error:
            failed[name] = str(error)
            say(f"round {number + 1}", name, str(error))
            continue
        say(f"round {number + 1}", name, f"{run['clocks'][-1][0] - run['clocks'][0][0]:.1f} s of CPU time")
        yield {"case": case, "candidate": one.name, "round": number, **run}


@contextmanager
def _children(
    pythons: dict[str, Path], threads: int, failed: dict[str, str], seconds: float
) -> Iterator[tuple[dict[str, Worker], dict[str, Any]]]:
    """Start a process for each library, with its imports done, and yield the processes and their versions. A training that takes more than
    `seconds` is killed."""
    children, versions = {}, {}
    with ExitStack() as stack:
        for peer, name in {one.peer: one.environment for one in candidates()}.items():
            if name not in pythons:
                continue
            try:
                child = stack.enter_context(
                    start(pythons[name], peer, threads, ours=name == "", program=_PROGRAM, seconds=seconds)
                )
                versions[peer] = child.ask("versions")
                children[peer] = child
            except CompressError as error:
                failed[peer] = str(error)
        yield children, versions


if __name__ == "__main__":
    main()
