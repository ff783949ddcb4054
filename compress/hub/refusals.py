"""Explain why the hub refused a request, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from .reach import endpoint

Kind = Literal["model", "dataset"]
LOG_IN = "set HF_TOKEN, or log in with `hf auth login`"
BAD_TOKEN = "the hub does not accept the token (401): set HF_TOKEN to another, or log in with `hf auth login`"


def reason(error: BaseException, name: str, revision: str, kind: Kind = "model") -> str:
    """Return one line about the `error` that the hub's client raised for the repository `name` at `revision`."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    refusal = next((one for one in _chain(error) if getattr(one, "response", None) is not None), None)
    status = getattr(getattr(refusal, "response", None), "status_code", None)
    page = f"{endpoint()}/{'datasets/' if kind == 'dataset' else ''}{name}"
    if isinstance(refusal, GatedRepoError):
        if status == 401:
            return f"it is gated: accept its conditions at {page}, then {LOG_IN}"
        return f"it is gated, and the token has no access to it: ask for access at {page}"
    if isinstance(refusal, RevisionNotFoundError):
        return f"it has no revision {revision}; {page}/commits/main lists its commits"
    if isinstance(refusal, RepositoryNotFoundError):
        if status == 401:
            return f"the hub has no such repository, or it is private: check the name, or {LOG_IN}"
        return "the hub has no such repository, or it is private and the token may not read it"
    if status == 401:
        return BAD_TOKEN
    if status == 403:
        return f"the token may not read it (403): {endpoint()}/settings/tokens gives one that may"
    if status == 429:
        return "the hub refuses so many requests (429): wait a few minutes, or log in for a higher limit"
    if status is not None and status >= 500:
        return f"the hub answered {status}, which is its own failure: try again later"
    return _broken_download(error) or one_line(refusal or error)


def _broken_download(error: BaseException) -> str | None:
    """Explain a download that broke off; None for any other error."""
    from huggingface_hub.utils import httpx

    if any(isinstance(one, httpx.TransportError) for one in _chain(error)):
        why = one_line(next(one for one in _chain(error) if isinstance(one, httpx.TransportError)))
        return f"the connection broke ({why}): the same command fetches the files that are missing"
    if "Consistency check failed" in str(error):
        return "a file was downloaded with a size other than the hub's: try again"
    return None


def one_line(error: object) -> str:
    """Return the first line of an error's message; its class if it has none."""
    return next((" ".join(line.split()) for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
