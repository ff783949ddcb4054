"""The model card: README.md of a bundle, with the metadata that model hubs read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from ...models.heads import HEADS
from ...report.sections.finetuning_choice import format_choice
from ...report.text.words import KIND_WORDS, METRIC_WORDS, headline_name
from ...results import Latency, ModelResult
from ...results.timing import doubts, headline, uses_cpu_time
from ...runtime.folder import MODEL_FILES
from ...spec.kinds import KINDS
from ..document import DTYPES, BundleInfo, Precision
from ..tolerance import makes_vectors
from .papers import bibtex
from .samples import LANGUAGES, SAMPLES, sample

TEMPLATE = Path(__file__).with_name("card.md.j2")
_NOTICEABLE = 0.05  # share of a reported split's texts that also stand in train


def render(
    info: BundleInfo, *, has_checkpoint: bool = False, known: bool = True, pruned: bool = False, cut_side: str = "right"
) -> str:
    """Return Markdown with YAML front matter. `has_checkpoint`: the weights are in the folder too. `known`: transformers,
    and what depends on its families, knows the model's. `pruned`: transformers alone refuses its weights (`models.pruned`).
    `cut_side`: of texts that are too long, `left` or `right`."""
    import jinja2
    import yaml

    from ...report.text.markdown import code_span, escape

    # Each value is one line, so that a parser that only looks for the closing `---` finds no other.
    front = yaml.safe_dump(
        _one_line(front_matter(info, has_checkpoint and known and not pruned, known=known)),
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
    )
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"md": escape, "code": code_span}
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    fields = {"known": known, "has_checkpoint": has_checkpoint, "pruned": pruned, "auto": HEADS[info.task.kind].model}
    side = "" if cut_side == "right" else f', direction="{cut_side}"'
    return template.render(
        side=side, info=info, front=front, recipe=info.recipe.get("name", "unknown"), **fields, **_card_fields(info)
    )


def front_matter(info: BundleInfo, has_checkpoint: bool, *, known: bool = True) -> dict[str, Any]:
    """Return the metadata that hubs read. No licence is claimed if the teacher's is unknown."""
    fields: dict[str, Any] = {}
    if info.licence:
        fields["license"] = info.licence.lower()
    if info.task.name in SAMPLES:
        fields["language"] = LANGUAGES
    fields["library_name"] = library = _library(info, has_checkpoint, known=known)
    fields["pipeline_tag"] = KIND_WORDS[info.task.kind].pipeline_tag
    js = ["transformers.js"] if known and any(name in DTYPES for name in info.models) else []
    own = [*([library] if known else []), "feature-extraction"] if makes_vectors(info) else []
    fields["tags"] = [*own, "onnx", "bert-compress", *js, *(["int8"] if _is_quantized(info) else [])]
    if info.base_model:
        fields["base_model"] = info.base_model
        fields["base_model_relation"] = "quantized" if _is_quantized(info) else "finetune"
    if info.dataset:
        fields["datasets"] = [info.dataset]
    if not _is_multiple_choice(info):  # hubs have no widget for it
        fields["widget"] = [_widget(info)]
    fields["model-index"] = [{"name": info.title or info.name, "results": _index(info)}]
    return fields


def _library(info: BundleInfo, has_checkpoint: bool, *, known: bool) -> str:
    if known and makes_vectors(info):
        return "sentence-transformers"
    return "transformers" if has_checkpoint else "onnx"


def _widget(info: BundleInfo) -> dict[str, Any]:
    if makes_vectors(info):
        first, *others = _sample(info)
        return {"source_sentence": first, "sentences": others}
    second = "context" if KINDS[info.task.kind].unit == "question" else "text_pair"
    return dict(zip(("text", second), _sample(info), strict=False))


def _sample(info: BundleInfo) -> tuple[str, ...]:
    return sample(info.task.name, len(info.text_columns), unit=KINDS[info.task.kind].unit)


def _one_line(value: Any) -> Any:
    from ...report.text.markdown import one_line

    if isinstance(value, dict):
        return {name: _one_line(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_one_line(each) for each in value]
    return one_line(value) if isinstance(value, str) else value


def _index(info: BundleInfo) -> list[dict[str, Any]]:
    """Return the scores of the default model, as fractions, one entry per split."""
    shipped = _default_model(info)
    return [
        {
            "task": {"type": KIND_WORDS[info.task.kind].pipeline_tag, "name": info.task.title},
            "dataset": {"name": info.task.title, "type": info.dataset or info.task.name, "split": split},
            "metrics": [
                {"type": METRIC_WORDS[name].hub[0], "name": METRIC_WORDS[name].hub[1], "value": round(points / 100, 4)}
                for name, points in scores.items()
            ],
        }
        for split, scores in shipped.scores.items()
    ]


def _default_model(info: BundleInfo) -> ModelResult:
    return info.models[_default(info)]


def _is_quantized(info: BundleInfo) -> bool:
    return any(precision != "fp32" for precision in info.models)


def _default(info: BundleInfo) -> Precision:
    """Return the precision that the runtime opens by default."""
    return next(precision for precision in MODEL_FILES if precision in info.models)  # type: ignore[return-value]


def _card_fields(info: BundleInfo) -> dict[str, Any]:
    ensemble = None if info.model == "teacher" else info.ensemble  # which a teacher did not learn from
    return {
        "split": info.task.splits[0],
        "in_train": {name: share for name, share in info.task.data.shares_in_train().items() if share > _NOTICEABLE},
        "ensemble": ensemble,
        "choices": list(map(format_choice, info.choices)),
        "teachers": [teacher.name for teacher in ensemble.teachers] if ensemble else [info.teacher],
        "calibrated": bool(ensemble) and any(each.temperature is not None for each in ensemble.teachers),
        "headline": headline_name(info.task),
        "title": info.title or info.name,
        "slug": "local/" + (re.sub(r"[^A-Za-z0-9]+", "-", info.title or info.name).strip("-") or "model"),
        **_samples(info),
        "vectors": makes_vectors(info),
        "json_sample": json.dumps(_sample(info), ensure_ascii=False),
        "width": max((len(row) for rows in info.probe.logits.values() for row in rows), default=0),
        "dtype": DTYPES.get(_default(info)),
        "bibtex": bibtex(info.recipe.get("paper")),
        "words": KIND_WORDS[info.task.kind],
        "named_labels": bool(info.task.labels) and KINDS[info.task.kind].named_labels,
        "input": KIND_WORDS[info.task.kind].input or _INPUTS[len(info.text_columns)],
        "file": f"onnx/{MODEL_FILES[_default(info)]}",
        "dtypes": [DTYPES[name] for name in info.models if name in DTYPES],
        "dynamic": any(graph.format == "dynamic" for graph in info.graphs.values()),
        "quantized": _is_quantized(info),
        "words_of_4_bits": [
            graph.file for name, graph in info.graphs.items() if info.models[name].info.get("int4_gathers")
        ],
        **_table_fields(info),
        "shipped": _default_model(info),
        "isa": ", ".join(info.measured_on.isa) or "no vector extension that matters here",
        "verified_isa": ", ".join(info.verified_on.isa) or "no vector extension that matters here",
    }


def _table_fields(info: BundleInfo) -> dict[str, Any]:
    """Return the table of models: a row for the baseline and each shipped file, a column for each score and each latency that is not in
    doubt."""
    shown = {(info.baseline.name, info.baseline.precision): info.baseline}
    shown |= {(model.name, model.precision): model for model in info.models.values()}
    columns = [METRIC_WORDS[name].hub[1] for name in info.task.metrics]
    runtimes = [model.onnx for model in shown.values() if model.onnx]
    cpu, in_doubt = uses_cpu_time(runtimes), doubts(info.noise, runtimes)
    timed = [(one.batch, one.length) for one in _latencies(_default_model(info))]
    shapes = [shape for shape in timed if shape not in in_doubt.of_headline(cpu=cpu)]
    clocks = [_shape(shape, cpu) for shape in shapes]
    return {
        "heading": ["model", "MB", "parameters", *columns, "against the baseline", *clocks],
        "rows": [_model_row(model, info, shapes, cpu=cpu, doubted=in_doubt.wall) for model in shown.values()],
        "cpu_time": cpu,
        "busy": len(shapes) < len(timed),
    }


_INPUTS = {1: "one text", 2: "two texts"}


def _is_multiple_choice(info: BundleInfo) -> bool:
    return KINDS[info.task.kind].unit == "choice"


def _samples(info: BundleInfo) -> dict[str, str]:
    """Return Python source: the elements of a list of texts as the tokenizer takes them, and of one as the runtime does."""
    texts = _sample(info)
    if _is_multiple_choice(info):
        context, *endings = texts
        return {"sample": ", ".join(repr((context, ending)) for ending in endings), "asked": repr((context, endings))}
    sample = ", ".join(map(repr, texts)) if makes_vectors(info) else _python_literal(texts)
    return {"sample": sample, "asked": sample}


def _python_literal(texts: tuple[str, ...]) -> str:
    """Spell texts as an element of a Python list."""
    first, *others = texts
    return repr(texts if others else first)


def _latencies(model: ModelResult) -> tuple[Latency, ...]:
    return model.onnx.latency if model.onnx else ()


def _shape(shape: tuple[int, int], cpu: bool) -> str:
    clock = "CPU ms" if cpu else "p50 ms"
    return f"{clock}, the task's lengths" if shape == (0, 0) else f"{clock}, {shape[0]} × {shape[1]}"


def _model_row(
    model: ModelResult,
    info: BundleInfo,
    shapes: list[tuple[int, int]],
    *,
    cpu: bool,
    doubted: Container[tuple[int, int]],
) -> list[str]:
    """`cpu`: whether times are CPU time, with wall time beside it except for the shapes `doubted`."""
    scores = [f"{model.scores[info.task.splits[0]][name]:.2f}" for name in info.task.metrics]
    size = f"{model.file_bytes / 1e6:.1f}"
    times = {
        (shape := (one.batch, one.length)): _time(one, cpu, wall=shape not in doubted) for one in _latencies(model)
    }
    return [
        f"{model.name}, {model.precision}",
        size,
        f"{model.parameters:,}",
        *scores,
        _delta(model),
        *(times.get(shape, "–") for shape in shapes),
    ]


def _time(latency: Latency, cpu: bool, *, wall: bool) -> str:
    milliseconds, speedup = headline(latency, cpu=cpu)
    beside = f"; wall {latency.p50:.2f}" if cpu and wall else ""
    return f"{milliseconds:.2f} ({speedup:.2f}×){beside}"


def _delta(model: ModelResult) -> str:
    if model.delta is None:
        return "baseline"
    text = f"{model.delta.points:+.2f} ({model.delta.low:+.2f} to {model.delta.high:+.2f})"
    return text if model.delta.distinguishable else f"{text}, not distinguishable"
