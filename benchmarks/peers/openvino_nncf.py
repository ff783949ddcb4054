"""OpenVINO with NNCF's post-training int8, fp32 and, with its precision hint, bf16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from heads import side_by_side
from inputs import padded, ragged_lengths

ENVIRONMENT = "openvino"
PACKAGES = ("openvino", "nncf")
VARIANTS = {
    "OpenVINO int8": "convert_model of the plain ONNX file, nncf.quantize(model_type=TRANSFORMER), run in fp32 between",
    "OpenVINO fp32": "convert_model of the plain ONNX file, not quantized",
    "OpenVINO int8 bf16": "as `OpenVINO int8`, run with INFERENCE_PRECISION_HINT=bf16 between, OpenVINO's default on such a CPU",
    "OpenVINO bf16": "as `OpenVINO fp32`, run with INFERENCE_PRECISION_HINT=bf16",
}
NEEDS_BF16 = ("OpenVINO int8 bf16", "OpenVINO bf16")
_CALIBRATION = 96  # sequences


def convert(variant: str, model: Path, out: Path) -> None:
    import nncf  # pyright: ignore[reportMissingImports]
    import openvino  # pyright: ignore[reportMissingImports]

    source = openvino.convert_model(model / "plain/model.onnx")
    if "int8" in variant:
        names = [port.get_any_name() for port in source.inputs]
        dataset = nncf.Dataset([_feed(names, *_sample(length)) for length in ragged_lengths(_CALIBRATION)])
        source = nncf.quantize(source, dataset, model_type=nncf.ModelType.TRANSFORMER, subset_size=_CALIBRATION)
    openvino.save_model(source, out / "model.xml", compress_to_fp16=False)


def load(variant: str, out: Path, threads: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return compiled(out / "model.xml", threads, "bf16" if variant in NEEDS_BF16 else "f32")


def compiled(path: Path, threads: int, precision: str = "f32") -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function from ids and mask to logits. Raises RuntimeError if OpenVINO uses another precision than requested."""
    import openvino  # pyright: ignore[reportMissingImports]

    core = openvino.Core()
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}
    hints["INFERENCE_PRECISION_HINT"] = precision  # always set: on a CPU with bf16 the default is bf16
    model = core.compile_model(path, "CPU", hints)
    taken = model.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    if taken != precision:
        raise RuntimeError(f"OpenVINO runs it in {taken} on this CPU, not in {precision}")
    names = [port.get_any_name() for port in model.inputs]
    request = model.create_infer_request()

    def predict(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        return side_by_side([*request.infer(_feed(names, ids, mask)).values()])

    return predict


def _sample(length: int) -> tuple[np.ndarray, np.ndarray]:
    batch = padded([length], seed=length)
    return batch.ids, batch.mask


def _feed(names: list[str], ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
    full = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return {name: full[name] for name in names}
