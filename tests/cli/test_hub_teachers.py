"""`--teacher OWNER/NAME[@REVISION]` through the hub's own client and a local endpoint: what is downloaded, and the errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow
from hub_downloads import CHUNK, COMMIT, LATER, TRIES, Endpoint, Repository
from huggingface_hub import constants, hf_hub_download

pytestmark = pytest.mark.end_to_end

TEACHER = "acme/tiny-bert"
WEIGHTS = "model.safetensors"
WAY_OUT = "give another with --teacher DIR"


@pytest.fixture
def refused(cli: Any, hub: Endpoint) -> Any:
    """Return the one line of a `compress plan` that exits with 2 and leaks no token."""

    def plan(teacher: str = TEACHER) -> str:
        code, out, err = cli("plan", "int8", "--task", "toy.yaml", "--teacher", teacher)
        assert (code, out) == (2, "")
        assert err.startswith("error: teacher ")
        assert err.count("\n") == 1
        assert "hf_" not in err
        assert hub.tries <= TRIES
        return err

    return plan


@pytest.fixture
def planned(cli: Any) -> Any:
    """Return what `compress plan` says about a teacher, as a document."""

    def plan(teacher: str = TEACHER) -> dict[str, Any]:
        code, out, err = cli("plan", "int8", "--task", "toy.yaml", "--teacher", teacher, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)[0]

    return plan


def weights(commit: str = COMMIT) -> bytes:
    return Path(constants.HF_HUB_CACHE, "models--acme--tiny-bert", "snapshots", commit, WEIGHTS).read_bytes()


def files(hub: Endpoint) -> dict[str, bytes]:
    return hub.models[TEACHER].commits[COMMIT]


def test_a_download_is_used_and_not_repeated(hub: Endpoint, planned: Any) -> None:
    first = planned()
    assert weights() == files(hub)[WEIGHTS]
    assert len(hub.fetched()) == 3
    hub.requests.clear()
    assert planned()["stages"] == first["stages"]
    assert hub.fetched() == []
    hub.requests.clear()
    assert planned(f"{TEACHER}@{COMMIT}")["stages"] == first["stages"]
    assert hub.requests == []


def test_what_another_program_left_is_made_whole(hub: Endpoint, planned: Any) -> None:
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
    files(hub)["modules.json"] = json.dumps(modules).encode()
    for name in ("config.json", "tokenizer.json", WEIGHTS):
        hf_hub_download(TEACHER, name, revision=COMMIT)
    planned(f"{TEACHER}@{COMMIT}")
    assert len(hub.fetched("modules.json")) == 1
    hub.requests.clear()
    planned(f"{TEACHER}@{COMMIT}")
    assert hub.requests == []


def test_what_another_program_left_is_used_where_the_hub_gives_no_more(hub: Endpoint, planned: Any) -> None:
    for name in ("config.json", "tokenizer.json", WEIGHTS):
        hf_hub_download(TEACHER, name, revision=COMMIT)
    hub.models[TEACHER].tokens = {"hf_right"}
    assert planned(f"{TEACHER}@{COMMIT}")["stages"]


def test_a_broken_download_goes_on_where_it_was(hub: Endpoint, planned: Any) -> None:
    assert len(files(hub)[WEIGHTS]) > 90 * CHUNK
    hub.cuts[WEIGHTS] = [30 * CHUNK + 7, 20 * CHUNK]
    planned()
    assert weights() == files(hub)[WEIGHTS]
    assert [one.range for one in hub.fetched(WEIGHTS)] == [None, f"bytes={30 * CHUNK}-", f"bytes={50 * CHUNK}-"]


def test_an_endpoint_without_ranges_sends_it_whole_again(hub: Endpoint, planned: Any) -> None:
    hub.ranges = False
    hub.cuts[WEIGHTS] = [30 * CHUNK, 20 * CHUNK]
    planned()
    assert weights() == files(hub)[WEIGHTS]
    assert len(hub.fetched(WEIGHTS)) == 3


def test_a_download_that_keeps_breaking_is_told_and_the_command_goes_on_later(
    hub: Endpoint, refused: Any, planned: Any
) -> None:
    hub.cuts[WEIGHTS] = [2 * CHUNK] + [0] * 20
    assert "the connection broke (" in (said := refused())
    assert "the same command fetches the files that are missing" in said
    assert 0 < len(hub.fetched(WEIGHTS)) < 12
    hub.cuts.clear()
    hub.requests.clear()
    planned()
    assert weights() == files(hub)[WEIGHTS]
    assert len(hub.fetched()) == 1  # complete files are not fetched again


def test_a_file_that_is_not_what_the_hub_names_is_not_used(hub: Endpoint, refused: Any, planned: Any) -> None:
    whole = files(hub)[WEIGHTS]
    hub.short[WEIGHTS] = whole[:-100]
    assert "a file was downloaded with a size other than the hub's" in refused()
    hub.short[WEIGHTS] = whole[:-1] + bytes([whole[-1] ^ 1])
    assert "model.safetensors is damaged: its SHA-256 is not the one that the hub names" in refused()
    hub.short.clear()
    planned()
    assert weights() == whole


@pytest.mark.parametrize("revision", ["v9", "d" * 40])
def test_a_revision_that_is_not_there(hub: Endpoint, refused: Any, revision: str) -> None:
    said = refused(f"{TEACHER}@{revision}")
    assert f"it has no revision {revision}; {hub.url}/{TEACHER}/commits/main lists its commits" in said
    assert WAY_OUT in said


def test_a_name_that_is_not_there(refused: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refused("acme/none")
    assert "acme/none at main cannot be downloaded: the hub has no such repository, or it is private" in said
    assert "set HF_TOKEN, or log in with `hf auth login`" in said
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert "the hub has no such repository, or it is private and the token may not read it" in refused("acme/none")


def test_a_gated_teacher(hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models[TEACHER].gated, hub.models[TEACHER].tokens = True, {"hf_right"}
    page = f"{hub.url}/{TEACHER}"
    assert f"it is gated: accept its conditions at {page}, then set HF_TOKEN, or log in with" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert f"it is gated, and the token has no access to it: ask for access at {page}" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    planned()
    assert {one.token for one in hub.requests if one.host == "localhost"} == {None}  # the host of large files


def test_a_private_teacher(hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.models[TEACHER].tokens = {"hf_right"}
    assert "or it is private: check the name, or set HF_TOKEN" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert "or it is private and the token may not read it" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    planned()


@pytest.mark.parametrize(
    ("part", "status", "expected"),
    [
        (f"/api/models/{TEACHER}", 500, "the hub answered 500, which is its own failure: try again later"),
        (f"/api/models/{TEACHER}/tree", 503, "the hub answered 503"),
        (f"HEAD /{TEACHER}/resolve", 503, "the hub answered 503"),
        *slow(("GET /blobs", 500, "the hub answered 500")),  # retried
        (f"/api/models/{TEACHER}", 429, "the hub refuses so many requests (429): wait a few minutes"),
        (f"/api/models/{TEACHER}", 403, "the token may not read it (403)"),
    ],
)
def test_what_a_hub_that_fails_is_told_as(hub: Endpoint, refused: Any, part: str, status: int, expected: str) -> None:
    hub.fails[part] = status
    assert f"cannot be downloaded: {expected}" in refused()


def test_a_hub_that_falls_silent_is_not_awaited_for_ever(
    hub: Endpoint, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.hub.reach.SILENCE", 0.2)
    hub.silent = "/api/models/acme"
    assert "cannot be downloaded: the connection broke (timed out)" in refused()


def test_pickled_weights_are_refused_by_name_and_never_fetched(hub: Endpoint, refused: Any) -> None:
    files(hub)["pytorch_model.bin"] = files(hub).pop(WEIGHTS)
    said = refused()
    assert "its weights are pytorch_model.bin, a pickle, which can run code when loaded, and no *.safetensors" in said
    assert f"{TEACHER}@refs/pr/NUMBER" in said
    assert hub.fetched(".bin") == []


def test_what_is_no_checkpoint_is_told(hub: Endpoint, refused: Any) -> None:
    del files(hub)[WEIGHTS]
    assert "it has no weights: no *.safetensors" in refused()
    hub.models[TEACHER] = Repository({LATER: {"README.md": b"a reader"}}, refs={"main": LATER})
    assert "it is not a transformers checkpoint: it has no config.json" in refused()


def test_offline_the_cache_does(hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    begun = time.monotonic()
    said = refused()
    assert time.monotonic() - begun < 5
    assert "is not in the hub's cache, and HF_HUB_OFFLINE forbids asking the hub" in said
    assert said.endswith(", or unset HF_HUB_OFFLINE\n")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    planned()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.requests.clear()
    planned()
    assert hub.requests == []


def test_a_branch_that_moves_is_another_commit_and_said(hub: Endpoint, planned: Any) -> None:
    def note(commit: str) -> str:
        return f"teacher {TEACHER}: main is commit {commit} now; give --teacher {TEACHER}@{commit} to stay with it"

    before = planned()
    assert note(COMMIT) in before["notes"]
    hub.models[TEACHER].commits[LATER] = files(hub) | {"tokenizer.json": files(hub)["tokenizer.json"] + b"\n"}
    hub.models[TEACHER].refs["main"] = LATER
    after = planned()
    assert note(LATER) in after["notes"]
    assert [stage["key"] for stage in after["stages"]] != [stage["key"] for stage in before["stages"]]
    pinned = planned(f"{TEACHER}@{COMMIT}")
    assert [stage["key"] for stage in pinned["stages"]] == [stage["key"] for stage in before["stages"]]
    assert not [line for line in pinned["notes"] if "commit" in line]


def test_a_card_names_a_repository_at_a_commit(hub: Endpoint, planned: Any, refused: Any) -> None:
    card = "name: mine\ntitle: Mine\nlicence: MIT\ncheckpoint: {hub: acme/tiny-bert, revision: REVISION}\n"
    Path("mine.yaml").write_text(card.replace("REVISION", COMMIT))
    planned("mine.yaml")
    assert weights() == files(hub)[WEIGHTS]
    Path("mine.yaml").write_text(card.replace("REVISION", "d" * 40))
    assert f"teacher mine: {TEACHER} at {'d' * 40} cannot be downloaded: it has no revision" in refused("mine.yaml")


@pytest.mark.slow
def test_a_process_of_its_own_takes_the_endpoint_from_its_environment(hub: Endpoint, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "compress", "plan", "int8", "--task", "reviews.yaml", "--teacher", TEACHER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "data: 58 train, 6 tuning texts" in done.stdout
    there = tmp_path / "home" / "hub" / "models--acme--tiny-bert" / "snapshots" / COMMIT / WEIGHTS
    assert there.read_bytes() == files(hub)[WEIGHTS]
