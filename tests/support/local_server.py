"""An HTTP server on localhost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Quiet(BaseHTTPRequestHandler):
    """A request handler that logs nothing."""

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the library's name
        pass


@contextmanager
def serving(handler: Callable[..., Any]) -> Iterator[str]:
    """Serve requests until the block ends, and yield the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=[0.02], daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
