"""Runs of recipes on a simulated GPU, and what they did there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pretend_cuda import pretend_cuda, waits
from pretrained_toys import encoder_folder
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Request, build_stage, building
from compress.pipeline.plan.students import CHOSEN_LAYERS
from compress.training.loop import _Run

FORWARDS = {"augment", "prune"}  # stages that run the model without optimizer steps
LOGGED = {"loop.py:_check_losses tolist": 1}  # the losses and the gradient's norm, read at once
STUDENT = (
    "name: narrow\ntitle: S\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 2\nintermediate: 24\ninit: random\n"
)
SHORT = "max_steps: 2, batch_size: 8, dropout: 0.0"
# The stages; the last stage to build; the student: a card, or None for one with its own tokenizer.
Recipe = tuple[str, str, str | None]
# For the recipes of other kinds of tasks: the kind, the columns, and a function from a number to a row.
TASKS: dict[str, tuple[str, str, Callable[[int], dict[str, Any]]]] = {
    "vectors": (
        "embedding",
        "text: [one, other]\nlabel: score\nmetrics: [spearman]\n",
        lambda n: {"one": f"the film {n}", "other": "good film is bad"[: 4 + n % 9], "score": (n % 9) / 9},
    ),
    "ranked": (
        "ranking",
        "text: [query, passage]\nlabel: relevance\nmetrics: [mrr@10]\n",
        lambda n: {
            "query": f"the film {n // 3}",
            "passage": "good film is bad"[: 4 + n % 9],
            "relevance": int(n % 3 == 1),
        },
    ),
    "chosen": (
        "choice",
        "text: [context, endings]\nlabel: label\nmetrics: [accuracy]\n",
        lambda n: {"context": f"the film {n}", "endings": ["good film", "is bad"[: 3 + n % 4]], "label": n % 2},
    ),
    "asked": (
        "span",
        "text: [question, context]\nlabel: answers\nmetrics: [exact_match]\n",
        lambda n: {
            "question": "is it good " + "?" * (1 + n // 60),
            "context": "the film is good . " * (1 + n % 4),
            "answers": [{"start": 4, "end": 8}],
        },
    ),
}


def gpu_world(folder: Path, checkpoint: Path, tokenizer: Tokenizer) -> Path:
    """Write a teacher, a task and text for the recipes, and return the folder."""
    text = "the film is not bad . the good film is good .\n\n" * 150
    encoder_world(folder, checkpoint, tokenizer, text=text)
    return folder


@dataclass
class Trace:
    """What a run did: the stages that computed on the GPU, and the synchronizations of each step."""

    stages: list[str] = field(default_factory=list)
    steps: list[Counter[str]] = field(default_factory=list)
    losses: dict[str, list[dict[str, float]]] = field(default_factory=dict)


def build(
    world: Path, name: str, recipe: Recipe, *, precision: str = "fp32", gpu: bool = True, until: str | None = None
) -> Trace:
    """Run a recipe until its last stage or `until`; a task of this name in `TASKS` takes the place of the world's."""
    stages, last, student = recipe
    chosen = world / ("own-tokens" if student is None else "narrow.yaml")
    encoder_folder(chosen) if student is None else chosen.write_text(student)
    (world / f"{name}.yaml").write_text(
        f"name: {name}\ntitle: T\nteacher: minilm-l6\nstudent: distilbert-6l\nstages:{stages}\n  - export:\n"
        f"  - quantize: {{method: {'qat' if 'quantize_aware' in stages else 'dynamic'}}}\n"
    )
    options: dict[str, Any] = {"teacher": str(world / "teacher"), "student": str(chosen), "root": world / f"runs-{gpu}"}
    options |= {"precision": precision, "corpus": (str(world / "text.txt"),) if "max_length" in stages else ()}
    request = Request((str(world / f"{name}.yaml"),), (str(task_file(world, name)),), **options)
    with pytest.MonkeyPatch.context() as patch:
        trace = _watched(patch) if gpu else Trace()
        build_stage(request, until or last)
    for path in sorted((world / f"runs-{gpu}" / ".store").glob("*/log.jsonl")):
        label = json.loads((path.parent / "manifest.json").read_text())["describe"]["label"]
        trace.losses[label] = [json.loads(line)["losses"] for line in path.read_text().splitlines()]
    return trace


def task_file(world: Path, name: str) -> Path:
    if name not in TASKS:
        return world / "task.yaml"
    kind, columns, row = TASKS[name]
    for split, numbers in {"train": range(60), "dev": range(60, 90)}.items():
        (world / f"{name}-{split}.jsonl").write_text("".join(json.dumps(row(n)) + "\n" for n in numbers))
    path = world / f"task-{name}.yaml"
    files = f"files: {{train: {name}-train.jsonl, dev: {name}-dev.jsonl}}\n"
    path.write_text(f"name: {name}\nkind: {kind}\n{columns}max_length: 24\n{files}")
    return path


def _watched(patch: pytest.MonkeyPatch) -> Trace:
    trace, run_job, step = Trace(), building.run_job, _Run.step

    def on_gpu(job: Any) -> Any:
        kind = job.node.kind
        if not (kind.trains or kind.name in {*FORWARDS, CHOSEN_LAYERS}):
            return run_job(job)
        trace.stages.append(kind.name)
        with pretend_cuda():
            return run_job(job)

    def counted(run: _Run) -> Any:
        run.evaluate = None  # evaluation reads scores
        with waits() as counts:
            report = step(run)
        trace.steps.append(counts)
        return report

    patch.setattr(building, "run_job", on_gpu)
    patch.setattr(_Run, "step", counted)
    return trace
