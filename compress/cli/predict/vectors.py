"""Files whose answers are vectors: one row of a NumPy file for each input row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ...errors import CompressError
from .answers import text_of
from .checks import check_rows
from .files import VECTORS, Bar, InputOptions, check_new, first_column, new_file
from .rows import PLAIN, Rows, suffix_of

if TYPE_CHECKING:
    from ...runtime import Embedder


def write_vectors(model: Any, path: Path, output: Path, options: InputOptions) -> str:
    """Write the vectors of one column of `path`, by default the bundle's first, or of the lines of a .txt file, to `output`: float32
    [row, width], in NumPy's format. Return what was written, in a line; memory is bounded whatever the rows. Raises `CompressError`."""
    if model.settings.kind.unit != "pair":
        raise CompressError(f"--output: {model.folder} gives no vectors; expected a .csv, .tsv or .jsonl file")
    if lost := next(
        (name for name, value in (("--pair", options.pair), ("--label", options.label)) if value is not None), None
    ):
        raise CompressError(
            f"{lost}: a {VECTORS} file holds the vectors of one column; give --output FILE.csv for cosines"
        )
    check_new(output)
    rows = Rows(path, suffix_of(path, "--input", (PLAIN,)), quoting=options.quoting, columns=options.columns)
    names = (options.text or ("text" if rows.suffix == PLAIN else first_column(model)),)
    with ExitStack() as stack:
        stack.callback(rows.close)
        if rows.repeatable:
            check_rows(rows, lambda row: text_of(names, row))
        out = stack.enter_context(new_file(output, binary=True))
        bar = stack.enter_context(Bar(rows, hidden=False))
        count = _write(out, model, (str(text_of(names, row)) for row in rows), bar)
        if not count:
            raise CompressError(f"{path}: no examples; expected at least one row")
    return f"{output}: {count:,} vectors of {model.width}"


def _write(out: IO[bytes], model: Embedder, texts: Iterator[str], bar: Bar) -> int:
    count = 0
    write_header(out, 0, model.width)
    for count, vector in enumerate(model.vectors(texts), 1):
        out.write(_little_endian(vector).tobytes())
        bar(count)
    out.seek(0)
    write_header(out, count, model.width)
    return count


def write_header(out: IO[bytes], rows: int, width: int) -> None:
    """Write the header of a .npy file of float32 [rows, width]. NumPy reserves space for more rows, so that it can be overwritten."""
    np.lib.format.write_array_header_1_0(out, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})


def _little_endian(vector: np.ndarray) -> np.ndarray:
    return vector.astype("<f4", copy=False)
