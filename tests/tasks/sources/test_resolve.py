"""Task files, and the fingerprint of a task's data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from whole import load_task

from compress.errors import CompressError
from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import BUILTIN_TASKS, fingerprint, load_reported, load_training, resolve_task

GOOD = "name: mine\ntext: [text]\nlabel: label\nmetrics: [accuracy]\nfiles: {train: train.csv, dev: dev.csv}\n"


@pytest.fixture
def file(here: Path) -> Path:
    (here / "mine.yaml").write_text(GOOD)
    return here / "mine.yaml"


def test_a_task_file(file: Path) -> None:
    spec, folder = resolve_task(str(file))
    assert folder == file.parent
    assert len(load_task(spec, folder, None).reported["dev"]) == 20


@pytest.mark.parametrize(
    ("files", "field", "name"),
    [
        ("{train: no.csv, dev: dev.csv}", "files.train", "no.csv"),
        ("{train: train.csv, dev: no.csv}", "files.dev", "no.csv"),
        ("{train: train.csv, dev: {one: dev.csv, two: sub/no.csv}}", "files.dev.two", "sub/no.csv"),
        ("{train: train.csv, dev: dev.csv, tuning: no.csv}", "files.tuning", "no.csv"),
    ],
)
def test_a_file_that_is_not_there_is_told_by_the_task_files_field(
    file: Path, files: str, field: str, name: str
) -> None:
    file.write_text(f"{GOOD.partition('files')[0]}files: {files}\n")
    spec, folder = resolve_task(str(file))
    message = f"{file}: {field}: {file.parent / name}: no such file; paths are relative to the task file's folder"
    for read in (fingerprint, load_training, load_reported):
        with pytest.raises(CompressError) as caught:
            read(spec, folder, None)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("labels", "advice"),
    [
        ("", "the labels are those of train: correct the row, or list all as `labels` in {}"),
        ("labels: [neg, pos]\n", "the labels are those in {}: correct the row, or add it to `labels` there"),
    ],
)
def test_an_unknown_label_is_told_with_where_labels_come_from(file: Path, labels: str, advice: str) -> None:
    file.write_text(GOOD + labels)
    (file.parent / "dev.csv").write_text("text,label\na,pos\nb,odd\n")
    spec, folder = resolve_task(str(file))
    with pytest.raises(CompressError) as caught:
        load_task(spec, folder, None)
    assert str(caught.value).endswith(f"dev.csv: line 3: unknown label 'odd'; known: neg, pos; {advice.format(file)}")


def test_mistakes_in_a_task_file(file: Path) -> None:
    file.write_text(GOOD.replace("label: label", "lable: label"))
    with pytest.raises(CompressError, match=r"mine.yaml:3: lable: unknown key; did you mean `label`"):
        resolve_task(str(file))
    with pytest.raises(CompressError, match=r"none.yaml"):
        resolve_task(str(file.parent / "none.yaml"))


def test_a_task_file_named_without_its_suffix(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(CompressError, match=r"^no task 'mine' comes with the package; .* with its suffix: mine\.yaml$"):
        resolve_task("mine")


def test_a_synthetic_task_with_the_wrong_number_of_columns() -> None:
    spec = BUILTIN_TASKS["toy-sentiment"]
    wrong = spec.model_copy(update={"synthetic": Synthetic(generator="entailment", train=9, dev=3)})
    with pytest.raises(CompressError, match="`text` names 1 columns, the generator entailment makes 2"):
        load_task(wrong, None, None)


def test_fingerprint_changes_with_data_and_spec_alone(file: Path) -> None:
    spec, here = resolve_task(str(file))
    assert here is not None

    def changed(**fields: Any) -> TaskSpec:
        return spec.model_copy(update=fields)

    first = fingerprint(spec, here, None)
    assert fingerprint(changed(title="Another title"), here, None) == first
    assert load_task(spec, here, None).fingerprint == first
    assert fingerprint(changed(max_length=64), here, None) != first
    assert fingerprint(changed(tuning_examples=5), here, None) != first
    dev = here / "dev.csv"
    dev.write_text(dev.read_text().replace("dev 7", "dev 8"))
    assert fingerprint(spec, here, None) != first


def test_fingerprint_is_the_same_wherever_the_folder_is(file: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other, (spec, here) = tmp_path_factory.mktemp("elsewhere"), resolve_task(str(file))
    for name in ("train.csv", "dev.csv"):
        (other / name).write_bytes((file.parent / name).read_bytes())
    assert fingerprint(spec, here, None) == fingerprint(spec, other, None)
