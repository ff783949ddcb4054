"""A local server with the parts of the Hugging Face Hub that downloads need: revisions, trees, files, ranges, faults.

Large files are on another host (`localhost` instead of `127.0.0.1`), as on the hub, which must not receive the token.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import local_server

if TYPE_CHECKING:
    import pytest

COMMIT, LATER = "a" * 40, "b" * 40
CHUNK = 500  # bytes; the unfinished chunk is lost when a connection breaks
TRIES = 8  # most requests for one thing in one command: the client's own retries, which wait for 23 s in all, and our question why
LARGE = (".safetensors", ".parquet", ".bin")
_NAME = r"([\w.-]+/[\w.-]+)"
_INFO = re.compile(rf"/api/(model|dataset)s/{_NAME}(?:/revision/(.+))?")
_TREE = re.compile(rf"/api/(model|dataset)s/{_NAME}/tree/([^/]+)(?:/(.+))?")
_FILE = re.compile(rf"/(?:(dataset)s/)?{_NAME}/resolve/([^/]+)/(.+)")
_BLOB = re.compile(r"/blobs/([0-9a-f]{64})")


class Request(NamedTuple):
    method: str
    path: str
    host: str
    token: str | None
    range: str | None


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes = b""


@dataclass
class Repository:
    """`commits`: commit -> its files; `refs`: branch or tag -> commit; `tokens`: those allowed to read, None: everybody."""

    commits: dict[str, dict[str, bytes]]
    refs: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    gated: bool = False
    tokens: set[str] | None = None


@dataclass
class Endpoint:
    """A hub, with faults. `fails`: part of "METHOD /path" -> the status of the reply; `cuts`: file name -> the number of bytes
    after which each of its replies is cut, in turn; `short`: file name -> its real, shorter contents; `silent`: part of the paths
    that get no reply before the end."""

    url: str = ""
    models: dict[str, Repository] = field(default_factory=dict)
    datasets: dict[str, Repository] = field(default_factory=dict)
    fails: dict[str, int] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    short: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    silent: str | None = None
    ended: Event = field(default_factory=Event)
    requests: list[Request] = field(default_factory=list)
    _blobs: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    @property
    def tries(self) -> int:
        """Return how often the client requested the same thing, at most."""
        return max(Counter((one.method, one.path) for one in self.requests).values(), default=0)

    def fetched(self, name: str = "") -> list[Request]:
        """Return the requests for the contents of files whose name ends with `name`."""
        digests = {digest for digest, (file, _) in self._blobs.items() if file.endswith(name)}
        return [
            one
            for one in self.requests
            if one.method == "GET"
            and (one.path.rpartition("/")[2] in digests or (_FILE.fullmatch(one.path) and one.path.endswith(name)))
        ]

    def answer(self, request: Request) -> Answer:
        path = unquote(request.path)
        for part, status in self.fails.items():
            if part in f"{request.method} {path}":
                return _json(status, {"error": "not today"})
        if match := _BLOB.fullmatch(path):
            return self._contents(request, *self._blobs[match[1]])
        for pattern, reply in ((_INFO, self._info), (_TREE, self._tree), (_FILE, self._file)):
            if match := pattern.fullmatch(path):
                kind, name, *rest = match.groups()
                repository = (self.datasets if kind == "dataset" else self.models).get(name)
                refused = _refusal(repository, request.token, rest[0], contents=pattern is _FILE)
                return refused or reply(request, name, repository, *rest)  # type: ignore[arg-type]
        return _json(200 if path == "/" else 404, {})

    def _info(self, request: Request, name: str, repository: Repository, revision: str | None) -> Answer:
        commit = _commit(repository, revision or "main")
        files = [{"rfilename": file} for file in repository.commits[commit]]
        return _json(200, {"id": name, "sha": commit, "private": False, "siblings": files})

    def _tree(self, request: Request, name: str, repository: Repository, revision: str, folder: str | None) -> Answer:
        files = repository.commits[_commit(repository, revision)]
        entries: list[dict[str, Any]] = []
        for path, content in files.items():
            if folder is None or path.startswith(f"{folder}/"):
                large = {"lfs": {"oid": _sha256(content), "size": len(content), "pointerSize": 134}}
                entry = {"type": "file", "path": path, "size": len(content), "oid": _git_id(content)}
                entries.append(entry | (large if path.endswith(LARGE) else {}))
        if folder is not None and not entries:
            return _json(404, {"error": "no such folder"}, {"X-Error-Code": "EntryNotFound"})
        folders = sorted({path.rpartition("/")[0] for path in files if "/" in path})
        return _json(200, entries + [{"type": "directory", "path": path, "oid": "c" * 40} for path in folders])

    def _file(self, request: Request, name: str, repository: Repository, revision: str, file: str) -> Answer:
        commit = _commit(repository, revision)
        of_commit = {"X-Repo-Commit": commit}
        if (content := repository.commits[commit].get(file)) is None:
            return _json(404, {"error": "Entry not found"}, of_commit | {"X-Error-Code": "EntryNotFound"})
        if not file.endswith(LARGE):
            answer = self._contents(request, file, content)
            return answer._replace(headers=answer.headers | of_commit | {"ETag": f'"{_git_id(content)}"'})
        digest = _sha256(content)
        self._blobs[digest] = (file, content)
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}
        place = f"{self.url.replace('127.0.0.1', 'localhost')}/blobs/{digest}"
        return Answer(302, of_commit | linked | {"Location": place, "Content-Length": "0"})

    def _contents(self, request: Request, file: str, content: bytes) -> Answer:
        content = self.short.get(file, content)
        start = re.fullmatch(r"bytes=(\d+)-(\d*)", request.range or "")
        if start is None or not self.ranges:
            return Answer(200, {"Content-Length": str(len(content))}, content)
        first, last = int(start[1]), min(int(start[2] or len(content) - 1), len(content) - 1)
        if first > last:
            return Answer(416, {"Content-Length": "0", "Content-Range": f"bytes */{len(content)}"})
        part = content[first : last + 1]
        where = f"bytes {first}-{last}/{len(content)}"
        return Answer(206, {"Content-Length": str(len(part)), "Content-Range": where}, part)

    def cut(self, path: str) -> int | None:
        """Return the number of bytes after which the connection breaks, or None."""
        file = self._blobs.get(path.rpartition("/")[2], (path.rpartition("/")[2], b""))[0]
        return self.cuts[file].pop(0) if self.cuts.get(file) else None


def _refusal(
    repository: Repository | None, token: str | None, revision: str | None, *, contents: bool
) -> Answer | None:
    """Return the hub's reply if something does not exist or the token may not read it. A private repository appears not to
    exist."""
    if repository is None or (
        repository.tokens is not None and not repository.gated and token not in repository.tokens
    ):
        code = 404 if token else 401
        said = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
        return _json(code, {"error": "Repository not found"}, said)
    if repository.gated and contents and (repository.tokens is None or token not in repository.tokens):
        said = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted"}
        return _json(403 if token else 401, {"error": "Access to this model is restricted"}, said)
    if _commit(repository, revision or "main") not in repository.commits:
        return _json(404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
    return None


def _commit(repository: Repository, revision: str) -> str:
    return repository.refs.get(unquote(revision), revision)


def _json(status: int, document: Any, headers: dict[str, str] | None = None) -> Answer:
    content = json.dumps(document).encode()
    return Answer(
        status, {"Content-Type": "application/json", "Content-Length": str(len(content))} | (headers or {}), content
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """Run a hub without repositories until the block ends."""
    hub = Endpoint()

    class Handler(local_server.Quiet):
        protocol_version = "HTTP/1.1"

        def reply(self) -> None:
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            path = urlsplit(self.path).path
            host = (self.headers.get("Host") or "").partition(":")[0]
            request = Request(self.command, path, host, token, self.headers.get("Range"))
            hub.requests.append(request)
            if hub.silent is not None and hub.silent in path:
                hub.ended.wait(10)
            status, headers, content = hub.answer(request)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            cut = hub.cut(path)
            self.wfile.write(content[:cut])
            self.close_connection = self.close_connection or cut is not None

        do_GET = do_HEAD = reply  # noqa: N815 - the library's names

    with local_server.serving(Handler) as hub.url:
        try:
            yield hub
        finally:
            hub.ended.set()


@contextmanager
def local_hub(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Make an endpoint the hub of this process, with caches in `folder` and no token. The client does not wait before it retries,
    and writes `CHUNK` bytes at a time."""
    from datasets import config
    from huggingface_hub import constants, file_download
    from huggingface_hub.utils import _http

    with endpoint() as hub:
        patch.setattr(constants, "ENDPOINT", hub.url)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
        patch.setattr(constants, "HF_HUB_CACHE", str(folder / "cache" / "hub"))
        patch.setattr(constants, "HF_TOKEN_PATH", str(folder / "cache" / "token"))
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
        patch.setattr(config, "HF_ENDPOINT", hub.url)
        patch.setattr(config, "HF_DATASETS_CACHE", folder / "cache" / "datasets")
        patch.setattr(config, "HF_HUB_OFFLINE", False)
        patch.delenv("HF_TOKEN", raising=False)
        for module in (file_download, _http):
            patch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None, time=time.time))
        yield hub
