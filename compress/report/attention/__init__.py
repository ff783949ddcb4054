"""The attention of a teacher and its student side by side, as a page of its own."""

from __future__ import annotations

from pathlib import Path

from ...errors import CompressError
from ...files.atomic import write_text
from ..render import html
from .maps import AttentionMaps, ModelMaps, page_data, token_limit

__all__ = ["AttentionMaps", "ModelMaps", "check_attention_page", "token_limit", "write_attention"]
_MARK = b'<meta name="generator" content="compress attention">'


def write_attention(maps: AttentionMaps, out: Path) -> Path:
    """Write the page to the file `out`. Raises `CompressError` if it cannot be written, or is no page of this command."""
    check_attention_page(out)
    page = html("attention.html.j2", scripts=("page.js", "attention.js"), maps=maps, data=page_data(maps))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, page)
    except OSError as error:
        raise CompressError(f"{out}: cannot be written: {error.strerror}; choose another file with --out") from None
    return out


def check_attention_page(out: Path) -> None:
    """Raise `CompressError` if `out` is a folder, or a file that this command did not write."""
    if out.is_dir():
        raise CompressError(
            f"{out}: expected a file for the page, found a folder; name one in it, such as attention.html"
        )
    if out.exists() and _MARK not in out.read_bytes()[:4096]:
        raise CompressError(
            f"{out}: is no page of `compress attention` and is not replaced; choose another file with --out"
        )
