"""Vega in a process of its own: the first picture of a process takes as long as twenty more, so all commands of `cli_child` share one.

A picture is a line of JSON, `[document, options]`; the reply is another, `[whether it was drawn, the SVG or what is wrong]`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import vl_convert


class Drawer:
    """Draws as vl_convert does, for this process and its forks; ends when the last of them does."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._turn = threading.Lock()

    def vegalite_to_svg(self, document: dict[str, Any], **options: Any) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._turn:
            self._process.stdin.write(f"{json.dumps([document, options])}\n")
            self._process.stdin.flush()
            drawn, text = json.loads(self._process.stdout.readline())
        if not drawn:
            raise ValueError(text)
        return text


def serve() -> None:
    for line in sys.stdin:
        document, options = json.loads(line)
        try:
            reply = True, vl_convert.vegalite_to_svg(document, **options)
        except ValueError as error:
            reply = False, str(error)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    serve()
