"""`compress bench` with ONNX files in OpenVINO."""

from __future__ import annotations

import openvino
import pytest

from compress.bench import AGAIN, BenchSpec, measure
from compress.bench.candidates import find_candidates
from compress.bench.runners import openvino_runner
from compress.errors import CompressError

pytestmark = pytest.mark.end_to_end


def test_it_is_measured_beside_onnx_runtime_and_says_its_precision(tiny_onnx) -> None:
    path = tiny_onnx("bert")
    runtimes = measure(find_candidates([str(path), f"openvino-f32:{path}"]), BenchSpec(((2, 8),), (3, 5), runs=2))
    onnx, other, _ = runtimes
    assert list(runtimes) == [onnx, f"openvino-f32:{onnx}", AGAIN]
    assert runtimes[other].engine == f"openvino {openvino.__version__.split('-')[0]}, f32"
    assert [row.runs for row in runtimes[other].latency] == [2, 2]


def test_a_precision_that_the_cpu_lacks_is_refused(tiny_onnx) -> None:
    capabilities = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if "BF16" in capabilities:
        assert openvino_runner(tiny_onnx("bert"), 1, "bf16").engine.endswith(", bf16")
    else:
        with pytest.raises(CompressError, match="OpenVINO runs it in f32 on this CPU, not in bf16; use openvino-f32"):
            openvino_runner(tiny_onnx("bert"), 1, "bf16")


def test_the_model_s_limit_is_read_there_too(tiny_onnx) -> None:
    with pytest.raises(CompressError, match="takes at most 24 tokens, asked for 25"):
        openvino_runner(tiny_onnx("bert"), 1, "f32").prepare([25])
