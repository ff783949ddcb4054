"""Tasks whose data are on the hub, through `datasets` and a local endpoint: only the commit's data are used, and errors are explained."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow
from hub_downloads import CHUNK, COMMIT, LATER, TRIES, Endpoint, Repository
from huggingface_hub import constants

from compress.corpus import corpus_sources
from compress.corpus.sources import paragraphs
from compress.errors import CompressError

pytestmark = pytest.mark.end_to_end

DATA = "acme/reviews"


@pytest.fixture
def refused(cli: Any, hub: Endpoint) -> Any:
    """Return the one line of a `compress plan` that exits with 2. `old`, `new`: a change of the task."""

    def plan(old: str = "", new: str = "") -> str:
        task = Path("reviews.yaml").read_text()
        Path("changed.yaml").write_text(task.replace(old, new))
        code, out, err = cli("plan", "int8", "--task", "changed.yaml", "--teacher", "bert-mini")
        assert (code, out) == (2, "")
        assert err.startswith("error: data set acme/")
        assert err.count("\n") == 1
        assert "hf_" not in err
        assert hub.tries <= TRIES
        return err

    return plan


@pytest.fixture
def planned(cli: Any) -> Any:
    """Return a function that runs `compress plan` and returns its document."""

    def plan() -> dict[str, Any]:
        code, out, err = cli("plan", "int8", "--task", "reviews.yaml", "--teacher", "bert-mini", "--json")
        assert (code, err) == (0, ""), err
        return json.loads(out)[0]

    return plan


def rows(document: dict[str, Any]) -> int:
    return document["data"]["train"] + document["data"]["tuning"]


def change_commit(commit: str) -> None:
    Path("reviews.yaml").write_text(Path("reviews.yaml").read_text().replace(COMMIT, commit))


def test_a_download_is_used_and_not_repeated(hub: Endpoint, planned: Any) -> None:
    assert rows(planned()) == 64
    assert len(hub.fetched(".parquet")) == 2
    hub.requests.clear()
    assert rows(planned()) == 64
    assert hub.requests == []


def test_a_run_measures_what_it_downloaded(hub: Endpoint, cli: Any) -> None:
    short = ("--set", "finetune.max_steps=1", "--set", "quantize.method=dynamic", "--precision", "fp32", "--no-bench")
    command = ("run", "int8", "--task", "reviews.yaml", "--teacher", "acme/tiny-bert", "--threads", "1", *short)
    code, _, err = cli(*command)
    assert code == 0, err
    (path,) = Path("runs").glob("*/result.json")
    text = path.read_text()
    assert f"acme/tiny-bert@{COMMIT}" in json.loads(text)["command"]
    assert f'"revision":"{COMMIT}"' in text.replace(" ", "")
    hub.requests.clear()
    assert cli(*command)[0] == 0
    assert hub.fetched() == []


def test_offline_the_cache_does(hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(value: bool) -> None:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", value)
        monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", value)

    offline(True)
    begun = time.monotonic()
    assert f"commit {COMMIT} is not in the hub's cache, and HF_HUB_OFFLINE forbids asking the hub; give" in refused()
    assert time.monotonic() - begun < 5
    offline(False)
    planned()
    hub.requests.clear()
    offline(True)
    assert rows(planned()) == 64
    assert hub.requests == []


@pytest.mark.parametrize("other", ["", "- config_name: other\n  data_files: other/*\n"])
def test_offline_the_configuration_that_the_card_makes_the_default_does(
    hub: Endpoint, planned: Any, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    default = "  default: true\n" if other else ""  # of one configuration there is no need to say it
    splits = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in ("train", "validation"))
    card = f"---\nconfigs:\n- config_name: plain_text\n{default}  data_files:\n{splits}{other}---\n"
    hub.datasets[DATA].commits[COMMIT] |= {"README.md": card.encode(), "other/train.csv": b"text,label\na,0\n"}
    assert rows(planned()) == 64
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    hub.requests.clear()
    assert rows(planned()) == 64
    assert hub.requests == []


@pytest.mark.parametrize("why", ["offline", "gated", *slow("gone", "failing")])
def test_another_commit_in_the_cache_is_never_taken(
    hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    planned()
    change_commit(LATER)
    hub.datasets[DATA].commits[LATER] = hub.datasets[DATA].commits[COMMIT]
    hub.datasets[DATA].gated = why == "gated"
    if why == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif why == "gone":
        del hub.datasets[DATA]
    elif why == "failing":
        hub.fails["/acme/reviews"] = 500
    expected = {"offline": "HF_HUB_OFFLINE forbids", "gated": "it is gated", "gone": "no such repository"}
    assert expected.get(why, "the hub answered 500") in refused()


@pytest.mark.slow
def test_of_two_commits_in_the_cache_each_is_found(hub: Endpoint, planned: Any) -> None:
    first = planned()
    train, dev = (f"data/{split}-00000-of-00001.parquet" for split in ("train", "validation"))
    files = hub.datasets[DATA].commits[COMMIT]
    hub.datasets[DATA].commits[LATER] = files | {train: files[dev], dev: files[train]}
    change_commit(LATER)
    assert rows(planned()) == 16
    Path("reviews.yaml").write_text(Path("reviews.yaml").read_text().replace(LATER, COMMIT))
    assert planned()["data"] == first["data"]


def test_a_folder_of_that_name_where_the_command_runs_is_not_the_data_set(hub: Endpoint, cli: Any) -> None:
    Path("acme/reviews").mkdir(parents=True)
    Path("acme/reviews/train.csv").write_text("text,label\nnot these,0\n")
    Path("tasks").mkdir()
    Path("reviews.yaml").rename("tasks/reviews.yaml")
    code, out, _ = cli("plan", "int8", "--task", "tasks/reviews.yaml", "--teacher", "bert-mini", "--json")
    assert (code, rows(json.loads(out)[0])) == (0, 64)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "train: train",
            "train: trian",
            "Unknown split \"trian\". Should be one of ['train', 'validation']; `hub.train`",
        ),
        ("revision:", "name: other, revision:", "BuilderConfig 'other' not found. Available: ['default']; `hub.name`"),
        ("text: [text]", "text: [txt]", "split train: no column 'txt'; did you mean `text`?"),
        (COMMIT, "e" * 40, f"it has no revision {'e' * 40}; "),
        (
            "acme/reviews",
            "acme/none",
            "the hub has no such repository, or it is private: check the name, or set HF_TOKEN",
        ),
    ],
)
def test_what_is_not_there_is_named(refused: Any, old: str, new: str, expected: str) -> None:
    assert expected in refused(old, new)


def test_a_gated_data_set(hub: Endpoint, refused: Any, planned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.datasets[DATA].gated, hub.datasets[DATA].tokens = True, {"hf_right"}
    page = f"{hub.url}/datasets/{DATA}"
    assert f"it is gated: accept its conditions at {page}, then set HF_TOKEN, or log in with" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    assert f"it is gated, and the token has no access to it: ask for access at {page}" in refused()
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert rows(planned()) == 64
    assert {one.token for one in hub.requests if one.host == "localhost"} == {None}


def test_a_loading_script_is_refused_and_never_run(hub: Endpoint, refused: Any) -> None:
    hub.datasets[DATA].commits[COMMIT]["reviews.py"] = b"open('script_ran', 'w')\n"
    assert "its reviews.py is a loading script, which is code and is never run" in (said := refused())
    assert "refs/convert/parquet" in said
    assert not Path("script_ran").exists()


def test_a_repository_without_data_is_told(hub: Endpoint, refused: Any) -> None:
    hub.datasets[DATA] = Repository({COMMIT: {"README.md": b"a reader"}})
    assert "doesn't contain any data files" in refused()


@pytest.mark.parametrize("part", ["HEAD /datasets/acme", "/api/datasets/acme", "GET /blobs"])
def test_what_a_hub_that_fails_is_told_as(hub: Endpoint, refused: Any, part: str) -> None:
    hub.fails[part] = 503
    assert "the hub answered 503, which is its own failure: try again later" in refused()


@pytest.mark.slow
def test_a_broken_download_goes_on_where_it_was(hub: Endpoint, planned: Any, refused: Any) -> None:
    train = "data/train-00000-of-00001.parquet"
    hub.short[train] = hub.datasets[DATA].commits[COMMIT][train][:-10]
    assert "a file was downloaded with a size other than the hub's" in refused()
    hub.short.clear()
    hub.requests.clear()
    hub.cuts[train] = [2 * CHUNK + 7]
    assert rows(planned()) == 64
    assert [one.range for one in hub.fetched(train)] == [None, f"bytes={2 * CHUNK}-"]


@pytest.mark.parametrize("damage", [(b"train film 0", b"trend film 0"), *slow(((b"PAR1", b"PAR2"),))])
def test_damaged_data_are_not_used(hub: Endpoint, planned: Any, refused: Any, damage: tuple[bytes, bytes]) -> None:
    train = "data/train-00000-of-00001.parquet"
    whole = hub.datasets[DATA].commits[COMMIT][train]
    hub.short[train] = whole.replace(*damage)
    assert (len(hub.short[train]), hub.short[train] == whole) == (len(whole), False)
    assert f"{train} is damaged: its SHA-256 is not the one that the hub names" in refused()
    hub.short.clear()
    assert rows(planned()) == 64


@pytest.mark.slow
def test_files_that_nothing_can_read_are_told(hub: Endpoint, refused: Any) -> None:
    train = "data/train-00000-of-00001.parquet"
    whole = hub.datasets[DATA].commits[COMMIT][train]
    hub.datasets[DATA].commits[COMMIT][train] = b"no table" * 9
    assert "data set acme/reviews: cannot be read: Parquet magic bytes not found in footer" in refused()
    hub.datasets[DATA] = Repository(
        {LATER: hub.datasets[DATA].commits[COMMIT] | {train: whole[:9] + b"?" * 99 + whole[108:]}}
    )
    assert "data set acme/reviews: cannot be read: its files cannot be read: " in refused(COMMIT, LATER)


def test_a_corpus_streams_its_commit_and_no_other(hub: Endpoint, planned: Any) -> None:
    def lines(commit: str) -> list[str]:
        return [line for line in paragraphs(corpus_sources([f"hub:{DATA}@{commit}"])) if line]

    assert lines(COMMIT)[:2] == ["the train film 0 is bad", "the train film 1 is good"]
    planned()  # fills a cache that `datasets` would use for any commit
    with pytest.raises(CompressError, match=rf"^data set {DATA}: cannot be read: it has no revision {LATER}; "):
        lines(LATER)
    hub.requests.clear()
    assert len(lines(COMMIT)) == 64
    assert hub.requests == []
