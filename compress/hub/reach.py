"""Whether the hub can be reached, its own clients try for half a minute to find out; and how its clients behave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

SECONDS = 4.0  # to answer in
SILENCE = 20.0  # seconds without a byte of an answer that is under way; the client by itself waits for ever for some


def is_reachable() -> bool:
    """Whether the hub answers within `SECONDS`, whatever it answers; False where HF_HUB_OFFLINE forbids to ask."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and _answers(constants.ENDPOINT)


def endpoint() -> str:
    """The hub's address for messages: without a name and password, which that of a mirror may hold."""
    from huggingface_hub import constants

    parts = urlsplit(constants.ENDPOINT)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def out_of_reach(ways_out: str) -> str:
    """How a message goes on after what is not in the hub's cache, where the hub was not reached."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return f"and HF_HUB_OFFLINE forbids to ask the hub; {ways_out}, or unset HF_HUB_OFFLINE"
    return (
        f"and the hub cannot be reached at {endpoint()}; {ways_out} (HF_HUB_OFFLINE=1 reads the cache and does not try)"
    )


@lru_cache(maxsize=4)
def _answers(endpoint: str) -> bool:
    """In a thread, since looking up a name has no limit of its own."""
    from huggingface_hub import get_session

    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(get_session().head(endpoint, timeout=SECONDS))
        except Exception:  # requests', httpx's and OS errors alike
            return

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return bool(answers)


@contextmanager
def cache_only() -> Iterator[None]:
    """Inside, the hub's clients and `datasets` read their caches and ask no network."""
    from datasets import config
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before


def _limit(request: Any) -> None:
    """Requests that the client gives no limit get one."""
    limits = request.extensions.get("timeout") or {}
    if not any(limits.values()):
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), SILENCE)


@contextmanager
def quiet_client() -> Iterator[None]:
    """Inside, the hub's client waits for no answer for ever, shows bars on terminals alone, where somebody sees them, and no
    warnings: what matters is in the error that it ends with."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars, logging

    session = get_session()
    if _limit not in (hooks := session.event_hooks)["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _limit]}
    level, bars = logging.get_verbosity(), not are_progress_bars_disabled()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            enable_progress_bars()
