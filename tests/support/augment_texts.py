"""Words that are single tokens of the tests' tokenizer, and sentences made of them."""

from __future__ import annotations

import numpy as np

_CONTENT = (
    "good bad fine dull film movie story plot actor scene music song cat dog house river mountain city quick slow red "
    "green blue bright dark happy sad walks runs sleeps sings writes reads watches"
)
CONTENT = tuple(_CONTENT.split())
FUNCTION = ("the", "is", "not", "and", "very")


def sentences(count: int, words: int, seed: int = 0) -> list[str]:
    """Return `count` distinct texts of `words` content words each, mixed with tokens that are not content words."""
    rng = np.random.default_rng(seed)
    return [
        f"The {' '.join(rng.choice(CONTENT, words))}, {number} -- is not [MASK] a. 中文 é" for number in range(count)
    ]
