"""`python -m compress.bundle.verifying.child`: run the checks of one bundle's graphs, as requested by JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...processes.worker import serve
from ..document import read_bundle
from .graph_checks import Verification


class Server:
    def open(self, folder: str, **options: Any) -> None:
        self._checks = Verification(Path(folder), read_bundle(Path(folder)), **options)

    def begin(self) -> tuple[str, str] | None:
        if (step := self._checks.begin()) is None:
            return None
        self._step = step
        return step.name, step.file

    def make(self) -> dict[str, Any]:
        return self._checks.make(self._step).model_dump(mode="json")


if __name__ == "__main__":
    serve(Server())
