"""Pictures drawn ahead, in several processes: vl_convert draws in one thread of a process, so other processes draw their share."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import CheckFailed
from ..machine import usable_cores
from ..processes.children import run
from .drawing import DRAWN, VEGALITE, document_of, picture

_SHARE = 8  # charts, at least, that are worth a process, which starts in the time of about as many
_SECONDS = 120.0
# Nothing of ours: to import it takes longer than to draw.
_PROGRAM = """
import json, sys, vl_convert
with open(sys.argv[1], encoding="utf-8") as file:
    documents = json.load(file)
json.dump([vl_convert.vegalite_to_svg(each, vl_version=sys.argv[2]) for each in documents], sys.stdout)
"""


@contextmanager
def drawn_ahead(charts: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Inside, `svg` has these charts drawn."""
    documents = list(dict.fromkeys(map(document_of, charts)))
    processes = max(1, min(usable_cores(), len(documents) // _SHARE))
    own, *others = (documents[start::processes] for start in range(processes))
    try:
        with ThreadPoolExecutor(max(1, len(others))) as pool:
            waiting = [pool.submit(_elsewhere, share) for share in others]
            DRAWN.update({document: picture(document) for document in own} if others else {})
            for share, drawn in zip(others, waiting, strict=True):
                DRAWN.update(zip(share, drawn.result(), strict=True))
        yield
    finally:
        DRAWN.clear()


def _elsewhere(documents: Sequence[str]) -> list[str]:
    """Drawn by another process; here, where that fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "charts.json"
        file.write_text(f"[{', '.join(documents)}]", encoding="utf-8")
        try:
            return json.loads(run([sys.executable, "-c", _PROGRAM, file, VEGALITE], _SECONDS))
        except (CheckFailed, OSError, ValueError):  # OSError: Python itself cannot be started, as where it is embedded
            return list(map(picture, documents))
