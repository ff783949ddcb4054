"""The graph that a classifier needs and no more, written from the checkpoint's weights.

Written, not rewritten: the exporter's graph differs by family and by release in what a rewrite must find, while the
weights of all families have the same few parts. What every family gets is then one small function each.
"""

from __future__ import annotations

from .building import build_fast, has_layers
from .comparing import first_difference

__all__ = ["build_fast", "first_difference", "has_layers"]
