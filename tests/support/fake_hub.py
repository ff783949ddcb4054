"""A local server with the parts of the Hugging Face Hub that a push needs: repositories, large files, commits."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import local_server

FIRST, SECOND = "1" * 40, "2" * 40  # commits of a repository: the initial one, and the one after a push


class Request(NamedTuple):
    method: str
    path: str
    token: str | None
    body: bytes


@dataclass
class Repository:
    private: bool = False
    files: dict[str, bytes] = field(default_factory=lambda: {".gitattributes": b"*.onnx filter=lfs"})
    sha: str = FIRST
    message: str = ""


@dataclass
class Hub:
    """`refuse`: "METHOD /path" or a prefix of it -> the status of the reply."""

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    large: dict[str, bytes] = field(default_factory=dict)
    refuse: dict[str, int] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        for beginning, status in self.refuse.items():
            if f"{method} {path}".startswith(beginning):
                return status, {"error": "not today"}
        for kind, pattern, name in _ROUTES:
            if method == kind and (match := re.fullmatch(pattern, path)):
                return getattr(self, name)(body, *match.groups())
        return 404, {"error": f"{method} {path}: no such place"}

    def front(self, body: bytes) -> tuple[int, Any]:
        return 200, {}

    def create(self, body: bytes) -> tuple[int, Any]:
        fields = json.loads(body)
        name = f"{fields['organization']}/{fields['name']}"
        known = name in self.repositories
        self.repositories.setdefault(name, Repository(fields.get("visibility") == "private"))
        return 409 if known else 200, {"url": f"{self.url}/{name}"}

    def info(self, body: bytes, name: str) -> tuple[int, Any]:
        if (one := self.repositories.get(name)) is None:
            return 404, {"error": "Repository not found"}
        files = [{"rfilename": file} for file in one.files]
        return 200, {"id": name, "private": one.private, "sha": one.sha, "siblings": files}

    def preupload(self, body: bytes, name: str) -> tuple[int, Any]:
        modes = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(".onnx") else "regular",
                "shouldIgnore": False,
            }
            for file in json.loads(body)["files"]
        ]
        return 200, {"files": modes}

    def batch(self, body: bytes, name: str) -> tuple[int, Any]:
        entries = json.loads(body)["objects"]
        action = {"upload": {"href": f"{self.url}/large/OID"}, "verify": {"href": f"{self.url}/verify"}}
        objects = [
            entry | {"actions": json.loads(json.dumps(action).replace("OID", entry["oid"]))} for entry in entries
        ]
        return 200, {"transfer": "basic", "objects": objects}

    def upload(self, body: bytes, oid: str) -> tuple[int, Any]:
        self.large[oid] = body
        return 200 if hashlib.sha256(body).hexdigest() == oid else 400, {}

    def verify(self, body: bytes) -> tuple[int, Any]:
        entry = json.loads(body)
        return 200 if len(self.large.get(entry["oid"], b"")) == entry["size"] else 404, {}

    def commit(self, body: bytes, name: str) -> tuple[int, Any]:
        one, files = self.repositories[name], dict(self.repositories[name].files)
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                if value.get("parentCommit") not in (None, one.sha):
                    return 412, {"error": "a commit has happened since"}
                one.message = value["summary"]
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
            else:
                return 400, {"error": f"unknown: {line['key']}"}
        one.files, one.sha = files, SECOND
        return 200, {"commitUrl": f"{self.url}/{name}/commit/{SECOND}", "commitOid": SECOND}


_NAME = r"([\w.-]+/[\w.-]+)"
_ROUTES = (
    ("HEAD", "/?", "front"),
    ("POST", "/api/repos/create", "create"),
    ("GET", f"/api/models/{_NAME}", "info"),
    ("POST", "/api/validate-yaml", "front"),
    ("POST", f"/api/models/{_NAME}/preupload/main", "preupload"),
    ("POST", f"/{_NAME}.git/info/lfs/objects/batch", "batch"),
    ("PUT", "/large/([0-9a-f]{64})", "upload"),
    ("POST", "/verify", "verify"),
    ("POST", f"/api/models/{_NAME}/commit/main", "commit"),
)


@contextmanager
def serving() -> Iterator[Hub]:
    """Run a hub until the block ends."""
    hub = Hub()

    class Handler(local_server.Quiet):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.body()
            hub.requests.append(Request(self.command, self.path, self.headers.get("Authorization"), body))
            status, document = hub.answer(self.command, self.path, body)
            content = json.dumps(document).encode() if self.command != "HEAD" else b""
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815 - the library's names

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

    with local_server.serving(Handler) as hub.url:
        yield hub
