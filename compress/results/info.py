"""Checks of the notes on a training and on a quantized model that reports read.

These are not fields of a `TypedDict`: such fields would be read first, while pages show these in their place among the
others.
"""

from __future__ import annotations

from typing import Any, TypeGuard


def check_training(info: dict[str, Any]) -> dict[str, Any]:
    """Return the `info` of a stage. Raises `ValueError` for a score, a layer mix or thresholds that no report could show."""
    if info.get("tuning_score") is not None:
        _check_points(info, "tuning_score")
    mix = info.get("layer_mix", [0.0])
    if not isinstance(mix, list) or not mix or not all(map(_is_number, mix)):
        raise ValueError("`layer_mix`: expected numbers, one for each state")
    thresholds = info.get("thresholds") or {}
    if not isinstance(thresholds, dict) or not all(map(_is_number, thresholds.values())):
        raise ValueError("`thresholds`: expected a number for each label")
    return info


def check_fidelity(info: dict[str, Any]) -> dict[str, Any]:
    """Return the `info` of a model. Raises `ValueError` for a fidelity without the scores of both precisions."""
    fidelity = info.get("fidelity") or {}
    if not isinstance(fidelity, dict):
        raise ValueError("`fidelity`: expected a mapping")
    for name in ("fp32_tuning_score", "int8_tuning_score") if fidelity else ():
        _check_points(fidelity, name)
    return info


def _check_points(fields: dict[str, Any], name: str) -> None:
    value: object = fields.get(name)
    if not _is_number(value) or not -100 <= value <= 100:
        raise ValueError(f"`{name}`: expected points, a number from -100 to 100")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
