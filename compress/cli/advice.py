"""Combinations of hardware and versions that are known to be slow or wrong."""

from __future__ import annotations

from ..machine import cuda_of_torch, has_gpu_driver, saturates, training_gpu, training_precision, usable_cores, versions

# Older versions have a known vulnerability, or fail in a code path that we use.
FLOORS = {"torch": (2, 11), "transformers": (5, 17), "onnx": (1, 23), "onnxruntime": (1, 30)}


def advice() -> list[str]:
    """Return one line per piece of advice for this machine; empty if there is none."""
    lines = []
    if saturates():
        lines.append(
            "this CPU has no VNNI: int8 matmuls gain less speed, and sums of two products can saturate at 16 "
            "bits; `compress verify` counts such sums and compares answers, and --set quantize.avx2=true adds a "
            "file that cannot saturate"
        )
    if has_gpu_driver() and training_gpu() is None:
        lines.append(
            f"this machine has a GPU driver, but torch {versions()['torch']} sees no GPU: training uses the CPU; to train on "
            f"an NVIDIA GPU, {_gpu_remedy(cuda_of_torch())}"
        )
    if training_precision() == "fp32":
        lines.append("this machine does not compute bf16 quickly: --precision bf16 trains more slowly than fp32 here")
    if usable_cores() < 2:
        lines.append(
            "one usable core: training will be slow, and latency measurements share it with everything else that runs"
        )
    for name, floor in FLOORS.items():
        version = versions().get(name)
        if version and _version_numbers(version) < floor:
            lines.append(
                f"{name} {version} is older than {'.'.join(map(str, floor))}, the oldest that is known to work"
            )
    return lines


def _gpu_remedy(cuda: str | None) -> str:
    """Return what lets torch see the GPU. `cuda`: the version that torch was built for, if any."""
    if cuda is None:
        return "install PyTorch's CUDA build"
    return f"update the driver to one for CUDA {cuda}, or install PyTorch's build for an older CUDA"


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2] if part.isdigit())
