"""What heads and neurons cost on this machine, in time or in bytes of the file, measured on narrow models with random weights."""

from __future__ import annotations

import copy
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from ....files.atomic import write_text
from ....models.heads import HEADS, model_from
from ....models.pruned.shape import FIELD
from ....quantize import FILES
from ....quantize.methods import int8_format, quantizer_of
from ....sessions.opening import open_session
from ....spec.quantization import Quantize
from ....spec.recipe import Recipe
from ....spec.stages import Export
from ...plan import Job

if TYPE_CHECKING:
    from ....pruning.budget import MeasuredCosts

_MOST_LAYERS = 6  # of a measured model: the cost of further layers follows from the difference between 6 and 4
_MOST_TOKENS = (
    1_000  # rows of the embedding table, which does not affect time, unless the padding token has a higher id
)
_STEPS = 6  # widths that are timed, of heads and of neurons
_SECONDS, _LEAST_ROUNDS, _MOST_ROUNDS, _WARM_UP, _ROW = 20, 5, 100, 1, 5
_FEWEST_TOKENS = 64  # token ids that the timed texts are drawn from
_SHAPE_BYTES = 100  # of the constants of shapes in a layer whose width no other layer has
_READ = {"per_channel", "reduce_range", "embeddings", "word_bits"}  # fields of `quantize` that costs depend on


class Shape(NamedTuple):
    """Number of layers, and the heads and neurons of all layers but the last, and of the last."""

    layers: int
    heads: int
    neurons: int
    last_heads: int
    last_neurons: int


def int8_of(recipe: Recipe) -> Quantize | None:
    """Return how the recipe's last file is quantized, None if it is not."""
    return next((stage.spec for stage in recipe.stages if stage.kind == "quantize" and stage.is_enabled), None)


def measured_costs(job: Job[Any], config: Any, *, length: int | None) -> MeasuredCosts:
    """Return the costs for models of this transformers `config`: CPU milliseconds of a text of `length` tokens on one thread, or bytes of
    the file if there is no length. Saved in the job's `work`, so that a resumed job does not measure again."""
    from ....pruning.budget import MeasuredCosts

    kept = job.work / ("layer_times.json" if length else "layer_bytes.json")
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as folder:
            costs = _measure(_of_job(job, config, Path(folder), length), config, timed=length is not None)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, TypeAdapter(MeasuredCosts).dump_json(costs).decode())
    return TypeAdapter(MeasuredCosts).validate_json(kept.read_bytes())


def _of_job(job: Job[Any], config: Any, folder: Path, length: int | None) -> Callable[[Sequence[Shape]], list[float]]:
    """Return a function that measures models of given shapes."""
    tokens = timed_tokens(config) if length else config.vocab_size
    show = job.context.listener.progress

    def measure(shapes: Sequence[Shape]) -> list[float]:
        files = []
        for number, shape in enumerate(shapes):
            model = _model_of_shape(job, config, shape, tokens)
            files.append(_file(job, model, folder / str(number), timed=length is not None))
            show("exporting models to measure", number + 1, len(shapes))
        if length is None:
            more = _unmeasured_bytes(job, config)
            return [float(file.stat().st_size + more) for file in files]
        return _cpu_times(files, length, partial(show, "timing models, seconds"))

    return measure


def timed_tokens(config: Any) -> int:
    """Rows of the embedding table of a timed model: enough for the texts that time it, and for the padding token."""
    few = max(min(config.vocab_size, _MOST_TOKENS), _FEWEST_TOKENS)
    return few if config.pad_token_id is None else max(few, config.pad_token_id + 1)


def _measure(measure: Callable[[Sequence[Shape]], list[float]], config: Any, *, timed: bool) -> MeasuredCosts:
    """Measure models that differ in one number from a narrow one, which has one head and 16 neurons in each layer."""
    from ....pruning.budget import MeasuredCosts

    layers, options = config.num_hidden_layers, _options(config, _STEPS if timed else 2)
    depth = min(layers, _MOST_LAYERS)
    narrow, whole = (Shape(depth, *(each[place] for each in options.values())) for place in (1, -1))
    if depth == 1:  # a single layer is the last one
        options |= {"heads": [0], "neurons": [0]}
    parts = {(name, count): narrow._replace(**{name: count}) for name, counts in options.items() for count in counts}
    shallow = narrow._replace(layers=depth - 2) if layers > depth else narrow
    shapes = list(dict.fromkeys([narrow, whole, shallow, *parts.values()]))
    costs = dict(zip(shapes, measure(shapes), strict=True))
    more = {part: costs[shape] - costs[narrow] for part, shape in parts.items()}
    # A large model's weights do not stay in the caches, as a narrow one's do: the costs of widths are scaled to add up to the whole's.
    together = sum(more[name, counts[-1]] for name, counts in options.items())
    scale = (costs[whole] - costs[narrow]) / together if together > 0 else 1.0
    points = dict[str, Any]()
    empty = costs[narrow] + (layers - depth) * max(0.0, (costs[narrow] - costs[shallow]) / 2)
    for name, counts in options.items():
        layers_alike, measured = (1, 1) if name.startswith("last") else (layers - 1, max(1, depth - 1))
        fewest = max(0.0, -more[name, 0])
        points[name] = tuple(
            (count, (fewest + scale * more[name, count]) / measured if count else 0.0) for count in counts
        )
        empty -= layers_alike * fewest / measured
    return MeasuredCosts(max(0.0, empty), **points)


def _options(config: Any, steps: int) -> dict[str, list[int]]:
    """Return field of `Shape` -> values to measure, ascending, beginning with zero and the smallest."""
    from ....models.families import FAMILIES
    from ....pruning.unit_choice import neuron_counts

    heads = config.num_attention_heads
    some = neuron_counts(getattr(config, FAMILIES[config.model_type].own_name("intermediate_size"))).tolist()
    return {
        "heads": [0, *(1 + place for place in _measured_places(heads, steps))],
        "neurons": [0, *(some[1 + place] for place in _measured_places(len(some) - 1, steps))],
        "last_heads": sorted({0, 1, heads}),
        "last_neurons": sorted({0, some[1], some[-1]}),
    }


def _measured_places(count: int, steps: int) -> list[int]:
    """Choose up to `steps` of `count` widths to measure, including the ends; more of them are narrow, where time rises fastest."""
    return sorted({round((count - 1) * (step / (steps - 1)) ** 1.5) for step in range(steps)})


def _model_of_shape(job: Job[Any], config: Any, shape: Shape, tokens: int) -> Any:
    import torch

    from ....models.families import FAMILIES
    from ....pruning.removal import without_units

    config = copy.deepcopy(config)
    vars(config).pop(FIELD, None)
    config.vocab_size = tokens
    setattr(config, FAMILIES[config.model_type].own_name("num_hidden_layers"), shape.layers)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        whole = model_from(HEADS[job.context.kind], config).eval()
        with torch.no_grad():
            for (
                parameter
            ) in whole.parameters():  # zeros and ones, the initial values of norms, would be stored only once
                parameter.add_(torch.randn_like(parameter), alpha=0.01)
    inner = shape.layers - 1
    heads = [*[range(shape.heads)] * inner, range(shape.last_heads)]
    neurons = [*[range(shape.neurons)] * inner, range(shape.last_neurons)]
    return without_units(whole, heads, neurons).eval()


def _file(job: Job[Any], model: Any, folder: Path, *, timed: bool) -> Path:
    """Write the model's graph, in int8 if the recipe ends in that, and return its path. The graph is the fast one if it is `timed`, else
    the one that the recipe exports, with its metadata."""
    from ....export.fast import build_fast
    from ....graphs.model_files import write_model

    folder.mkdir()
    path = folder / "model.onnx"
    task = job.context.task.spec
    graph = build_fast(model, kind=task.kind, pairs=task.pairs) if timed else _exported(job, model)
    if graph is None:
        raise RuntimeError("a model without a fast graph is refused before")
    write_model(graph, path)
    spec = int8_of(job.plan.recipe)
    return path if spec is None else quantize_random(spec, path, folder, tokens=model.config.vocab_size)


def _exported(job: Job[Any], model: Any) -> Any:
    """Return the graph that the recipe exports, with its metadata."""
    from ....export import graph_of

    task, (graph, opset) = job.context.task.spec, _export_form(job.plan.recipe)
    return graph_of(
        model,
        opset=opset,
        task_name=task.name,
        labels=job.context.labels,
        kind=task.kind,
        graph=graph,
        pairs=task.pairs,
    )


def _export_form(recipe: Recipe) -> tuple[str, int]:
    """Return the graph (`fast` or `plain`) and the opset in which the recipe exports models that have a fast graph."""
    spec = next((stage.spec for stage in recipe.stages if stage.kind == "export"), Export())
    return "plain" if spec.graph == "plain" else "fast", spec.opset


def file_fields(recipe: Recipe, task_name: str, labels: Sequence[str]) -> dict[str, Any]:
    """Return what the size of a file depends on besides its weights, as JSON values: graph, opset, and the text in the metadata."""
    (graph, opset), int8 = _export_form(recipe), int8_of(recipe)
    text = [task_name, *labels, "" if int8 is None else _description(int8)]
    return {"graph": graph, "opset": opset, "text": json.dumps(text)}


def _description(spec: Quantize) -> str:
    """What the metadata of the int8 file say of `spec`."""
    return json.dumps(quantizer_of(spec).described(spec, int8_format(spec, "int8")), sort_keys=True)


def _unmeasured_bytes(job: Job[Any], config: Any) -> int:
    """Return the bytes that a file may have beyond the measured one: a longer description of how it was quantized, and constants of shapes,
    which layers of the same width share."""
    spec, layers = int8_of(job.plan.recipe), min(config.num_hidden_layers, config.num_attention_heads)
    more = 0 if spec is None else max(0, len(_description(spec)) - len(_description(_measured_form(spec))))
    return more + _SHAPE_BYTES * (layers - 1)


def _measured_form(spec: Quantize) -> Quantize:
    """Return the settings with which a model of random weights is quantized in place of `spec`."""
    static = "smoothquant" if quantizer_of(spec).smooths else "static"
    method = "dynamic" if int8_format(spec, "int8") == "dynamic" else static
    return Quantize(method=method, calibration="minmax", **spec.model_dump(include=_READ | {"outlier_splitting"}))


def cost_fields(spec: Quantize) -> dict[str, Any]:
    """Return what the time and the size of the int8 file of `spec` depend on, as JSON values."""
    if not quantizer_of(spec).smooths:
        return spec.model_dump(mode="json", include=_READ)
    return {**spec.model_dump(mode="json", include=_READ | {"outlier_splitting"}), "smoothed": True}


def quantize_random(spec: Quantize, source: Path, folder: Path, *, tokens: int) -> Path:
    """Quantize `source`, the fp32 file of a model with `tokens` tokens and random weights, to the int8 format of `spec`, for its time and
    size; return the path in `folder`. Ranges come from random texts; if the method smooths, every possible place is smoothed."""
    import onnx

    from ....quantize.int8_files import write_calibrated, write_worst_case
    from ....quantize.quantizer import Int8Job

    smooths, plain = quantizer_of(spec).smooths, _measured_form(spec)
    names = [each.name for each in onnx.load(source, load_external_data=False).graph.input]
    path, quantizer = folder / FILES["static"], quantizer_of(plain)
    job = Int8Job(quantizer, source, path, plain, quantizer.int8_format, feeds=[_random_feed(names, tokens)])
    write_worst_case(job) if smooths else write_calibrated(job, smooth=False)
    return path


def _random_feed(names: Sequence[str], tokens: int, shape: tuple[int, int] = (2, 16)) -> dict[str, np.ndarray]:
    """Return random tokens [text, token] for each input."""
    ids = np.random.default_rng(0).integers(tokens // 2, tokens, shape)
    values = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {name: values.get(name, np.zeros_like(ids)) for name in names}


def _cpu_times(files: Sequence[Path], length: int, on_progress: Callable[[int, int], None]) -> list[float]:
    """CPU milliseconds of one text on one thread, measured in turns; of each file the first quartile, because other load only adds to a
    time."""
    sessions = [open_session(file, threads=1) for file in files]
    feed = [
        _random_feed([each.name for each in session.get_inputs()], _FEWEST_TOKENS, (1, length)) for session in sessions
    ]
    rounds: list[list[float]] = []
    start = time.monotonic()
    while len(rounds) < _LEAST_ROUNDS or (len(rounds) < _MOST_ROUNDS and time.monotonic() < start + _SECONDS):
        rounds.append([_mean_time(*each) for each in zip(sessions, feed, strict=True)])
        on_progress(min(int(time.monotonic() - start), _SECONDS - 1), _SECONDS)
    on_progress(_SECONDS, _SECONDS)
    return np.quantile(rounds[_WARM_UP:], 0.25, axis=0).tolist()


def _mean_time(session: Any, feed: dict[str, np.ndarray]) -> float:
    """Mean time of several runs in a row, after warm-up runs that load the weights into the caches, as when a model runs alone."""
    for _ in range(_ROW):
        session.run(None, feed)
    start = time.process_time()
    for _ in range(_ROW):
        session.run(None, feed)
    return 1000 * (time.process_time() - start) / _ROW
