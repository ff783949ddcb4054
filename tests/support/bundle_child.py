"""Verify damaged bundles and predict with them, which may crash, in a separate process that is controlled by JSON lines."""

from __future__ import annotations

import warnings
from pathlib import Path

from bundle_cases import answer

from compress.bundle.document import read_bundle
from compress.bundle.files import file_problems
from compress.bundle.verifying.graph_checks import Verification
from compress.errors import CompressError
from compress.processes.worker import serve

warnings.simplefilter("ignore")  # the warning about an unpadded graph that is ignored


class Server:
    def predict(self, folder: str, name: str) -> str | None:
        return answer(Path(folder), name)

    def verify(self, folder: str) -> list[str]:
        """Return the messages of the failed checks."""
        try:
            info = read_bundle(Path(folder))
        except CompressError as error:
            return [str(error)]
        if wrong := file_problems(Path(folder), info.files):
            return wrong
        return [check.detail for check in Verification(Path(folder), info).checks() if not check.passed]


if __name__ == "__main__":
    serve(Server())
