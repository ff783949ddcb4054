"""A question answering checkpoint as a torch program, for quantizers that work on one: start and end, and the way back to a
graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from family_teachers import reader_of
from plain_teachers import plain_reader

from compress.errors import CheckFailed
from compress.export.program import Program, read_program
from compress.models.features.named import logits_of
from compress.quantize.inc import _check_program
from compress.quantize.inc_tuning import Trial
from compress.quantize.node_selection import QuantizationPlan

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def program(family: str, folder: Path) -> Program:
    (plain_reader(family) if family == "xlnet" else reader_of(family)).save_pretrained(folder)
    return read_program(folder, INPUTS, 20, kind="span")


def feed(length: int = 9) -> dict[str, np.ndarray]:
    mask = (np.arange(length) < np.array([length, 5, 1])[:, None]).astype(np.int64)
    ids = np.random.default_rng(2).integers(7, 80, mask.shape)
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": (np.arange(length) > 3) * mask}


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_a_program_gives_start_and_end(family: str, tmp_path: Path) -> None:
    reader_program = program(family, tmp_path)
    tensors = [torch.from_numpy(feed()[name]) for name in reader_program.inputs]
    with torch.no_grad():
        outputs, logits = reader_program.module(*tensors), reader_program.logits(reader_program.module, tensors)
        inputs, model = dict(zip(reader_program.inputs, tensors, strict=True)), reader_program.traced.model
        expected = logits_of(model, model(**inputs), inputs["attention_mask"])
    assert [each.shape for each in outputs] == [(3, 9), (3, 9)]
    real = torch.from_numpy(feed()["attention_mask"]).bool()
    torch.testing.assert_close(logits[real], expected[real], rtol=0, atol=2e-6)  # fp32 sums in another order


def trial(reader_program: Program, folded: onnx.ModelProto) -> Any:
    return Trial(reader_program.module, folded, folded, QuantizationPlan((), (), (), ()), {})


@pytest.mark.slow
def test_the_graph_of_a_program_is_held_against_both_of_its_outputs(tmp_path: Path) -> None:
    reader_program = program("bert", tmp_path)
    graph = reader_program.graph(reader_program.module)
    assert [output.name for output in graph.graph.output] == ["start_logits", "end_logits"]
    _check_program(trial(reader_program, graph), reader_program, feed())
    (bias,) = [tensor for tensor in graph.graph.initializer if tensor.name == "qa_outputs.bias"]
    moved = onnx.numpy_helper.to_array(bias) + np.array([0, 1], np.float32)  # of the end only
    bias.CopyFrom(onnx.numpy_helper.from_array(moved, bias.name))
    with pytest.raises(CheckFailed, match=r"logits are 0\.5 from those of neural-compressor's program on average"):
        _check_program(trial(reader_program, graph), reader_program, feed())
