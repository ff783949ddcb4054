"""Data sets as a corpus, offline: saved folders, and folders in the layout of hub repositories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compress.corpus import corpus_fingerprint, corpus_sources
from compress.corpus.sources import paragraphs
from compress.errors import CompressError

datasets = pytest.importorskip("datasets")
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = ["One.\nTwo.\n\n Three.", "Four."]
LINES = ["One.", "Two.", "Three.", "", "Four.", "", ""]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def dataset(column: str = "text", rows: list[Any] = ROWS) -> Any:
    return datasets.Dataset.from_dict({"title": [str(i) for i in range(len(rows))], column: rows})


def read(word: str) -> list[str]:
    return list(paragraphs(corpus_sources([word])))


def save(folder: Path, how: str, column: str = "text") -> Path:
    if how == "dataset":
        dataset(column).save_to_disk(str(folder))
    elif how == "dictionary":
        datasets.DatasetDict({"train": dataset(column)}).save_to_disk(str(folder))
    else:
        folder.mkdir()
        dataset(column).to_parquet(folder / "train-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize("how", ["dataset", "dictionary", "repository"])
def test_each_row_of_a_folder_is_a_document(tmp_path: Path, how: str):
    assert read(f"hub:{save(tmp_path / 'data', how)}") == LINES
    assert read(f"hub:{save(tmp_path / 'other', how, 'body')}:body") == LINES


def test_the_hub_is_asked_for_the_revision_and_streams(monkeypatch: pytest.MonkeyPatch):
    requests: list[tuple[Any, ...]] = []

    def load_splits(
        name: str, config: str | None, commit: str, splits: list[str], remedies: str, *, streaming: bool
    ) -> Any:
        requests.append((name, config, commit, *splits, streaming))
        return [dataset("body").to_iterable_dataset()]

    monkeypatch.setattr("compress.corpus.hub.load_splits", load_splits)
    assert read(f"hub:owner/name/20231101.en@{COMMIT}:body") == LINES
    assert read(f"hub:owner/name@{COMMIT}:body") == LINES
    assert requests == [
        ("owner/name", "20231101.en", COMMIT, "train", True),
        ("owner/name", None, COMMIT, "train", True),
    ]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("hub:owner/name", r"expected a commit \(40 hexadecimal digits\) after @, found None"),
        (
            "hub:owner/name@main:text",
            r"found 'main'; https://huggingface.co/datasets/owner/name/commits/main lists them",
        ),
        (f"hub:a/b/c/d@{COMMIT}", r"expected hub:OWNER/NAME\[/CONFIG\]@REVISION\[:COLUMN\] or hub:\./FOLDER"),
        ("hub:", r"expected hub:OWNER"),
        ("hub:./nowhere", r"nowhere: no such folder"),
    ],
)
def test_what_names_no_data_set_is_refused(word: str, message: str):
    with pytest.raises(CompressError, match=message):
        corpus_sources([word])


def test_a_data_set_that_cannot_be_read_is_told_in_one_line(tmp_path: Path):
    with pytest.raises(
        CompressError,
        match=rf"^data set owner/name: cannot be read: commit {COMMIT} is not in the hub.s cache, [^\n]*; give text",
    ):
        read(f"hub:owner/name@{COMMIT}")
    folder = save(tmp_path / "a", "dataset", "txt")
    with pytest.raises(CompressError, match=r"no column 'text'; did you mean `txt`\?; name one after a colon"):
        read(f"hub:{folder}")
    dataset(rows=["fine", None]).save_to_disk(str(tmp_path / "b"))
    with pytest.raises(CompressError, match=r"row 2: text: expected text, found NoneType"):
        read(f"hub:{tmp_path / 'b'}")
    datasets.DatasetDict({"test": dataset()}).save_to_disk(str(tmp_path / "c"))
    with pytest.raises(CompressError, match=r"no split 'train'; found 'test'"):
        read(f"hub:{tmp_path / 'c'}")


def test_the_fingerprint_follows_revision_column_and_saved_contents(tmp_path: Path):
    words = [f"hub:owner/name@{COMMIT}", f"hub:owner/name@{COMMIT[::-1]}", f"hub:owner/name/x@{COMMIT}"]
    words += [f"hub:owner/name@{COMMIT}:body", f"hub:{save(tmp_path / 'a', 'dataset')}"]
    words += [f"hub:{save(tmp_path / 'b', 'dataset', 'body')}"]
    assert len({corpus_fingerprint(corpus_sources([word])) for word in words}) == len(words)
    same = tmp_path / "moved"
    (tmp_path / "a").rename(same)
    before = corpus_fingerprint(corpus_sources([f"hub:{same}"]))
    same.rename(tmp_path / "again")
    assert before == corpus_fingerprint(corpus_sources([f"hub:{tmp_path / 'again'}"]))
