"""The child's side of each runtime: turn a file or folder into a function that runs it once.

A package is imported only by the runtime that needs it, so that peak memory is the model's, not this package's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import CompressError


@dataclass(frozen=True)
class Runner:
    """`prepare`: takes the number of tokens of each text and returns a function that runs this batch once; CompressError if the model
    cannot. `engine`: name and version of the runtime."""

    engine: str
    prepare: Callable[[Sequence[int]], Callable[[], object]]


def inputs(rows: Sequence[int], vocabulary: int) -> dict[str, np.ndarray]:
    """Return int64 [batch, longest] inputs of `rows` tokens each; shorter ones are padded with 0 and masked.

    Ids are random, to read the embedding table all over, as real text does.
    """
    ids = np.random.default_rng(0).integers(0, vocabulary, (len(rows), max(rows)))
    mask = (np.arange(max(rows)) < np.array(rows)[:, None]).astype(np.int64)
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def feed(path: Path, names: Sequence[str], known: dict[str, str], rows: Sequence[int]) -> dict[str, np.ndarray]:
    """Return the feed of a graph with inputs `names` and metadata `known`. CompressError: too long, or unknown inputs."""
    check_length(path, rows, int(known.get("max_length", max(rows))))
    full = inputs(rows, int(known.get("vocab_size", 100)))
    missing = sorted(set(names) - set(full))
    if missing:
        raise CompressError(f"{path}: expected the inputs {sorted(full)}, found also {missing}")
    return {name: full[name] for name in names}


def check_length(path: Path, rows: Sequence[int], longest: int) -> None:
    if max(rows) > longest:
        raise CompressError(f"{path}: takes at most {longest} tokens, asked for {max(rows)}; measure shorter shapes")


def onnx_runner(path: Path, threads: int) -> Runner:
    import onnxruntime

    from ..sessions.opening import open_session
    from ..sessions.outputs import wanted_outputs

    session = open_session(path, threads)
    known = session.get_modelmeta().custom_metadata_map
    names = [value.name for value in session.get_inputs()]
    # A graph for embeddings also outputs the hidden states, for tools that pool by themselves.
    outputs = wanted_outputs([value.name for value in session.get_outputs()])

    def prepare(rows: Sequence[int]) -> Callable[[], object]:
        batch = feed(path, names, known, rows)
        return lambda: session.run(outputs, batch)

    return Runner(f"onnxruntime {onnxruntime.__version__}", prepare)


def openvino_runner(path: Path, threads: int, precision: str) -> Runner:
    """Run a graph as `compress.runtime` does. CompressError: OpenVINO uses another precision than `precision`, as f32 for bf16 on a CPU
    without it."""
    from ..runtime.openvino import open_model

    opened = open_model(path, threads, precision)
    if opened.hint != precision:
        raise CompressError(
            f"{path}: OpenVINO runs it in {opened.hint} on this CPU, not in {precision}; use openvino-{opened.hint}"
        )
    request = opened.model.create_infer_request()
    names = [value.get_any_name() for value in opened.model.inputs]

    def prepare(rows: Sequence[int]) -> Callable[[], object]:
        batch = feed(path, names, opened.metadata, rows)
        return lambda: request.infer(batch)

    return Runner(f"{opened.version}, {precision}", prepare)


def torch_runner(path: Path, threads: int) -> Runner:
    """Run a checkpoint in eager fp32, as most people do before compression."""
    import torch

    from ..models.checkpoints.pretrained import load_pretrained
    from ..models.dimensions import read_config, usable_positions
    from ..models.heads import auto_class, head_named, without_pooler

    torch.set_num_threads(threads)
    config = read_config(path)
    longest, head = usable_positions(config), head_named(config.get("architectures") or ())
    model, _ = load_pretrained(auto_class(head), path, "a classifier", attention="eager")
    model = without_pooler(model, head)

    def prepare(rows: Sequence[int]) -> Callable[[], object]:
        check_length(path, rows, longest)
        batch = inputs(rows, model.config.vocab_size)
        ids, mask = (torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask"))

        def run() -> object:
            with torch.inference_mode():
                return model(input_ids=ids, attention_mask=mask)

        return run

    return Runner(f"torch {torch.__version__}, eager fp32", prepare)


RUNNERS: dict[str, Callable[[Path, int], Runner]] = {
    "onnx": onnx_runner,
    "openvino-f32": lambda path, threads: openvino_runner(path, threads, "f32"),
    "openvino-bf16": lambda path, threads: openvino_runner(path, threads, "bf16"),
    "torch": torch_runner,
}
# Imported before `load` starts its clock: the cost is per process, not per model.
IMPORTS = {
    "onnx": ("onnxruntime",),
    "openvino-f32": ("openvino",),
    "openvino-bf16": ("openvino",),
    "torch": ("torch", "transformers.models.auto.modeling_auto"),
}
