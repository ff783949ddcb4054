"""Damaged bundles for the fuzzer: the damage depends only on the seed and the case's number."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mutations
import onnx

from compress.bundle.document import BundleInfo, write_bundle
from compress.bundle.files import measure
from compress.errors import CompressError
from compress.graphs.model_files import get_metadata, set_metadata
from compress.runtime import Classifier

DOCUMENTS = ("bundle.json", "config.json", "tokenizer.json", "tokenizer_config.json")
GRAPHS = ("onnx/model.onnx", "onnx/model_quantized.onnx")
TEXTS = ["a text", "another with more words than that"]
LONGEST = 5_000  # characters in an error message


def cases(whole: Path, seed: int, count: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield (what was changed, file name, new bytes) for damaged copies of the bundle in `whole`."""
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        name = rng.choice((*DOCUMENTS, *GRAPHS, *GRAPHS))
        data = (whole / name).read_bytes()
        if name in GRAPHS and rng.random() < 0.7:
            description, changed = _graph(data, rng)
        elif name in DOCUMENTS and rng.random() < 0.7:
            description, document = next(mutations.documents(json.loads(data), rng.getrandbits(32), 1))
            changed = _text(document)
        else:
            description, changed = next(mutations.bytes_(data, rng.getrandbits(32), 1))
        yield f"{seed}/{number}: {name}: {description}", name, changed


def _text(document: Any) -> bytes:
    return json.dumps(document).encode()


def _graph(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Damage the parsed graph: its names, operators, attributes, types, weights or metadata."""
    model = onnx.load_from_string(data)
    changes = [rng.choice(_CHANGES) for _ in range(rng.choice((1, 1, 2)))]
    for change in changes:
        change(model, rng)
    return ", ".join(change.__name__.strip("_") for change in changes), model.SerializeToString()


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    outputs = [name for node in graph.node for name in node.output]
    return ["", *outputs, *(one.name for one in (*graph.input, *graph.initializer)), "unknown"]


def _rewire(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(_names(model))


def _more_inputs(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.graph.node).input.append(rng.choice(_names(model)))


def _fewer_inputs(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    del node.input[rng.randrange(len(node.input) + 1) :]


def _other_output(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.graph.node).output[0] = rng.choice(_names(model))


def _other_kind(model: onnx.ModelProto, rng: random.Random) -> None:
    kinds = [schema.name for schema in onnx.defs.get_all_schemas()]
    rng.choice(model.graph.node).op_type = rng.choice((*kinds, "Sum", "Concat", "Loop", "Scan", "NoSuch", ""))


def _other_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    value: Any = rng.choice((0, -1, 2**62, 1.5, "text", [1, -(2**62)], [0.5], ["a"], [2**40] * 3))
    name = rng.choice(("axis", "to", "axes", "keepdims", "alpha", "perm", "epsilon", "body"))
    rng.choice(model.graph.node).attribute.append(onnx.helper.make_attribute(name, value))


def _other_version(model: onnx.ModelProto, rng: random.Random) -> None:
    model.opset_import[0].version = rng.choice((-1, 0, 1, 7, 13, 19, 99, 2**62))


def _other_shape(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = rng.choice(model.graph.initializer)
    tensor.dims[:] = rng.choice(
        ([], [0], [-1], [2**40, 2**40], [1], [2**62], [*tensor.dims, 1], list(tensor.dims)[::-1])
    )


def _other_type(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.graph.initializer).data_type = rng.choice((0, 1, 3, 6, 7, 8, 9, 10, 16, 21, 99))


def _other_content(model: onnx.ModelProto, rng: random.Random) -> None:
    tensor = rng.choice(model.graph.initializer)
    tensor.raw_data = next(mutations.bytes_(tensor.raw_data, rng.getrandbits(32), 1))[1]


def _other_input(model: onnx.ModelProto, rng: random.Random) -> None:
    value = rng.choice((*model.graph.input, *model.graph.output))
    value.type.tensor_type.elem_type = rng.choice((0, 1, 6, 7, 8, 99))
    if rng.random() < 0.5:
        value.name = rng.choice(_names(model))


def _shuffled(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _dropped(model: onnx.ModelProto, rng: random.Random) -> None:
    held = rng.choice((model.graph.node, model.graph.initializer, model.graph.input, model.graph.output))
    if held:
        del held[rng.randrange(len(held))]


def _doubled(model: onnx.ModelProto, rng: random.Random) -> None:
    held: Any = rng.choice((model.graph.node, model.graph.initializer, model.graph.input, model.graph.output))
    if held:
        held.append(rng.choice(list(held)))


def _inside(model: onnx.ModelProto, rng: random.Random) -> None:
    attribute = onnx.helper.make_attribute(rng.choice(("body", "then_branch", "else_branch")), model.graph)
    rng.choice(model.graph.node).attribute.append(attribute)


def _said(model: onnx.ModelProto, rng: random.Random) -> None:
    said = get_metadata(model)
    key = rng.choice(("labels", "quantization", "weights_sha256", "kind"))
    set_metadata(model, said | {key: rng.choice(("", "null", "[1]", "{", '{"format": []}', "[" * 5000, "k" * 100_000))})


_CHANGES = (
    *(_rewire, _rewire, _more_inputs, _fewer_inputs, _other_output, _other_kind, _other_kind, _other_attribute),
    *(_other_version, _other_shape, _other_type, _other_content, _other_input, _shuffled, _dropped, _doubled),
    *(_inside, _said),
)


def damaged(whole: Path, folder: Path, info: BundleInfo, name: str, data: bytes) -> None:
    """Fill `folder` with a copy of the bundle `whole` with one file changed; re-sealed unless that file is bundle.json."""
    for other in (*DOCUMENTS, *GRAPHS):
        shutil.copyfile(whole / other, folder / other)
    (folder / name).write_bytes(data)
    if name != "bundle.json":
        write_bundle(info.model_copy(update={"files": measure(folder)}), folder)


def answer(folder: Path, name: str) -> str | None:
    """Return the error that `predict` raises, or None. Any exception but `CompressError` passes through."""
    try:
        precision = "fp32" if name == "onnx/model.onnx" else None
        Classifier(folder, threads=1, precision=precision).predict(TEXTS, tokens=512)
    except CompressError as error:
        return str(error)
    return None
