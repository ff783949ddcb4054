"""The contribution of each part of a recipe: the runs of an ablation -> ablation.md, .html, .svg and .json."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import CompressError
from ...files.atomic import write_text
from ...results import ABLATION, PER_EXAMPLE
from ..grouping.predictions import write_answers
from .compare import Ablation, ablation_document, ablation_of
from .page import findings, guesses, html_ablation, markdown_ablation, page_of
from .plot import picture
from .tables import ablation_table

__all__ = [
    "Ablation", "ablation_document", "ablation_of", "ablation_table", "check_ablation_folder", "findings", "guesses",
    "write_ablation",
]  # fmt: skip
NAMES = ("ablation.md", "ablation.html", "ablation.svg", ABLATION)


def write_ablation(ablation: Ablation, out: Path) -> list[Path]:
    """Write `ablation.md`, `ablation.html`, `ablation.svg` and `ablation.json` to `out`, and the runs' answers to the reported examples as
    `per_example.npz`. The same runs give the same bytes.

    Raises `CompressError` if `out` cannot be written, or has files of these names that are not ours.
    """
    check_ablation_folder(out)
    page, plot = page_of(ablation), picture(ablation)
    document = json.dumps(ablation_document(ablation), indent=1, ensure_ascii=False)
    texts = dict(
        zip(NAMES, (markdown_ablation(page), html_ablation(page, plot), plot + "\n", document + "\n"), strict=True)
    )
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_answers(ablation.results, ablation.folders, out / PER_EXAMPLE)
        for name, text in texts.items():
            write_text(out / name, text)
    except OSError as error:
        raise CompressError(f"{out}: cannot be written: {error.strerror}; choose another with --report") from None
    return [out / name for name in (*texts, PER_EXAMPLE)]


def check_ablation_folder(out: Path) -> None:
    """Raise `CompressError` if an ablation's pages in `out` would replace a file that is not an ablation's."""
    page = out / NAMES[0]
    if page.is_file() and b"```sh\ncompress ablate " in page.read_bytes():  # the command that every such page has
        return
    file_name = next((name for name in (*NAMES, PER_EXAMPLE) if (out / name).exists()), None)
    if file_name is not None:
        raise CompressError(
            f"{out / file_name}: is no ablation of this tool's and is not replaced; choose another folder with --report"
        )
