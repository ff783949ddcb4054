"""Draw pictures ahead in several processes: vl_convert uses one thread per process, so other processes draw a share each."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import CheckFailed
from ...machine import usable_cores
from ...processes.children import run
from .drawing import DRAWN, VEGALITE, document_of, picture

_SHARE = 8  # fewest charts per process: starting one takes about as long as drawing so many
_SECONDS = 120.0
# Imports nothing of ours: that would take longer than drawing.
_PROGRAM = """
import json, sys, vl_convert
with open(sys.argv[1], encoding="utf-8") as file:
    documents = json.load(file)
json.dump([vl_convert.vegalite_to_svg(each, vl_version=sys.argv[2]) for each in documents], sys.stdout)
"""


@contextmanager
def drawn_ahead(charts: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Within the block, `svg` finds these charts already drawn."""
    documents = list(dict.fromkeys(map(document_of, charts)))
    processes = max(1, min(usable_cores(), len(documents) // _SHARE))
    own, *others = (documents[start::processes] for start in range(processes))
    try:
        with ThreadPoolExecutor(max(1, len(others))) as pool:
            waiting = [pool.submit(_draw_in_process, share) for share in others]
            DRAWN.update({document: picture(document) for document in own} if others else {})
            for share, drawn in zip(others, waiting, strict=True):
                DRAWN.update(zip(share, drawn.result(), strict=True))
        yield
    finally:
        DRAWN.clear()


def _draw_in_process(documents: Sequence[str]) -> list[str]:
    """Draw in another process, or here if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "charts.json"
        file.write_text(f"[{', '.join(documents)}]", encoding="utf-8")
        try:
            return json.loads(run([sys.executable, "-c", _PROGRAM, file, VEGALITE], _SECONDS))
        # OSError: Python itself cannot be started, e.g. where it is embedded.
        except (
            CheckFailed,
            OSError,
            ValueError,
        ):
            return list(map(picture, documents))
