"""Push a bundle to the Hugging Face hub: only one that verifies, in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import hub
from ..errors import CheckFailed, CompressError
from ..version import __version__
from .document import CARD, NAME, read_bundle
from .files import is_allowed_name
from .verifying.verify import verify

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_OF_THE_HUB = {".gitattributes", CARD}  # files that a new repository may have


def check_push(repository: str) -> str:
    """Return the token to push with. CompressError: `repository` is not OWNER/NAME, or there is no token. Uses no network.

    Call it at the start of a long command, to fail before anything is made.
    """
    from huggingface_hub import constants, get_token
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    if (named := hub.repository(repository)) is None or named[1] is not None:
        raise CompressError(f"--push: expected OWNER/NAME on the Hugging Face hub, found {repository!r}")
    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise CompressError(f"--push: {hub.one_line(error)}") from None
    if constants.HF_HUB_OFFLINE:
        raise CompressError(f"--push: HF_HUB_OFFLINE forbids asking the hub; unset it to push to {repository}")
    with _one_line_errors(repository, hub.LOG_IN):
        token = get_token()
    if not token:
        raise CompressError(f"--push: the hub asks for a token; {hub.LOG_IN}")
    return token


def push_bundle(folder: Path, repository: str, *, private: bool = False) -> str:
    """Commit a bundle that verifies to the hub's `repository`, OWNER/NAME; return its URL.

    A missing repository is created, private with `private`, else by its owner's default. A bundle in the repository is
    replaced in one commit. Files that no bundle contains stay. CheckFailed: the bundle does not verify; nothing was sent.
    CompressError: the hub, the token, or a repository that holds something else; `folder` stays.
    """
    from huggingface_hub import HfApi

    folder, token = Path(folder), check_push(repository)
    remedy = f"the bundle is whole in {folder}: give the command again with --force"
    _check_verified(folder)
    if not hub.is_reachable():
        raise CompressError(f"{repository}: not pushed, because {hub.endpoint()} cannot be reached; {remedy}")
    with _one_line_errors(repository, remedy), hub.quiet_client():
        api = HfApi(token=token)
        url = api.create_repo(repository, private=private or None, exist_ok=True)
        _commit(api, folder, repository, private)
    return str(url)


def _check_verified(folder: Path) -> None:
    failed = [check for check in verify(folder).checks if not check.passed]
    if failed:
        raise CheckFailed(
            f"{folder}: not pushed, because it does not verify: {failed[0].name}: {hub.one_line(failed[0].detail)}; "
            f"`compress verify {folder}` shows every check"
        )


def _commit(api: HfApi, folder: Path, repository: str, private: bool) -> None:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    there, info = api.model_info(repository), read_bundle(folder)
    if private and not there.private:
        raise CompressError(
            f"{repository}: exists already and is public; --private is for one that does not exist yet: make it private in its "
            "settings, or push to another"
        )
    names = {file.rfilename for file in there.siblings or ()}
    if names - _OF_THE_HUB and NAME not in names:
        raise CompressError(
            f"{repository}: holds {min(names - _OF_THE_HUB)!r} and no {NAME}, so it is not a bundle's; push to another"
        )
    files = (*info.files, NAME)
    adds = [CommitOperationAdd(name, folder / name) for name in files]
    deletes = [CommitOperationDelete(name) for name in sorted(names) if is_allowed_name(name) and name not in files]
    message = f"Bundle of {info.name}, shipped by bert-compress {__version__}"
    api.create_commit(repository, [*adds, *deletes], commit_message=message, parent_commit=there.sha)


@contextmanager
def _one_line_errors(repository: str, remedy: str) -> Iterator[None]:
    """Turn any failure between us and the hub into one line; `remedy`: what to do then."""
    try:
        yield
    except CompressError:
        raise
    except Exception as error:  # httpx's, hf_xet's and OS errors, and ValueError for what the hub will not have
        raise CompressError(f"{repository}: not pushed, because {_reason(error)}; {remedy}") from None


def _reason(error: Any) -> str:
    while getattr(error, "response", None) is None and error.__cause__ is not None:
        error = error.__cause__  # the library says which file, and why in the cause
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is None:
        return hub.one_line(error)
    if status == 401:
        return hub.BAD_TOKEN
    if status == 403:
        return f"the token may not write there (403): {hub.endpoint()}/settings/tokens gives one that may"
    message = getattr(error, "server_message", None)
    return f"{hub.endpoint()} answered {status}{f' ({hub.one_line(message)})' if message else ''}"
