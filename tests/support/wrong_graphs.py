"""Ends of the fast graph that compute something else than the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from compress.export.fast.heads import GraphHead


def wrong_head(head: GraphHead, part: str, *, unpadded: bool) -> GraphHead:
    """`head` whose last layer, or whose logits where `part` is `head`, are larger by a hundredth in one of the two forms."""

    def wrong(right: Callable[..., str]) -> Callable[..., str]:
        def write(*parts: Any) -> str:
            made, writer = right(*parts), parts[0]
            if unpadded != (type(parts[-1]).__name__ == "Unpadded"):
                return made
            return writer.op("Mul", [made, writer.weight("wrong", np.array(1.01, np.float32))], "wrong")

        return write

    field = "logits" if part == "head" else "last_attention"
    return replace(head, **{field: wrong(getattr(head, field))})
