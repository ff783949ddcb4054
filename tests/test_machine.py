from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compress import machine

X86 = "processor : 0\nmodel name : A CPU @ 2 GHz\nflags : fpu avx2 avx512f avx512_vnni avx512_bf16\n\nprocessor : 1\nflags : fpu\n"
ARM = "processor : 0\nCPU architecture: 8\nFeatures : fp asimd asimddp i8mm bf16\n"


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch):
    def choose(text: str) -> None:
        monkeypatch.setattr(machine, "_cpu", lambda: machine.parse_cpuinfo(text))

    return choose


def test_x86_flags_give_isa_and_vnni_and_fast_bf16(on) -> None:
    on(X86)
    assert machine.isa() == ("avx2", "avx512f", "avx512_vnni", "avx512_bf16")
    assert machine.has_vnni()
    assert not machine.fast_bf16()  # measured on an Intel CPU: two thirds of fp32's speed without AMX
    on(X86.replace("avx512_bf16", "avx512_bf16 amx_tile amx_bf16", 1))
    assert machine.fast_bf16()
    on(X86.replace("A CPU @ 2 GHz", "AMD EPYC"))
    assert machine.fast_bf16()  # measured: 1.6 times fp32's speed
    on(X86.replace("A CPU @ 2 GHz", "AMD EPYC").replace(" avx512_bf16", ""))
    assert not machine.fast_bf16()


def test_arm_features_are_read_from_their_own_line(on) -> None:
    on(ARM)
    assert machine.isa() == ("neon", "dotprod", "i8mm", "bf16")
    assert machine.has_vnni()


@pytest.mark.parametrize(
    ("architecture", "cpuinfo", "expected"),
    [
        ("x86_64", "flags : avx2 avx512f\n", True),
        ("AMD64", "flags : avx2\n", True),
        ("x86_64", X86, False),
        ("x86_64", "flags : avx2 avx_vnni\n", False),
        ("aarch64", "Features : asimd\n", False),
    ],
)
def test_what_saturates(on, monkeypatch: pytest.MonkeyPatch, architecture: str, cpuinfo: str, expected: bool) -> None:
    on(cpuinfo)
    monkeypatch.setattr(machine.platform, "machine", lambda: architecture)
    assert machine.saturates() is expected


def test_avx2_alone_has_neither(on) -> None:
    on("model name : Old\nflags : fpu avx avx2\n")
    assert machine.isa() == ("avx2",)
    assert not machine.has_vnni()
    assert not machine.fast_bf16()


@pytest.mark.parametrize(("files", "expected"), [
    ({"cpu.max": "150000 100000\n"}, 1.5),
    ({"cpu.max": "max 100000\n"}, float("inf")),
    ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, float("inf")),
    ({}, float("inf")),
])  # fmt: skip
def test_control_group_quota(tmp_path: Path, files: dict[str, str], expected: float) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine._quota(tmp_path) == expected


def test_usable_cores_follow_affinity_and_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(machine, "_physical", len)
    for quota, expected in ((float("inf"), 8), (2.5, 3), (0.2, 1), (64.0, 8)):
        monkeypatch.setattr(machine, "_quota", lambda quota=quota: quota)
        machine.usable_cores.cache_clear()
        assert machine.usable_cores() == expected
    machine.usable_cores.cache_clear()


@pytest.mark.parametrize(
    ("driver", "environment", "gpu", "expected"),
    [
        (False, {}, True, "fp32"),  # torch is not queried
        (True, {}, True, "bf16"),
        (True, {"CUDA_VISIBLE_DEVICES": "1"}, True, "bf16"),
        (True, {}, False, "fp32"),  # a GPU that would emulate it
        (True, {}, None, "fp32"),  # a driver, but no GPU that this torch uses: the CPU's rule
        (True, {"CUDA_VISIBLE_DEVICES": ""}, True, "fp32"),
        (True, {"CUDA_VISIBLE_DEVICES": "-1"}, True, "fp32"),
        (True, {"ACCELERATE_USE_CPU": "true"}, True, "fp32"),
    ],
)
def test_auto_is_what_the_device_that_trains_is_quick_in(
    on, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    driver: bool, environment: dict[str, str], gpu: bool | None, expected: str,
) -> None:  # fmt: skip
    on("model name : Old\nflags : fpu avx2\n")
    monkeypatch.setattr(machine, "_gpu_drivers", lambda: [tmp_path / "absent", tmp_path if driver else tmp_path / "no"])
    monkeypatch.setattr(machine, "_gpu_bf16", lambda: gpu)
    for name in ("CUDA_VISIBLE_DEVICES", "ACCELERATE_USE_CPU"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert machine.training_precision() == expected


def test_auto_on_a_cpu_beside_a_gpu_that_torch_does_not_use_is_the_cpus(on, monkeypatch: pytest.MonkeyPatch) -> None:
    on(X86.replace("A CPU @ 2 GHz", "AMD EPYC"))
    for gpu, expected in ((None, "bf16"), (False, "fp32"), (True, "bf16")):
        monkeypatch.setattr(machine, "has_gpu_driver", lambda: True)
        monkeypatch.setattr(machine, "_gpu_bf16", lambda gpu=gpu: gpu)
        assert machine.training_precision() == expected


@pytest.mark.parametrize("capability", [7, 8])
def test_a_gpu_that_would_emulate_bf16_has_none(monkeypatch: pytest.MonkeyPatch, capability: int) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    properties = type("Properties", (), {"major": capability})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert machine._gpu_bf16() is (capability >= 8)


def test_description_is_of_this_machine_and_needs_no_torch() -> None:
    code = (
        "import sys; from compress.machine import versions; from compress.results import Machine; m = Machine.here(); v = versions()\n"
        "assert m.cpu and m.cores >= 1 and m.memory_bytes > 2**20, m\n"
        "assert v['python'] and v['onnxruntime'], v\n"
        "assert not {'torch', 'onnxruntime', 'transformers', 'onnx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
