"""Data sets through `datasets`, offline: folders in the layout of hub repositories, and saved ones."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from whole import load_task

from compress.errors import CompressError
from compress.spec.task import Hub, TaskSpec
from compress.tasks import dataset_id, fingerprint
from compress.tasks.sources.glue import GLUE, REVISION

datasets = pytest.importorskip("datasets")
CARD = """---
configs:
- config_name: rte
  data_files:
  - {split: train, path: rte/train-*}
  - {split: validation, path: rte/validation-*}
  - {split: test, path: rte/test-*}
- config_name: mnli
  data_files:
  - {split: train, path: mnli/train-*}
  - {split: validation_matched, path: mnli/validation_matched-*}
  - {split: validation_mismatched, path: mnli/validation_mismatched-*}
---
"""
RTE = ["entailment", "not_entailment"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def dataset(columns: tuple[str, ...], names: list[str] | None, labels: list[Any], mark: str) -> Any:
    texts = {column: [f"{mark} {column} {i}" for i in range(len(labels))] for column in columns}
    feature = datasets.ClassLabel(names=names) if names else datasets.Value("float32")
    features = datasets.Features({**{c: datasets.Value("string") for c in columns}, "label": feature})
    return datasets.Dataset.from_dict({**texts, "label": labels}, features=features)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder in the hub's `nyu-mll/glue` layout: a card with the configurations, Parquet files per split."""
    root = tmp_path / "glue"
    mnli = ["entailment", "neutral", "contradiction"]
    parts = {
        "rte/train": dataset(("sentence1", "sentence2"), RTE, [0, 1] * 10, "train"),
        "rte/validation": dataset(("sentence1", "sentence2"), RTE, [1, 0, 0], "dev"),
        "rte/test": dataset(("sentence1", "sentence2"), RTE, [-1] * 3, "test"),
        "mnli/train": dataset(("premise", "hypothesis"), mnli, [0, 1, 2] * 5, "train"),
        "mnli/validation_matched": dataset(("premise", "hypothesis"), mnli, [0, 1, 2], "matched"),
        "mnli/validation_mismatched": dataset(("premise", "hypothesis"), mnli, [2, 1], "mismatched"),
    }
    for name, part in parts.items():
        path = root / f"{name}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        part.to_parquet(path)
    (root / "README.md").write_text(CARD)
    return root


def local(name: str, path: str = "glue", **hub: Any) -> TaskSpec:
    """Return the GLUE task with this name, read from a folder beside the task file instead of the hub."""
    spec = GLUE[name]
    own = spec.hub
    assert own is not None
    return spec.model_copy(update={"hub": own.model_copy(update={"path": path, "revision": None, **hub})})


def test_glue_pins_the_hubs_revision() -> None:
    for spec in GLUE.values():
        assert spec.hub is not None
        assert (spec.hub.path, spec.hub.revision) == ("nyu-mll/glue", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c")


def test_a_folder_laid_out_as_the_hub(repository: Path) -> None:
    data = load_task(local("rte"), repository.parent, None)
    assert data.source == "hub"
    assert data.labels == ("entailment", "not_entailment")
    assert len(data.train) + len(data.tuning) == 20
    assert data.reported["dev"].labels.tolist() == [1, 0, 0]
    assert data.reported["dev"].texts[1][2] == "dev sentence2 2"


def test_a_data_directory_without_the_tasks_data_is_told(repository: Path) -> None:
    spec, elsewhere = local("rte").model_copy(update={"name": "mine"}), repository.parent / "elsewhere"
    elsewhere.mkdir()
    data, plain = load_task(spec, repository.parent, elsewhere), load_task(spec, repository.parent, None)
    assert data.source == "hub"
    assert {*data.notes} - {*plain.notes} == {
        "--data-dir holds none of its data, which are read from where the task says"
    }


def test_a_folder_whose_times_stayed_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "sets").mkdir()
    for name in ("train", "validation"):
        path = tmp_path / "sets" / f"{name}.jsonl"
        path.write_text(
            "".join(json.dumps({"text": f"old {name} {row}", "label": row % 2}) + "\n" for row in range(30))
        )
        os.utime(path, (1, 1))
    spec = TaskSpec(
        name="t", text=("text",), label="label", labels=("0", "1"), metrics=("accuracy",), hub=Hub(path="sets")
    )
    assert load_task(spec, tmp_path, None).train.texts[0][0].startswith("old")
    for path in (tmp_path / "sets").iterdir():
        path.write_text(path.read_text().replace("old", "new"))
        os.utime(path, (1, 1))
    assert load_task(spec, tmp_path, None).train.texts[0][0].startswith("new")


def test_a_folder_in_the_place_of_a_revision_is_told(repository: Path) -> None:
    assert load_task(local("rte", revision=REVISION), repository.parent, None).notes[0] == (
        "data set glue: read from the folder of that name beside the task file, not from the hub"
    )


def test_mnli_has_both_dev_sets(repository: Path) -> None:
    reported = load_task(local("mnli"), repository.parent, None).reported
    assert {name: len(split) for name, split in reported.items()} == {"dev_matched": 3, "dev_mismatched": 2}


def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[Any, ...]] = []

    def load_splits(path: str, name: str, commit: str, splits: list[str], remedies: str) -> list[Any]:
        requests.append((path, name, commit, splits))
        return [dataset(("sentence1", "sentence2"), RTE, [0, 1] * 10, part) for part in splits]

    monkeypatch.setattr("compress.tasks.sources.hub.load_splits", load_splits)
    data = load_task(GLUE["rte"], None, None)
    assert requests == [
        ("nyu-mll/glue", "rte", REVISION, splits) for splits in (["train", "validation"], ["validation"])
    ]
    assert data.notes == ("train has 20 of 2,490 rows: a subset", "dev has 20 of 277 rows: a subset")


def test_only_a_data_set_of_the_hub_has_its_name(repository: Path) -> None:
    named, there = local("rte", path="a/b"), repository.parent / "a" / "b"
    assert dataset_id(GLUE["rte"], None) == "nyu-mll/glue"
    assert dataset_id(named, repository.parent) == "a/b"
    there.mkdir(parents=True)
    assert dataset_id(named, repository.parent) is None
    for path in (".", "./elsewhere", "/elsewhere"):
        assert dataset_id(local("rte", path=path), repository.parent) is None


def test_hidden_labels_are_refused(repository: Path) -> None:
    with pytest.raises(CompressError, match=r"split test: row 1: unknown label '-1' \(-1 marks hidden labels"):
        load_task(local("rte", dev="test"), repository.parent, None)


def test_unknown_split_configuration_and_folder(repository: Path) -> None:
    with pytest.raises(CompressError, match=r"cannot be read: Unknown split \"dev\""):
        load_task(local("rte", dev="dev"), repository.parent, None)
    with pytest.raises(CompressError, match=r"cannot be read: BuilderConfig 'wnli' not found"):
        load_task(local("wnli"), repository.parent, None)
    with pytest.raises(CompressError, match=r"elsewhere: no such folder; `hub.path` is a hub id"):
        load_task(local("rte", path="./elsewhere"), repository.parent, None)


def test_without_network_the_message_says_what_to_do() -> None:
    with pytest.raises(CompressError, match=r"data set nyu-mll/glue: cannot be read: .*--data-dir"):
        load_task(GLUE["rte"], None, None)


@pytest.mark.parametrize("revision", [None, "main", "abc123"])
def test_a_hub_data_set_needs_a_commit(revision: str | None) -> None:
    spec = local("rte", path="someone/something", revision=revision)
    message = rf"hub.revision: expected a commit \(40 hexadecimal digits\), found {revision!r}; \S+/datasets/someone/something/commits/main"
    for function in (load_task, fingerprint):
        with pytest.raises(CompressError, match=message):
            function(spec, None, None)


def save(folder: Path, labels: list[Any] | None = None, names: list[str] | None = RTE, **columns: Any) -> Path:
    parts = {
        "train": dataset(("sentence1", "sentence2"), names, labels or [0, 1] * 10, "train"),
        "validation": dataset(("sentence1", "sentence2"), names, labels or [1, 0], "dev"),
    }
    datasets.DatasetDict(parts).save_to_disk(str(folder))
    return folder


@pytest.mark.parametrize("where", ["", "RTE", "rte"])
def test_a_saved_folder_as_data_directory(tmp_path: Path, where: str) -> None:
    save(tmp_path / "data" / where)
    data = load_task(GLUE["rte"], None, tmp_path / "data")
    assert data.source == "saved"
    assert data.reported["dev"].labels.tolist() == [1, 0]
    assert "train has 20 of 2,490 rows: a subset" in data.notes


def test_a_saved_folder_beside_the_task_file(tmp_path: Path) -> None:
    save(tmp_path / "mine")
    spec = TaskSpec(name="own", text=("sentence1",), label="label", metrics=("accuracy",), hub=Hub(path="mine"))
    data = load_task(spec, tmp_path, None)
    assert data.source == "saved"
    assert data.labels == ("entailment", "not_entailment")  # as the column declares them


def test_labels_are_matched_by_name_not_by_number(tmp_path: Path) -> None:
    save(tmp_path / "swapped", names=["not_entailment", "entailment"])
    data = load_task(GLUE["rte"], None, tmp_path / "swapped")
    assert data.labels == ("entailment", "not_entailment")
    assert data.reported["dev"].labels.tolist() == [0, 1]  # ids 1, 0 in the file's own order


def test_a_saved_folder_with_other_labels_or_columns(tmp_path: Path) -> None:
    save(tmp_path / "a", names=["yes", "no"])
    with pytest.raises(CompressError, match=r"split train: row 1: unknown label 'yes'; .*; 20 such rows in all"):
        load_task(GLUE["rte"], None, tmp_path / "a")
    with pytest.raises(CompressError, match=r"split train: no column 'sentence'; did you mean `sentence"):
        load_task(GLUE["sst2"], None, tmp_path / "a")


def test_a_saved_folder_without_the_split(tmp_path: Path) -> None:
    save(tmp_path / "a")
    with pytest.raises(CompressError, match=re.escape("no split 'validation_matched'; did you mean `validation`?")):
        load_task(GLUE["mnli"], None, tmp_path / "a")


def test_a_damaged_saved_folder(tmp_path: Path) -> None:
    (save(tmp_path / "a") / "train" / "state.json").unlink()
    with pytest.raises(CompressError, match=r"/a: cannot be read as a saved DatasetDict: "):
        load_task(GLUE["rte"], None, tmp_path / "a")


def test_saved_regression_scores(tmp_path: Path) -> None:
    save(tmp_path / "a", labels=[0.5, 4.25] * 4, names=None)
    assert load_task(GLUE["stsb"], None, tmp_path / "a").reported["dev"].labels.tolist() == [0.5, 4.25] * 4


def test_fingerprints_follow_what_is_read(tmp_path: Path, repository: Path) -> None:
    assert fingerprint(GLUE["rte"], None, None) != fingerprint(GLUE["wnli"], None, None)
    other = local("rte", path="nyu-mll/glue", revision="0" * 40)
    assert fingerprint(other, None, None) != fingerprint(GLUE["rte"], None, None)
    folder, data_dir = repository.parent, save(tmp_path / "a")
    changes: list[tuple[Callable[[], str], Path]] = [
        (lambda: fingerprint(GLUE["rte"], None, data_dir), data_dir / "validation" / "data-00000-of-00001.arrow"),
        (lambda: fingerprint(local("rte"), folder, None), repository / "rte/train-00000-of-00001.parquet"),
    ]
    for current, file in changes:
        before = current()
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 1
        file.write_bytes(bytes(raw))
        assert current() != before
