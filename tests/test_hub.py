"""The hub: which names are repositories, and quick detection of an unreachable hub."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from compress import hub
from compress.errors import CompressError
from compress.models.checkpoints.location import fetch

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("google-bert/bert-base-uncased", ("google-bert/bert-base-uncased", None)),
        ("a/b@refs/pr/1", ("a/b", "refs/pr/1")),
        (f"a/b@{COMMIT}", ("a/b", COMMIT)),
        ("./a/b", None),
        ("/a/b", None),
        ("~/b", None),
        ("a/b/c", None),
        ("a/card.yaml", None),
        ("bert-mini", None),
        ("a/b@", None),
        ("../b", None),
    ],
)
def test_a_repository_is_an_owner_and_a_name(word: str, expected: tuple[str, str | None] | None) -> None:
    assert hub.repository(word) == expected


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """A local hub that answers 404 to everything; paths with `silent` get no answer before the test ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if "silent" in self.path:
                ended.wait(10)
            self.send_error(404)

        def log_message(self, *args: object) -> None: ...  # type: ignore[override]

    ended = threading.Event()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield httpd
    ended.set()
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def test_any_answer_will_do_and_silence_will_not(server: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("compress.hub.reach.SECONDS", 0.5)
    here = f"http://127.0.0.1:{server.server_address[1]}"
    for endpoint, expected in ((here, True), (f"{here}/silent", False), ("http://127.0.0.1:1", False)):
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        assert hub.is_reachable() is expected, endpoint
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "ENDPOINT", here)
    assert not hub.is_reachable()


@pytest.mark.parametrize(
    ("offline", "why"),
    [(True, "HF_HUB_OFFLINE forbids asking the hub"), (False, "the hub cannot be reached at http://127.0.0.1:1")],
)
def test_what_is_neither_here_nor_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offline: bool, why: str
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(CompressError) as caught:
        fetch("teacher t", "a/b", COMMIT, "`pip install --no-deps b`, or give a local folder with --teacher DIR")
    message = str(caught.value)
    assert message.startswith(f"teacher t: a/b at {COMMIT} is not in the hub's cache, and {why}; `pip install")
    assert "--data-dir DIR" in message
    assert ("HF_HUB_OFFLINE=1" in message) is not offline
    assert "\n" not in message


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
def test_an_interrupted_download_goes_on(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[[str], Path], tmp_path: Path, missing: str
) -> None:
    """The hub's client returns a commit's folder as cached, even if files are missing."""
    folder = shutil.copytree(tiny_checkpoint("bert"), tmp_path / "cached")
    (folder / "tokenizer.json").touch()
    local_only: list[bool] = []

    def download(name: str, *, local_files_only: bool, **_: object) -> str:
        local_only.append(local_files_only)
        if not local_files_only:
            (folder / f"{missing}.rest").rename(folder / missing)
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    for reachable in (False, True):
        monkeypatch.setattr("compress.models.checkpoints.location.is_reachable", lambda answer=reachable: answer)
        if not reachable:
            assert fetch("teacher t", "a/b", COMMIT, "") == folder
            (folder / missing).rename(folder / f"{missing}.rest")
            with pytest.raises(CompressError, match="is not in the hub's cache"):
                fetch("teacher t", "a/b", COMMIT, "")
    assert fetch("teacher t", "a/b", COMMIT, "") == folder
    assert local_only == [True, True, True, False]


def test_inside_cache_only_nothing_is_asked() -> None:
    from datasets import config

    before = constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE
    with pytest.raises(KeyError), hub.cache_only():
        assert constants.HF_HUB_OFFLINE
        assert config.HF_HUB_OFFLINE
        raise KeyError
    assert before == (constants.HF_HUB_OFFLINE, config.HF_HUB_OFFLINE)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:s3cret@mirror.example/hub", "https://mirror.example/hub"),
        ("https://mirror.example:8080", "https://mirror.example:8080"),
        ("http://token@127.0.0.1:9", "http://127.0.0.1:9"),
    ],
)
def test_messages_name_a_mirror_without_its_password(address: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    assert hub.endpoint() == shown
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert f"cannot be reached at {shown};" in hub.out_of_reach("give a folder")
