"""Which ONNX Runtime opens an ONNX file, judging by its opsets, its IR version and its operators."""

from __future__ import annotations

from dataclasses import dataclass

from .structure import Structure

# The first ONNX Runtime that supports an opset of the standard operators, and an IR version. Anything older than the oldest
# here is treated like it; nothing is known about anything newer than the newest.
_OPSETS = {18: "1.14", 19: "1.15", 20: "1.17", 21: "1.18", 22: "1.21", 23: "1.23"}
_IR_VERSIONS = {8: "1.14", 9: "1.15", 10: "1.18", 11: "1.23"}
# Operators (domain, name, first opset) that ONNX Runtime supported later than their opset.
_OPERATORS = {("", "QuantizeLinear", 23): "1.24", ("", "DequantizeLinear", 23): "1.24"}


@dataclass(frozen=True)
class Requirements:
    """`onnxruntime`: the oldest release that opens the file, such as "1.17"; None if the file is newer than the versions
    known here."""

    onnxruntime: str | None
    opset: int
    ir_version: int

    def __str__(self) -> str:
        return f"onnxruntime {self.onnxruntime} or later (opset {self.opset}, IR version {self.ir_version})"

    def allow(self, version: str) -> bool:
        """Whether `version` of ONNX Runtime opens the file, as far as is known."""
        return self.onnxruntime is None or version_number(self.onnxruntime) <= version_number(version)


def requirements(structure: Structure) -> Requirements:
    opset, ir_version = structure.opsets.get("", 0), structure.ir_version
    needed = [_first_version(_OPSETS, opset), _first_version(_IR_VERSIONS, ir_version)]
    kinds = {(call.domain, call.kind) for call in structure.calls}
    needed += [
        version for (domain, kind, since), version in _OPERATORS.items() if (domain, kind) in kinds and opset >= since
    ]
    known = [version for version in needed if version is not None]
    return Requirements(max(known, key=version_number) if len(known) == len(needed) else None, opset, ir_version)


def version_number(version: str) -> tuple[int, int]:
    """Return (1, 17) for "1.17", "1.17.3" or "1.17.0.dev2"."""
    major, minor, *_ = [*version.split("."), "0"]
    return int(major), int(minor)


def _first_version(table: dict[int, str], version: int) -> str | None:
    return None if version > max(table) else table[max(version, min(table))]
