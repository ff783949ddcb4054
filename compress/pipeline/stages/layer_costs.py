"""What heads and neurons cost on this machine, in time or in bytes of the file: measured on narrow models with random weights."""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from ...atomic import write_text
from ...models.heads import HEADS, model_from
from ...models.pruned_shape import FIELD
from ...quantize import FILES
from ...quantize.methods import int8_format, quantizer_of
from ...sessions.opening import open_session
from ...spec.quantization import Quantize
from ...spec.recipe import Recipe
from ..plan import Job

if TYPE_CHECKING:
    from ...pruning.budget import MeasuredCosts

_MOST_LAYERS = 6  # of a model that is measured: what further ones cost is told from the difference between 6 and 4
_MOST_TOKENS = 1_000  # rows of its table of words, which time does not depend on, where its padding token is among them
_STEPS = 6  # widths that are timed, of heads and of neurons
_SECONDS, _LEAST_ROUNDS, _MOST_ROUNDS, _WARM_UP, _ROW = 20, 5, 100, 1, 5
_FEWEST_TOKENS = 64  # rows that texts to time are of
_READ = {"per_channel", "reduce_range", "embeddings", "word_bits"}  # fields of `quantize` that costs depend on


class Shape(NamedTuple):
    """Layers of a model, heads and neurons of all but the last, and of the last."""

    layers: int
    heads: int
    neurons: int
    last_heads: int
    last_neurons: int


def int8_of(recipe: Recipe) -> Quantize | None:
    """How the recipe's last file is quantized; None: it is not."""
    return next((stage.spec for stage in recipe.stages if stage.kind == "quantize" and stage.is_enabled), None)


def measured_costs(job: Job[Any], config: Any, *, length: int | None) -> MeasuredCosts:
    """For models of this `config` of transformers, CPU milliseconds of a text of `length` tokens on one thread, or the file's bytes where
    there is no length. Kept in the job's `work`: what an interruption left is not measured again."""
    from ...pruning.budget import MeasuredCosts

    kept = job.work / ("layer_times.json" if length else "layer_bytes.json")
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as folder:
            found = _measure(_of_job(job, config, Path(folder), length), config, timed=length is not None)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, TypeAdapter(MeasuredCosts).dump_json(found).decode())
    return TypeAdapter(MeasuredCosts).validate_json(kept.read_bytes())


def _of_job(job: Job[Any], config: Any, folder: Path, length: int | None) -> Callable[[Sequence[Shape]], list[float]]:
    """A function that measures models of given shapes."""
    tokens = timed_tokens(config) if length else config.vocab_size
    show = job.context.listener.progress

    def measure(shapes: Sequence[Shape]) -> list[float]:
        files = []
        for number, shape in enumerate(shapes):
            files.append(_file(job, _random_model(job, config, shape, tokens), folder / str(number)))
            show("exporting models to measure", number + 1, len(shapes))
        if length is None:
            return [float(file.stat().st_size) for file in files]
        return _times(files, length, partial(show, "timing models, seconds"))

    return measure


def timed_tokens(config: Any) -> int:
    """Rows of the table of words of a model that is timed: enough for the texts that time it, and for the padding token."""
    few = max(min(config.vocab_size, _MOST_TOKENS), _FEWEST_TOKENS)
    return few if config.pad_token_id is None else max(few, config.pad_token_id + 1)


def _measure(measure: Callable[[Sequence[Shape]], list[float]], config: Any, *, timed: bool) -> MeasuredCosts:
    """By models that differ in one number from a narrow one, of one head and 16 neurons in each layer."""
    from ...pruning.budget import MeasuredCosts

    layers, options = config.num_hidden_layers, _options(config, _STEPS if timed else 2)
    depth = min(layers, _MOST_LAYERS)
    narrow, whole = (Shape(depth, *(each[place] for each in options.values())) for place in (1, -1))
    if depth == 1:  # of one layer, that one is the last
        options |= {"heads": [0], "neurons": [0]}
    parts = {(name, count): narrow._replace(**{name: count}) for name, counts in options.items() for count in counts}
    shallow = narrow._replace(layers=depth - 2) if layers > depth else narrow
    shapes = list(dict.fromkeys([narrow, whole, shallow, *parts.values()]))
    found = dict(zip(shapes, measure(shapes), strict=True))
    more = {part: found[shape] - found[narrow] for part, shape in parts.items()}
    # A large model's weights do not stay in the caches that a narrow one's do: what widths add is scaled to what all add together.
    together = sum(more[name, counts[-1]] for name, counts in options.items())
    scale = (found[whole] - found[narrow]) / together if together > 0 else 1.0
    points = dict[str, Any]()
    empty = found[narrow] + (layers - depth) * max(0.0, (found[narrow] - found[shallow]) / 2)
    for name, counts in options.items():
        layers_alike, measured = (1, 1) if name.startswith("last") else (layers - 1, max(1, depth - 1))
        fewest = max(0.0, -more[name, 0])
        points[name] = tuple(
            (count, (fewest + scale * more[name, count]) / measured if count else 0.0) for count in counts
        )
        empty -= layers_alike * fewest / measured
    return MeasuredCosts(max(0.0, empty), **points)


def _options(config: Any, steps: int) -> dict[str, list[int]]:
    """The numbers of a `Shape` -> those to measure, rising from none and the fewest."""
    from ...models.families import FAMILIES
    from ...pruning.unit_choice import neuron_counts

    heads = config.num_attention_heads
    some = neuron_counts(getattr(config, FAMILIES[config.model_type].own_name("intermediate_size"))).tolist()
    return {
        "heads": [0, *(1 + place for place in _places(heads, steps))],
        "neurons": [0, *(some[1 + place] for place in _places(len(some) - 1, steps))],
        "last_heads": sorted({0, 1, heads}),
        "last_neurons": sorted({0, some[1], some[-1]}),
    }


def _places(count: int, steps: int) -> list[int]:
    """Of `count` widths those to measure: the ends and `steps` - 2 between, more of them near the narrowest, where time rises fastest."""
    return sorted({round((count - 1) * (step / (steps - 1)) ** 1.5) for step in range(steps)})


def _random_model(job: Job[Any], config: Any, shape: Shape, tokens: int) -> Any:
    import torch

    from ...models.families import FAMILIES
    from ...pruning.removal import without_units

    config = copy.deepcopy(config)
    vars(config).pop(FIELD, None)
    config.vocab_size = tokens
    setattr(config, FAMILIES[config.model_type].own_name("num_hidden_layers"), shape.layers)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        whole = model_from(HEADS[job.context.kind], config).eval()
        with torch.no_grad():
            for parameter in whole.parameters():  # zeros and ones, as norms begin, would be stored once for all
                parameter.add_(torch.randn_like(parameter), alpha=0.01)
    inner = shape.layers - 1
    heads = [*[range(shape.heads)] * inner, range(shape.last_heads)]
    neurons = [*[range(shape.neurons)] * inner, range(shape.last_neurons)]
    return without_units(whole, heads, neurons).eval()


def _file(job: Job[Any], model: Any, folder: Path) -> Path:
    """The model's fast graph, in int8 where the recipe ends in that."""
    from ...export.fast import build_fast
    from ...graphs.model_files import write_model

    folder.mkdir()
    path = folder / "model.onnx"
    graph = build_fast(model, kind=job.context.kind, pairs=job.context.task.spec.pairs)
    if graph is None:
        raise RuntimeError("a model without a fast graph is refused before")
    write_model(graph, path)
    spec = int8_of(job.plan.recipe)
    return path if spec is None else int8_like(spec, path, folder, tokens=model.config.vocab_size)


def read_of(spec: Quantize) -> dict[str, Any]:
    """What of `spec` the time and the size of its int8 file depend on, as JSON values."""
    if not quantizer_of(spec).smooths:
        return spec.model_dump(mode="json", include=_READ)
    return {**spec.model_dump(mode="json", include=_READ | {"outlier_splitting"}), "smoothed": True}


def int8_like(spec: Quantize, source: Path, folder: Path, *, tokens: int) -> Path:
    """`source`, the fp32 file of a model with so many `tokens` and random weights, in the int8 format of `spec`, for its time and size:
    a file in `folder`, its ranges from random texts, and smoothed wherever it may be, if the method smooths at all."""
    import onnx

    from ...quantize.int8_files import write_calibrated, write_largest
    from ...quantize.quantizer import Int8Job

    smooths = quantizer_of(spec).smooths
    method = "dynamic" if int8_format(spec, "int8") == "dynamic" else "smoothquant" if smooths else "static"
    plain = Quantize(method=method, calibration="minmax", **spec.model_dump(include=_READ | {"outlier_splitting"}))
    names = [each.name for each in onnx.load(source, load_external_data=False).graph.input]
    path, quantizer = folder / FILES["static"], quantizer_of(plain)
    job = Int8Job(quantizer, source, path, plain, quantizer.int8_format, feeds=[_feed(names, tokens)])
    write_largest(job) if smooths else write_calibrated(job, smooth=False)
    return path


def _feed(names: Sequence[str], tokens: int, shape: tuple[int, int] = (2, 16)) -> dict[str, np.ndarray]:
    """Random tokens [text, token]."""
    ids = np.random.default_rng(0).integers(tokens // 2, tokens, shape)
    values = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return {name: values.get(name, np.zeros_like(ids)) for name in names}


def _times(files: Sequence[Path], length: int, on_progress: Callable[[int, int], None]) -> list[float]:
    """CPU milliseconds of one text on one thread, in turns: of each file the first quartile, for what else runs only adds to a time."""
    sessions = [open_session(file, threads=1) for file in files]
    feed = [_feed([each.name for each in session.get_inputs()], _FEWEST_TOKENS, (1, length)) for session in sessions]
    found: list[list[float]] = []
    start = time.monotonic()
    while len(found) < _LEAST_ROUNDS or (len(found) < _MOST_ROUNDS and time.monotonic() < start + _SECONDS):
        found.append([_timed(*each) for each in zip(sessions, feed, strict=True)])
        on_progress(min(int(time.monotonic() - start), _SECONDS - 1), _SECONDS)
    on_progress(_SECONDS, _SECONDS)
    return np.quantile(found[_WARM_UP:], 0.25, axis=0).tolist()


def _timed(session: Any, feed: dict[str, np.ndarray]) -> float:
    """Of a run in a row of them, after others that bring the weights near: as of a model that runs alone."""
    for _ in range(_ROW):
        session.run(None, feed)
    start = time.process_time()
    for _ in range(_ROW):
        session.run(None, feed)
    return 1000 * (time.process_time() - start) / _ROW
