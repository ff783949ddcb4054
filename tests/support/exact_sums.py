"""Weights whose int8 sums are exact on the CPU at hand, for tests of what quantization costs apart from saturation."""

from __future__ import annotations

from typing import Any

from compress.machine import saturates

# A CPU without VNNI adds two products of 8 bits each in 16, which may overflow; with weights of 7 bits it cannot.
EXACT_SUMS: dict[str, Any] = {"reduce_range": saturates()}
