"""A graph with only what a classifier needs, written from the checkpoint's weights.

It is written, not rewritten: the exporter's graph, which a rewrite must match, differs by family and by release, while the
weights of all families have the same few parts. An optimization for every family is then one small function.
"""

from __future__ import annotations

from .building import build_fast, has_layers
from .first_difference import first_difference

__all__ = ["build_fast", "first_difference", "has_layers"]
