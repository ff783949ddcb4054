"""Measure every model of a run: accuracy through ONNX Runtime, and latency. Measurements are stored like any artefact."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import results, store
from ...errors import CheckFailed
from ...machine import cpu_name, isa, versions
from ...models.checkpoints.folders import load_tokenizer, pad_id
from ...models.dimensions import read_config, usable_positions
from ...provenance import manifest_fields
from ...runtime.folder import MODEL_FILES
from ...store import Artifact, Store
from ..plan import Context, Plan
from .reported import ReportedSource

EVALUATE_VERSION = 2
BENCH_VERSION = 4


@dataclass(frozen=True)
class Model:
    """One ONNX model of a run, with the checkpoint it came from."""

    name: str
    precision: str
    onnx: Path
    key: str
    checkpoint: Artifact

    @property
    def label(self) -> str:
        return f"{self.name}-{self.precision}"


@dataclass(frozen=True)
class BenchSettings:
    """How latency is measured. `threads` are per model; `runs` is the maximum per shape, fewer if they suffice."""

    shapes: tuple[tuple[int, int], ...] = ((1, 32), (1, 128), (32, 128))
    runs: int = 36  # the fewest that determine a p90
    warmup: int = 5
    threads: int = 1


def models_of(plan: Plan, artifacts: dict[str, Artifact]) -> list[Model]:
    """Return the models in the order they were made; the first is the fp32 teacher, the baseline."""
    models = []
    for label in plan.models:
        name, precision = label.rsplit("-", 1)
        artifact = artifacts[label]
        checkpoint = artifacts[plan.checkpoint(name)]
        models.append(Model(name, precision, artifact.path / MODEL_FILES[precision], artifact.key, checkpoint))
    return models


def predictions(
    model: Model, reported: ReportedSource, context: Context, cache: Store
) -> tuple[Artifact, dict[str, np.ndarray]]:
    """Return the measurement, and what scores are reported on -> float32 logits [example, class], in file order."""
    inputs = {"model": model.key, "data": reported.fingerprint}
    libraries = {"onnxruntime": versions()["onnxruntime"], "isa": " ".join(isa())}
    key = store.key("evaluate", EVALUATE_VERSION, {}, inputs, libraries)

    def make(out: Path, work: Path) -> dict[str, Any]:
        from ...evaluate import predict_onnx

        tokenizer, config = load_tokenizer(model.checkpoint.path), read_config(model.checkpoint.path)
        length = reported.spec.max_length
        arrays = {
            split: predict_onnx(
                model.onnx, reported.encoded(split, tokenizer, length), pad_id(config), threads=context.threads
            )
            for split in reported.data.splits
        }
        named = {f"split/{name}": array for name, array in arrays.items()}
        np.savez(out / "predictions.npz", allow_pickle=False, **named)
        return {"splits": list(arrays)}

    label = f"evaluate {model.label}"
    context.listener.stage(label, cache.find(key) is not None)
    artifact = cache.build(key, make, describe=manifest_fields("evaluate", label))
    with np.load(artifact.path / "predictions.npz", allow_pickle=False) as file:
        logits = {split: file[f"split/{split}"] for split in artifact.info["splits"]}
    return artifact, reported.data.gathered(logits)


def _fitting(shapes: tuple[tuple[int, int], ...], models: list[Model]) -> tuple[tuple[int, int], ...]:
    """Return the shapes that every model has positions for; if there is none, one text of the longest possible length."""
    longest = min(usable_positions(read_config(model.checkpoint.path)) for model in models)
    return tuple(shape for shape in shapes if shape[1] <= longest) or ((1, longest),)


def _lengths(model: Model, context: Context) -> tuple[int, ...]:
    """Return the token counts of a sample of the tuning split, by the model's own tokenizer."""
    from ...bench.lengths import sample_indices

    tokenizer = load_tokenizer(model.checkpoint.path)
    lengths = context.task.encoded("tuning", tokenizer, context.task.spec.max_length).lengths
    return tuple(int(length) for length in lengths[sample_indices(len(lengths))])


@dataclass(frozen=True)
class Latencies:
    """Measured latencies. `runtimes`: by label; torch eager as `<model>-torch`, the baseline's copy as `baseline again`. `name`: a key that
    changes when the figures are measured anew, even for the same models and settings."""

    artifact: Artifact
    name: str
    runtimes: dict[str, results.Runtime]


def benchmark(
    models: list[Model], context: Context, settings: BenchSettings, cache: Store, *, anew: bool = False
) -> Latencies:
    """Return latencies, measured now or read from the store; `anew`: always measured now."""
    inputs = {model.label: model.key for model in models}
    settings = replace(settings, shapes=_fitting(settings.shapes, models))
    spec = {**asdict(settings), "lengths": context.task.fingerprint}
    libraries = {name: versions()[name] for name in ("onnxruntime", "torch", "transformers")}
    machine = {"cpu": cpu_name(), "isa": " ".join(isa())}
    key = store.key("bench", BENCH_VERSION, spec, inputs, libraries | machine)

    def make(out: Path, work: Path) -> dict[str, Any]:
        from ...bench import NARROW, BenchSpec, Candidate, measure

        own = {model.name: _lengths(model, context) for model in models}
        candidates = [Candidate(model.label, model.onnx, "onnx", lengths=own[model.name]) for model in models]
        for model in models:
            if model.precision == "fp32":
                eager = Candidate(f"{model.name}-torch", model.checkpoint.path, "torch", lengths=own[model.name])
                candidates.append(eager)
        lengths = own[models[0].name]
        spec = BenchSpec(settings.shapes, lengths, settings.runs, settings.warmup, settings.threads, NARROW)
        try:
            figures = measure(candidates, spec, context.listener.progress)
        except CheckFailed as error:
            raise CheckFailed(
                f"{error}; finished stages are kept: run the same command again, or with --no-bench to leave latency out"
            ) from None
        document = {name: runtime.model_dump(mode="json") for name, runtime in figures.items()}
        (out / "latency.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
        return {}

    label = f"bench {', '.join(model.label for model in models)}"
    context.listener.stage(label, not anew and cache.find(key) is not None)
    artifact = cache.build(key, make, describe=manifest_fields("bench", label), anew=anew)
    text = (artifact.path / "latency.json").read_text(encoding="utf-8")
    runtimes = {name: results.Runtime.model_validate(runtime) for name, runtime in json.loads(text).items()}
    return Latencies(artifact, store.key("latencies", BENCH_VERSION, {"figures": text}, {"bench": key}, {}), runtimes)
