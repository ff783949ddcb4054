"""A graph that refers to forbidden weights, however and wherever it does, is refused in one line by both readers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import onnx
import pytest
from bundle_making import failed, reseal
from default_suite import keeping
from onnx import AttributeProto, GraphProto, ModelProto, SparseTensorProto, TensorProto, helper

from compress.bundle import verify
from compress.errors import CompressError
from compress.runtime import Classifier

BESIDE = "model_quantized.onnx"  # an existing file
BEYOND = 10**15
ESCAPES: dict[str, dict[str, object]] = {
    "absolute": {"location": "{outside}/secret.bin"},
    "absolute device": {"location": "/dev/zero"},
    "parent": {"location": "../../secret.bin"},
    "parent in the middle": {"location": "sub/../../../secret.bin"},
    "parent alone": {"location": ".."},
    "link": {"location": "link.bin"},
    "linked folder": {"location": "linked/secret.bin"},
    "linked device": {"location": "zero.bin"},
    "pipe": {"location": "pipe.bin"},
    "folder": {"location": "sub"},
    "this folder": {"location": "."},
    "missing": {"location": "none.bin"},
    "address": {"location": "https://example.org/secret.bin"},
    "file address": {"location": "file:///etc/passwd"},
    "windows": {"location": "..\\..\\secret.bin"},
    "no name": {"location": ""},
    "NUL": {"location": "model.onnx\0.bin"},
    "memory": {"location": "*/_ORT_MEM_ADDR_/*"},
    "too long": {"location": "k" * 100_000},
    "no location": {"offset": 0, "length": 16},
    "huge offset": {"location": BESIDE, "offset": BEYOND, "length": 16},
    "huge length": {"location": BESIDE, "offset": 0, "length": BEYOND},
    "overflowing": {"location": BESIDE, "offset": 2**63 - 1, "length": 2**63 - 1},
    "wrapped": {"location": BESIDE, "offset": 2**64 - 8, "length": 16},
    "negative offset": {"location": BESIDE, "offset": -16, "length": 16},
    "negative length": {"location": BESIDE, "offset": 0, "length": -16},
    "no number": {"location": BESIDE, "offset": "0x10", "length": "1e3"},
}


def _external(said: Mapping[str, object]) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in said.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _constant(tensor: TensorProto) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["unused"], value=tensor)


def _graph(tensor: TensorProto) -> GraphProto:
    return helper.make_graph([_constant(tensor)], "inner", [], [helper.make_tensor_value_info("unused", 1, [4])])


def _sparse(values: TensorProto, indices: TensorProto) -> SparseTensorProto:
    return SparseTensorProto(values=values, indices=indices, dims=[4])


def _branch(graph: GraphProto) -> onnx.NodeProto:
    return helper.make_node("If", ["condition"], ["branched"], then_branch=graph, else_branch=graph)


def _in_a_function(model: ModelProto, tensor: TensorProto) -> None:
    opset = [helper.make_opsetid("", 20)]
    model.functions.append(helper.make_function("own", "F", [], ["unused"], [_constant(tensor)], opset))


def _as_default(model: ModelProto, tensor: TensorProto) -> None:
    _in_a_function(model, TensorProto(name="plain"))
    model.functions[0].attribute_proto.append(helper.make_attribute("value", tensor))


def _in_a_list(model: ModelProto, tensor: TensorProto) -> None:
    attribute = AttributeProto(name="values", type=AttributeProto.TENSORS, tensors=[tensor])
    model.graph.node[0].attribute.append(attribute)


def _in_graphs(model: ModelProto, tensor: TensorProto) -> None:
    attribute = AttributeProto(name="graphs", type=AttributeProto.GRAPHS, graphs=[_graph(tensor)])
    model.graph.node[0].attribute.append(attribute)


PLACES: dict[str, Callable[[ModelProto, TensorProto], object]] = {
    "initializer": lambda model, tensor: model.graph.initializer.append(tensor),
    "constant": lambda model, tensor: model.graph.node.append(_constant(tensor)),
    "list": _in_a_list,
    "branch": lambda model, tensor: model.graph.node.append(_branch(_graph(tensor))),
    "branch in a branch": lambda model, tensor: model.graph.node.append(
        _branch(helper.make_graph([_branch(_graph(tensor))], "outer", [], []))
    ),
    "graphs": _in_graphs,
    "function": _in_a_function,
    "default": _as_default,
    "sparse values": lambda model, tensor: model.graph.sparse_initializer.append(_sparse(tensor, TensorProto())),
    "sparse indices": lambda model, tensor: model.graph.sparse_initializer.append(_sparse(TensorProto(), tensor)),
    "training": lambda model, tensor: model.training_info.add().algorithm.CopyFrom(_graph(tensor)),
}


@pytest.fixture
def outside(bundle: Path) -> Path:
    """Create the targets of the escapes: a folder beside the bundle with a file that could serve as weights."""
    folder = bundle.parent
    (folder / "secret.bin").write_bytes(bytes(64))
    graphs = bundle / "onnx"
    (graphs / "sub").mkdir()
    (graphs / "link.bin").symlink_to(folder / "secret.bin")
    (graphs / "linked").symlink_to(folder)
    (graphs / "zero.bin").symlink_to("/dev/zero")
    os.mkfifo(graphs / "pipe.bin")
    return folder


def test_there_are_as_many_cases_as_were_promised() -> None:
    assert len(ESCAPES) * len(PLACES) >= 104


@pytest.mark.parametrize("place", PLACES)
def test_every_escape_from_every_place_is_one_line(bundle: Path, outside: Path, place: str) -> None:
    path = bundle / "onnx" / "model.onnx"
    whole = onnx.load(str(path))
    for name, escape in ESCAPES.items():
        model, said = ModelProto(), {key: str(value).format(outside=outside) for key, value in escape.items()}
        model.CopyFrom(whole)
        PLACES[place](model, _external(said))
        path.write_bytes(model.SerializeToString())
        with pytest.raises(CompressError, match="external data") as caught:
            Classifier(bundle, precision="fp32", verify=False)
        message = str(caught.value)
        assert message.startswith(str(path)), name
        assert "\n" not in message, name
        assert len(message) < 1000, name


@pytest.mark.parametrize("place", keeping(PLACES, ("initializer", "constant", "branch", "function")))
def test_verify_refuses_them_too(bundle: Path, place: str) -> None:
    """Without the links and pipes of this folder, which fail before any graph is read."""
    path = bundle / "onnx" / "model.onnx"
    whole = onnx.load(str(path))
    for name, escape in ESCAPES.items():
        model, said = ModelProto(), {key: str(value).format(outside=bundle.parent) for key, value in escape.items()}
        model.CopyFrom(whole)
        PLACES[place](model, _external(said))
        path.write_bytes(model.SerializeToString())
        reseal(bundle)
        failures = failed(verify(bundle))
        assert list(failures) == ["onnx fp32"], name
        assert "external data" in failures["onnx fp32"], name
        assert "\n" not in failures["onnx fp32"], name
