"""Whether the hub can be reached, for which its own clients try for half a minute; and settings of its clients."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

SECONDS = 4.0  # to answer in
SILENCE = 20.0  # seconds without a byte of an answer that has begun; the client's default has no limit for some


def is_reachable() -> bool:
    """Whether the hub answers within `SECONDS`, whatever the answer; False if HF_HUB_OFFLINE forbids requests."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and _answers(constants.ENDPOINT)


def endpoint() -> str:
    """The hub's address for messages: without a name and password, which a mirror's address may have."""
    from huggingface_hub import constants

    parts = urlsplit(constants.ENDPOINT)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def out_of_reach(remedies: str) -> str:
    """Return how a message continues after what is not in the hub's cache, if the hub was not reached."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return f"and HF_HUB_OFFLINE forbids asking the hub; {remedies}, or unset HF_HUB_OFFLINE"
    return (
        f"and the hub cannot be reached at {endpoint()}; {remedies} (HF_HUB_OFFLINE=1 reads the cache and does not try)"
    )


@lru_cache(maxsize=4)
def _answers(endpoint: str) -> bool:
    """Whether the address answers, asked in a thread, since a name lookup has no time limit."""
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
    """Within the block, the hub's clients and `datasets` read their caches and make no requests."""
    from datasets import config
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE = before


def _limit(request: Any) -> None:
    """Set a time limit on requests to which the client gives none."""
    limits = request.extensions.get("timeout") or {}
    if not any(limits.values()):
        request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), SILENCE)


@contextmanager
def quiet_client() -> Iterator[None]:
    """Within the block, the hub's client has a time limit on every answer, and shows progress bars on terminals alone and no warnings: what
    matters is in the error that it raises."""
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
