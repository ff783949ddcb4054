"""Heads of the fast graph that compute something else than the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from compress.export.fast.heads import GraphHead


def wrong_head(head: GraphHead, part: str, *, unpadded: bool) -> GraphHead:
    """Return `head` with one part scaled by 1.01 in one of the two forms: its logits if `part` is `head`, else its last layer."""

    def wrong(right: Callable[..., str]) -> Callable[..., str]:
        def write(*parts: Any) -> str:
            output, writer = right(*parts), parts[0]
            if unpadded != (type(parts[-1]).__name__ == "Unpadded"):
                return output
            return writer.op("Mul", [output, writer.weight("wrong", np.array(1.01, np.float32))], "wrong")

        return write

    field = "logits" if part == "head" else "last_attention"
    return replace(head, **{field: wrong(getattr(head, field))})
