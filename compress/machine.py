"""The machine on which figures are measured: CPU, vector extensions, usable cores, memory, library versions."""

from __future__ import annotations

import math
import os
import platform
from functools import cache
from pathlib import Path

# Name shown -> its flags in kernels and operating systems.
ISA = {
    "avx2": {"avx2"},
    "avx512f": {"avx512f"},
    "avx_vnni": {"avx_vnni"},
    "avx512_vnni": {"avx512_vnni", "avx512vnni"},
    "avx512_bf16": {"avx512_bf16"},
    "amx_int8": {"amx_int8"},
    "amx_bf16": {"amx_bf16"},
    "neon": {"asimd", "neon"},
    "dotprod": {"asimddp"},
    "i8mm": {"i8mm"},
    "bf16": {"bf16"},
    "sve": {"sve"},
}
MOST_THREADS = 1024  # that a command or a call may ask for: each takes memory
# Extensions that sum int8 products without saturation.
EXACT_INT8 = frozenset({"avx_vnni", "avx512_vnni", "amx_int8", "dotprod", "i8mm"})
PACKAGES = (
    "bert-compress", "torch", "transformers", "onnx", "onnxscript", "onnxruntime", "tokenizers", "numpy",
    "safetensors", "datasets", "accelerate", "pydantic", "neural-compressor", "torchao",
)  # fmt: skip

# FLOP/s of dense bf16 matmuls, by the driver's name of the GPU. From NVIDIA's data sheets of H100 SXM and H200 (1,979e12 with
# sparsity, which is twice as much), A100 (312e12) and L4 (242e12 with sparsity).
BF16_PEAKS = {
    "NVIDIA H100 80GB HBM3": 989.5e12,
    "NVIDIA H200": 989.5e12,
    "NVIDIA A100-SXM4-40GB": 312e12,
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA A100-PCIE-40GB": 312e12,
    "NVIDIA A100 80GB PCIe": 312e12,
    "NVIDIA L4": 121e12,
}


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Return (model name, flags) of the first processor in Linux's /proc/cpuinfo; x86 `flags`, Arm `Features`."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    flags = fields.get("flags") or fields.get("features") or ""
    return fields.get("model name") or fields.get("cpu model") or "", frozenset(flags.split())


@cache
def _cpu() -> tuple[str, frozenset[str]]:
    """Return (name, flags). py-cpuinfo starts processes and takes a second, so it is used only if /proc has no flags."""
    cpuinfo = Path("/proc/cpuinfo")
    name, flags = parse_cpuinfo(cpuinfo.read_text()) if cpuinfo.is_file() else ("", frozenset[str]())
    if not flags:
        try:
            from cpuinfo import get_cpu_info
        except ImportError:
            pass
        else:
            info = get_cpu_info()
            name, flags = info.get("brand_raw", ""), frozenset(info.get("flags", ()))
    return name or platform.processor() or platform.machine(), flags


def _physical(processors: set[int]) -> int:
    """Count the distinct cores among logical processors: two hyper-threads of one core share its arithmetic."""
    topology = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    siblings = {Path(topology.format(number)) for number in processors}
    if not all(path.is_file() for path in siblings):
        return len(processors)
    return len({path.read_text().strip() for path in siblings})


def _quota(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Return the CPUs that the control group grants (version 2, then 1); infinity if there is no limit."""
    try:
        if (root / "cpu.max").is_file():
            limit, period = (root / "cpu.max").read_text().split()
        else:
            limit = (root / "cpu/cpu.cfs_quota_us").read_text()
            period = (root / "cpu/cpu.cfs_period_us").read_text()
        return int(limit) / int(period) if int(limit) > 0 else math.inf
    except (OSError, ValueError):
        return math.inf


@cache
def usable_cores() -> int:
    """Physical cores that this process may use: affinity and the control group's quota, at least 1."""
    everything = os.cpu_count() or 1
    cores = _physical(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else everything
    return max(1, math.ceil(min(cores, _quota())))


def cpu_name() -> str:
    """The processor as it names itself, e.g. "AMD EPYC"."""
    return _cpu()[0]


def isa() -> tuple[str, ...]:
    """The vector extensions that matter to int8 and bf16 speed, e.g. ("avx2", "avx512_vnni")."""
    flags = _cpu()[1]
    return tuple(name for name, spellings in ISA.items() if spellings & flags)


def has_vnni() -> bool:
    """Whether the CPU computes exact U8S8 products in one instruction. Without it int8 gains less, and AVX2 sums pairs with
    16-bit saturation: full-range weights can clip (spec `reduce_range`)."""
    return bool(EXACT_INT8 & set(isa()))


def saturates() -> bool:
    """Whether int8 kernels of this CPU may clip a sum of two products at 16 bits: x86 without VNNI."""
    return platform.machine().lower() in ("x86_64", "amd64") and not has_vnni()


def fast_bf16() -> bool:
    """Whether training in bf16 is faster than in fp32: with matrix units, AMX or Arm's, and with AVX512-BF16 on an AMD CPU
    (Zen 4 and later). AVX512-BF16 alone trained at two thirds of fp32's speed on an Intel CPU, and at 1.6 times on an AMD
    one (reports/speed.md); with none of them bf16 is emulated."""
    name, units = cpu_name(), set(isa())
    return bool({"amx_bf16", "bf16"} & units) or ("avx512_bf16" in units and name.startswith("AMD"))


def training_precision() -> str:
    """Return the precision of `auto`: bf16 if the training device, a GPU if torch has one, is fast in it; else fp32.

    torch is imported only if there is a GPU driver.
    """
    gpu = _gpu_bf16() if has_gpu_driver() else None
    return "bf16" if (fast_bf16() if gpu is None else gpu) else "fp32"


def has_gpu_driver() -> bool:
    """Whether the machine has an NVIDIA driver and nothing hides its GPUs from this process. Imports nothing."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1", "NoDevFiles"):
        return False
    if os.environ.get("ACCELERATE_USE_CPU", "").lower() in ("1", "true", "yes", "on", "y", "t"):
        return False
    return any(path.exists() for path in _gpu_drivers())


def training_gpu() -> str | None:
    """Return the driver's name of the GPU that trains, or "a GPU" if it gives none; None for the CPU, also beside a GPU that torch does
    not see, as its CPU build does not. torch is imported only if there is a GPU driver."""
    return (gpu_name() or "a GPU") if has_gpu_driver() and _gpu_bf16() is not None else None


def _gpu_drivers() -> list[Path]:
    """Return the paths that show a driver: on Linux, in its containers, under WSL, on Windows."""
    windows = Path(os.environ.get("SYSTEMROOT", "/nonexistent")) / "System32" / "nvcuda.dll"
    return [Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"), windows]


def _gpu_bf16() -> bool | None:
    """Whether the GPU that torch trains on computes bf16 itself; None if torch has none."""
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.cuda.is_bf16_supported(including_emulation=False)


def cuda_of_torch() -> str | None:
    """Return the CUDA version that torch was built for, e.g. "13.0"; None for a build without CUDA. Imports torch."""
    import torch

    return torch.version.cuda


@cache
def gpu_name() -> str | None:
    """The first NVIDIA GPU as its driver names it, without importing torch."""
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in information.read_text().splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return None


@cache
def memory_bytes() -> int:
    """Return the memory of the whole machine."""
    import psutil

    return psutil.virtual_memory().total


def operating_system() -> str:
    """Name and release, e.g. "Linux 6.8.0"."""
    return f"{platform.system()} {platform.release()}"


def versions() -> dict[str, str]:
    """Return the installed versions from the packages' metadata, read once; nothing is imported."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    package_versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            package_versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return package_versions
