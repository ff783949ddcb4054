"""Results in the form that runs write, with made-up numbers of a 6-layer teacher and its 3-layer student."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.report import write_report
from compress.report.ablation import ablation_of, write_ablation
from compress.report.bench import write_bench
from compress.results import (
    LOG,
    Data,
    Latency,
    Machine,
    ModelResult,
    Result,
    Runtime,
    StageRecord,
    TaskInfo,
    write_result,
)
from compress.results.fidelity import Delta
from compress.results.similarity import LayerSimilarity

from ..support import browser
from .bench_toys import measurements

MACHINE = Machine(
    cpu="AMD EPYC 9R14", isa=("avx2", "avx512f", "avx512_vnni"), cores=2, memory_bytes=16_000_000_000, os="Linux 6.1"
)
SHAPES = ((1, 32), (1, 128), (32, 128), (0, 0))


@dataclass(frozen=True)
class Model:
    """Fields that differ between models; times are ms at 1 × 32."""

    name: str
    precision: str
    layers: int
    megabytes: float
    score: float
    delta: tuple[float, float, float] | None
    ms: float
    eager_ms: float | None = None
    parameters: int = 22_713_986
    flops: int = 21_700_000


TEACHER = Model("teacher", "fp32", 6, 91.1, 91.28, None, 5.81, 11.4)
STUDENT = Model("student", "fp32", 3, 69.9, 90.37, (-0.92, -2.18, 0.34), 2.93, 5.9, 17_391_746, 10_850_000)
STUDENT8 = Model("student", "int8", 3, 17.8, 90.25, (-1.03, -2.41, 0.23), 0.98, None, 17_391_746, 10_850_000)
TEACHER8 = Model("teacher", "int8", 6, 23.4, 91.06, (-0.23, -0.8, 0.34), 1.81)
RECIPES = {"distilbert": (TEACHER, STUDENT, STUDENT8), "int8": (TEACHER, TEACHER8)}
COMPARED = LayerSimilarity(
    model="student",
    texts=256,
    tokens=6231,
    states=((0.99, 0.8, 0.6, 0.51), (0.7, 0.93, 0.9, 0.3), (0.2, 0.5, 0.84, 0.88)),
    attention=((0.05, 0.21, 0.4), (0.31, 0.11, 0.02)),
)
TASKS = {
    "sst2": ("SST-2", ("accuracy",), ("negative", "positive"), {"dev": 872}, ()),
    "mrpc": ("MRPC", ("accuracy", "f1"), ("different", "equivalent"), {"dev": 408}, ()),
    "stsb": ("STS-B", ("pearson", "spearman"), (), {"dev": 1500}, ()),
    "mnli": (
        "MNLI",
        ("accuracy",),
        ("entailment", "neutral", "contradiction"),
        {"dev_matched": 9815, "dev_mismatched": 9832},
        ("train has 46,165 of 392,702 rows: a subset",),
    ),
}


def _latency(ms: float, baseline_ms: float) -> tuple[Latency, ...]:
    factors = {(1, 32): 1.0, (1, 128): 2.8, (32, 128): 102.0, (0, 0): 0.92}
    return tuple(
        Latency(
            batch=batch,
            length=length,
            p50=ms * factor,
            p90=ms * factor * (1.9 if not batch else 1.11),
            p99=ms * factor * (2.6 if not batch else 1.3),
            examples_per_second=1000 * max(batch, 1) / (ms * factor),
            speedup=baseline_ms / ms,
            runs=30,
        )
        for (batch, length), factor in factors.items()
    )


def _runtime(ms: float, megabytes: float) -> Runtime:
    return Runtime(
        latency=_latency(ms, TEACHER.ms), peak_memory_bytes=int(megabytes * 2.2e6), load_ms=megabytes * 1.7, threads=1
    )


def _model(model: Model, task: str, shift: float) -> ModelResult:
    _, metrics, _, splits, _ = TASKS[task]
    scores = {split: {metric: model.score + shift + 4 * i for i, metric in enumerate(metrics)} for split in splits}
    first = scores[next(iter(splits))]
    info: dict[str, Any] = {
        "parity_max_abs_error": {"1x1": 1.1e-6, "8x128": 3.4e-6},
        "weight_matmuls": 6 * model.layers + 2,
    }
    if model.precision == "int8":
        info = {
            "method": "dynamic",
            "int8_matmuls": 6 * model.layers + 2,
            "fp32_matmuls": 0,
            "int8_gathers": 3,
            "flips": 9,
        }
    return ModelResult(
        name=model.name,
        precision="int8" if model.precision == "int8" else "fp32",
        architecture=f"{model.layers} x 384, 12 heads, FFN 1536",
        parameters=model.parameters,
        embedding_parameters=11_916_288,
        flops_per_token=model.flops,
        flops_per_example=model.flops * 25,
        file_bytes=int(model.megabytes * 1e6),
        scores=scores,
        headline=sum(first.values()) / len(first),
        delta=Delta(points=model.delta[0], low=model.delta[1], high=model.delta[2], mcnemar_p=0.21)
        if model.delta
        else None,
        predictions=f"{model.name}-{model.precision}",
        onnx=_runtime(model.ms, model.megabytes),
        torch_eager=_runtime(model.eager_ms, 400) if model.eager_ms else None,
        info=info,
    )


def _task(name: str) -> TaskInfo:
    title, metrics, labels, splits, notes = TASKS[name]
    rows = {"train": 65_349, "tuning": 2_000, **splits}
    return TaskInfo(
        name=name,
        title=title,
        kind="classification" if labels else "regression",
        labels=labels,
        metrics=metrics,
        splits=tuple(splits),
        data=Data(source="files", rows=rows, notes=notes, fingerprint=f"{name}-0123456789"),
    )


def make(recipe: str = "distilbert", task: str = "sst2", seed: int = 0, **changes: Any) -> Result:
    """Return one run's result; `changes` replace its fields."""
    shift = (-4.0 if len(TASKS[task][1]) > 1 else 0.0) + 0.35 * ((seed * 7) % 3 - 1)
    names = {"distilbert": ("finetune", "distill", "export", "quantize"), "int8": ("finetune", "export", "quantize")}[
        recipe
    ]
    result = Result(
        run=f"{recipe}-minilm-l6-{task}-seed{seed}-a1b2c3",
        created="2025-11-21T10:00:00+00:00",
        command=f"compress run {recipe} --task {task} --teacher minilm-l6 --data-dir ../shared/glue --seeds 3",
        recipe={
            "name": recipe,
            "title": recipe.title(),
            "teacher": "minilm-l6",
            "stages": [{name: {}} for name in names],
        },
        teacher="minilm-l6",
        student="distil-3l" if recipe == "distilbert" else None,
        seed=seed,
        task=_task(task),
        machine=MACHINE,
        versions={"python": "3.11.9", "torch": "2.13.0", "onnxruntime": "1.31.0", "transformers": "5.23.0"},
        stages=tuple(
            StageRecord(
                kind=f"{name} model",
                key=f"{seed:064x}",
                cached=name == "finetune",
                seconds=412.5 / (i + 1),
                info={"steps": 6129},
            )
            for i, name in enumerate(names)
        ),
        models=tuple(_model(model, task, shift) for model in RECIPES[recipe]),
        noise=_latency(TEACHER.ms * 1.02, TEACHER.ms),
        settings={
            "precision": "fp32",
            "threads": 2,
            "bench": {"runs": 30, "warmup": 5, "threads": 1},
            "tuning_examples": 2000,
            "published": {"MiniLM v2 paper, L6-H384 (dev)": 91.5} if task != "stsb" else {},
        },
    )
    return result.model_copy(update=changes)


@pytest.fixture(scope="session")
def fake() -> Callable[..., Result]:
    return make


@pytest.fixture
def realistic() -> list[Result]:
    """Return results of two recipes on four tasks, with three seeds on one task."""
    return [
        make(recipe, task, seed)
        for task in TASKS
        for recipe in RECIPES
        for seed in (range(3) if task == "mrpc" else [0])
    ]


def write_run(folder: Path, result: Result, *, examples: int = 400, drop: float = 0.04) -> Result:
    """Write a run directory whose result and predictions agree; return the written result."""
    rng = np.random.default_rng(result.seed)
    gold = np.tile([0, 1], examples // 2)
    arrays: dict[str, np.ndarray] = {"gold/dev": gold, "tokens/dev": 3 + np.arange(examples, dtype=np.int32) // 8}
    models = []
    for position, model in enumerate(result.models):
        wrong = rng.random(examples) < 0.1 + drop * position
        logits = np.eye(2, dtype=np.float32)[np.where(wrong, 1 - gold, gold)]
        arrays[f"{model.predictions}/dev"] = logits
        score = 100 * float(np.mean(~wrong))
        points = score - (models[0].headline if models else score)
        delta = Delta(points=points, low=points - 3, high=points + 3, mcnemar_p=None) if models else None
        models.append(
            model.model_copy(update={"scores": {"dev": {"accuracy": score}}, "headline": score, "delta": delta})
        )
    written = result.model_copy(update={"models": tuple(models)})
    folder.mkdir(parents=True)
    np.savez(folder / "predictions.npz", allow_pickle=False, **arrays)
    write_result(written, folder)
    return written


@pytest.fixture
def run_directory(tmp_path: Path) -> Callable[..., Result]:
    def write(result: Result, **how: Any) -> Result:
        return write_run(tmp_path / "runs" / result.run, result, **how)

    return write


@pytest.fixture(scope="module")
def pages(fake: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write one page of each kind: several recipes, tasks and seeds, training curves, layer maps, two tasks with the same title; an
    ablation; sweeps of `bench`."""
    out = tmp_path_factory.mktemp("pages")
    task = fake(task="mrpc").task.model_copy(update={"title": "SST-2"})
    several = [
        fake().model_copy(update={"similarity": COMPARED}),
        fake("int8"),
        *(fake(task="mrpc", seed=seed).model_copy(update={"task": task}) for seed in range(3)),
    ]
    log = out / "logs" / several[0].run / LOG
    log.parent.mkdir(parents=True)
    steps = (
        {"model": "student", "step": step, "losses": {"hard_label": 1 / step}, "tuning": 80} for step in range(1, 50)
    )
    log.write_text("".join(f"{json.dumps(step)}\n" for step in steps), encoding="utf-8")
    write_result(several[0], log.parent)
    write_report(several, out / "report", folders=[out / "logs"])
    rows: dict[str, list[Result]] = {}
    for label, drop in {"full": 0.0, "without augment": 0.3, "map top": -0.05}.items():
        run = fake(run=label.replace(" ", "-"))
        run = run.model_copy(update={"models": run.models[:2]})
        rows[label] = [write_run(out / "runs" / run.run, run, drop=drop)]
    ablation = ablation_of(rows, title="Mine", command="compress ablate tinybert", folders=[out / "runs"])
    write_ablation(ablation, out / "ablation")
    write_bench(measurements(), out / "bench")
    return {name: out / name / f"{name}.html" for name in ("report", "ablation", "bench")}


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    program, axe = browser.chromium(), browser.axe_file()
    if program is None or axe is None:
        pytest.skip(
            "needs Chromium, and axe-core: `npm install -g axe-core`, or COMPRESS_AXE=FILE with its axe.min.js; "
            f"found {program or 'no browser'}, {axe or 'no axe-core'}"
        )
    with browser.tab(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened, axe
