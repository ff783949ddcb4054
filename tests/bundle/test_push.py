"""A verified bundle is uploaded to the hub completely, and nothing else is uploaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bundle_making import Run
from default_suite import slow
from fake_hub import Hub, Repository, serving
from huggingface_hub import constants

from compress.bundle import check_push, push_bundle, ship
from compress.errors import CheckFailed, CompressError

TOKEN = "hf_of_the_test"
pytestmark = pytest.mark.filterwarnings(
    "ignore:Use 'content=:DeprecationWarning"
)  # from huggingface_hub's calls of httpx


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A local hub and a token for it. Large files go by LFS, because xet's storage is another service."""
    with serving() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _refused(folder: Path, **options: bool) -> str:
    before = _files(folder)
    with pytest.raises(CompressError) as caught:
        push_bundle(folder, "me/mine", **options)
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert _files(folder) == before
    return str(caught.value)


def test_what_arrives_is_the_bundle_byte_for_byte(hub: Hub, bundle: Path) -> None:
    assert push_bundle(bundle, "me/mine") == f"{hub.url}/me/mine"
    there = hub.repositories["me/mine"]
    assert there.files.pop(".gitattributes")
    assert there.files == _files(bundle)
    assert set(hub.large.values()) == {path.read_bytes() for path in (bundle / "onnx").iterdir()}
    assert (there.private, there.message.startswith("Bundle of bag-toy-sentiment-0")) == (False, True)
    assert {request.token for request in hub.requests if "me/mine" in request.path} == {f"Bearer {TOKEN}"}


def test_private_is_passed_on(hub: Hub, bundle: Path) -> None:
    push_bundle(bundle, "me/mine", private=True)
    assert hub.repositories["me/mine"].private


def test_private_does_not_publish_where_a_public_repository_is(hub: Hub, bundle: Path) -> None:
    hub.repositories["me/mine"] = Repository(private=False)
    assert "me/mine: exists already and is public" in _refused(bundle, private=True)
    assert list(hub.repositories["me/mine"].files) == [".gitattributes"]


def test_a_bundle_takes_the_place_of_a_bundle(hub: Hub, bundle: Path) -> None:
    old = {"bundle.json": b"{}", "onnx/model_qdq.onnx": b"old", "README.md": b"old", "notes/ours.txt": b"kept"}
    hub.repositories["me/mine"] = Repository(files=old)
    push_bundle(bundle, "me/mine")
    assert hub.repositories["me/mine"].files == _files(bundle) | {"notes/ours.txt": b"kept"}


def test_what_is_no_bundle_is_not_replaced(hub: Hub, bundle: Path) -> None:
    other = {"README.md": b"a model", "model.safetensors": b"weights"}
    hub.repositories["me/mine"] = Repository(files=dict(other))
    assert "me/mine: holds 'model.safetensors' and no bundle.json" in _refused(bundle)
    assert hub.repositories["me/mine"].files == other


@pytest.mark.parametrize("name", ["README.md", "onnx/model_quantized.onnx", "bundle.json"])
def test_a_bundle_that_was_tampered_with_is_not_sent(hub: Hub, bundle: Path, name: str) -> None:
    content = bytearray((bundle / name).read_bytes())
    content[len(content) // 2] ^= 1
    (bundle / name).write_bytes(content)
    with pytest.raises(CheckFailed, match="not pushed, because it does not verify: ") as caught:
        push_bundle(bundle, "me/mine")
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert hub.requests == []


def test_a_folder_that_is_no_bundle_is_not_sent(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"weights")
    assert "expected a bundle's own file" in _refused(tmp_path)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("place", "status", "expected"),
    [
        ("POST /api/repos/create", 401, "the hub does not accept the token (401): set HF_TOKEN"),
        ("POST /api/repos/create", 403, "the token may not write there (403)"),
        ("POST /api/repos/create", 500, "answered 500 (not today)"),
        ("GET /api/models/me/mine", 500, "answered 500 (not today)"),
        ("POST /api/models/me/mine/preupload", 403, "the token may not write there (403)"),
        ("POST /me/mine.git/info/lfs", 401, "the hub does not accept the token (401)"),
        ("PUT /large/", 403, "the token may not write there (403)"),
        ("POST /api/models/me/mine/commit", 500, "answered 500 (not today)"),
    ],
)
def test_what_the_hub_refuses_is_one_line(hub: Hub, bundle: Path, place: str, status: int, expected: str) -> None:
    hub.refuse[place] = status
    message = _refused(bundle)
    assert message.startswith("me/mine: not pushed, because ")
    assert expected in message
    assert f"the bundle is whole in {bundle}" in message
    assert list(getattr(hub.repositories.get("me/mine"), "files", {".gitattributes": b""})) == [".gitattributes"]


def test_where_large_files_go_to_xet_its_refusal_is_one_line(
    hub: Hub, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    hub.refuse["GET /api/models/me/mine/xet-write-token"] = 403
    assert _refused(bundle).startswith("me/mine: not pushed, because ")
    assert any("/xet-write-token/" in request.path for request in hub.requests)


def test_a_hub_that_is_away_is_one_line(bundle: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "not pushed, because http://127.0.0.1:9 cannot be reached" in _refused(bundle)


@pytest.mark.parametrize(
    "name", ["mine", "me/mine@main", "me/mine/too", "me/mi--ne", "me/mine.git", "me/", "a b/c", ""]
)
def test_a_name_that_is_no_repository_is_refused_first(hub: Hub, name: str) -> None:
    with pytest.raises(CompressError, match=r"^--push: "):
        check_push(name)


def test_a_token_is_asked_for(hub: Hub, bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    assert _refused(bundle) == "--push: the hub asks for a token; set HF_TOKEN, or log in with `hf auth login`"
    assert hub.requests == []


def test_offline_is_said_first(hub: Hub, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids" in _refused(bundle)
    assert hub.requests == []


def _command(hub: Hub, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": TOKEN}
    return subprocess.run(
        [sys.executable, "-m", "compress", "ship", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, **variables, **environment},
    )


def test_the_command_pushes_and_prints_the_url(hub: Hub, run: Run, tmp_path: Path, apart: None) -> None:
    out = tmp_path / "out"
    done = _command(hub, run.folder, "-o", out, "--store", run.store, "--push", "me/mine", "--private")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(out), f"{hub.url}/me/mine"]
    there = hub.repositories["me/mine"]
    assert (there.private, there.files) == (True, {**_files(out), ".gitattributes": b"*.onnx filter=lfs"})


@pytest.mark.parametrize(
    ("words", "expected"),
    [(["--push", "mine"], "expected OWNER/NAME"), *slow((["--private"], "expected --push OWNER/NAME with it"))],
)
def test_the_command_refuses_before_any_work(
    hub: Hub, run: Run, tmp_path: Path, words: list[str], expected: str
) -> None:
    done = _command(hub, run.folder, "-o", tmp_path / "out", "--store", run.store, *words)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert expected in done.stderr
    assert not (tmp_path / "out").exists()
    assert hub.requests == []


@pytest.mark.slow
def test_the_bundle_stays_when_the_hub_refuses(hub: Hub, run: Run, tmp_path: Path, apart: None) -> None:
    hub.refuse["POST /api/repos/create"] = 401
    out = tmp_path / "out"
    done = _command(hub, run.folder, "-o", out, "--store", run.store, "--push", "me/mine")
    assert (done.returncode, done.stdout.splitlines(), len(done.stderr.splitlines())) == (2, [str(out)], 1)
    assert _files(out).keys() == _files(ship(run.folder, tmp_path / "again", store=run.store)).keys()
