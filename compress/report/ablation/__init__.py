"""What each part of a recipe is worth: the runs of an ablation -> ablation.md, .html, .svg and .json."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import CompressError
from .. import write_text
from .compare import Ablation, ablation_document, ablation_of
from .page import findings, html_ablation, markdown_ablation, page_of
from .plot import picture
from .tables import ablation_table

__all__ = ["Ablation", "ablation_document", "ablation_of", "ablation_table", "findings", "write_ablation"]


def write_ablation(ablation: Ablation, out: Path) -> list[Path]:
    """Write `ablation.md`, `ablation.html`, `ablation.svg` and `ablation.json` to `out`. The same runs, the same bytes.

    Raises `CompressError` where `out` cannot be written.
    """
    page, plot = page_of(ablation), picture(ablation)
    texts = {
        "ablation.md": markdown_ablation(page),
        "ablation.html": html_ablation(page, plot),
        "ablation.svg": plot + "\n",
        "ablation.json": json.dumps(ablation_document(ablation), indent=1, ensure_ascii=False) + "\n",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(out / name, text)
    except OSError as error:
        raise CompressError(f"{out}: cannot be written: {error.strerror}; choose another with --report") from None
    return [out / name for name in texts]
