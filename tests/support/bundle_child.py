"""What may crash, in a process of its own: verification and answers of damaged bundles, told what to do by JSON lines."""

from __future__ import annotations

import warnings
from pathlib import Path

from bundle_cases import answer

from compress.bundle.document import read_bundle
from compress.bundle.files import problems
from compress.bundle.graph_checks import Verification
from compress.errors import CompressError
from compress.processes.worker import serve

warnings.simplefilter("ignore")  # an unpadded form that is left alone


class Server:
    def predict(self, folder: str, name: str) -> str | None:
        return answer(Path(folder), name)

    def verify(self, folder: str) -> list[str]:
        """The failed checks."""
        try:
            info = read_bundle(Path(folder))
        except CompressError as error:
            return [str(error)]
        if wrong := problems(Path(folder), info.files):
            return wrong
        return [check.detail for check in Verification(Path(folder), info).checks() if not check.passed]


if __name__ == "__main__":
    serve(Server())
