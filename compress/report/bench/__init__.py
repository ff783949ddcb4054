"""Measurements of `compress bench` -> bench.md, .html, .json, and .svg if lengths, batches or threads vary."""

from __future__ import annotations

import json
from pathlib import Path

from ...errors import CompressError
from ...files.atomic import write_text
from .measurements import Measurements
from .page import html_bench, markdown_bench, page_of
from .plot import picture
from .sweeps import sweeps_of

__all__ = ["Measurements", "check_bench_folder", "write_bench"]
PAGE, HTML, PICTURE, DATA = NAMES = ("bench.md", "bench.html", "bench.svg", "bench.json")
_MARK = "<!-- compress bench -->"  # the last line of every bench.md


def write_bench(measured: Measurements, out: Path) -> list[Path]:
    """Write `bench.md`, `bench.html`, `bench.svg` if there is a sweep, and `bench.json` to `out`.

    Raises `CompressError` if `out` cannot be written, or has files of these names that are not ours.
    """
    check_bench_folder(out)
    sweeps, models = sweeps_of(measured), measured.models
    page = page_of(measured, sweeps)
    texts = {PAGE: f"{markdown_bench(page)}\n{_MARK}\n", HTML: html_bench(page, sweeps, models)}
    texts |= {PICTURE: picture(sweeps, models) + "\n"} if sweeps else {}
    texts[DATA] = json.dumps(measured.document(), indent=1, ensure_ascii=False, default=str) + "\n"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not sweeps:
            (out / PICTURE).unlink(missing_ok=True)  # of the previous page
        for name, text in texts.items():
            write_text(out / name, text)
    except OSError as error:
        raise CompressError(f"{out}: cannot be written: {error.strerror}; choose another with --out") from None
    return [out / name for name in texts]


def check_bench_folder(out: Path) -> None:
    """Raise `CompressError` if pages in `out` would replace a file that is not of this command."""
    page = out / PAGE
    if page.is_file() and page.read_bytes().endswith(_MARK.encode() + b"\n"):
        return
    file_name = next((name for name in NAMES if (out / name).exists()), None)
    if file_name is not None:
        raise CompressError(
            f"{out / file_name}: is no page of `compress bench` and is not replaced; choose another folder with --out"
        )
