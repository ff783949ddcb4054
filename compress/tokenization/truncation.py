"""The side on which a tokenizer cuts long texts. The tokenizer itself carries it, so that its copies cut on the same side."""

from __future__ import annotations

import tokenizers

_WHOLE = 1 << 30  # tokens; no text is cut


def set_truncation_side(tokenizer: tokenizers.Tokenizer, side: str) -> None:
    """Have the tokenizer cut no text, and carry the side, `left` or `right`, on which copies cut texts (`truncation_side`)."""
    if side == "left":
        tokenizer.enable_truncation(_WHOLE, direction=side)
    else:
        tokenizer.no_truncation()


def untruncated(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return the tokenizer without truncation; a copy, unless it has none."""
    if tokenizer.truncation is None:
        return tokenizer
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_truncation()
    return own
