"""A task from files alone: its kind and labels are detected, and its keys do not depend on the working directory."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from review_files import write

from compress.cli.predict.rows import Rows
from compress.errors import CompressError
from compress.spec.source import load
from compress.spec.task import TaskSpec
from compress.tasks import OwnFiles, fingerprint, load_training, own_task
from compress.tasks.own.template import guess_columns, task_yaml


@pytest.fixture
def own(tmp_path: Path) -> OwnFiles:
    labels = ["Travel", "Food"] * 10
    return OwnFiles(write(tmp_path, "news.csv", labels), write(tmp_path, "b.csv", labels), "review", label="stars")


def test_classes_are_found_and_the_task_can_be_read(own: OwnFiles) -> None:
    spec, folder = own_task(own)
    assert (spec.name, spec.kind, spec.labels, spec.metrics) == (
        "news", "classification", ("Food", "Travel"), ("accuracy",),
    )  # fmt: skip
    data = load_training(spec, folder, None)
    assert len(data.train) + len(data.tuning) == 40


@pytest.mark.parametrize(
    ("labels", "kind", "names"),
    [
        (["3.5", "2", "4.25"], "regression", None),
        (["1.0", "2.0"], "regression", None),
        (["1e-1", "2"], "regression", None),
        (["2", "10", "1"], "classification", ("1", "2", "10")),
        (["-1", "1"], "classification", ("-1", "1")),
        (["1.0", "two"], "classification", ("1.0", "two")),
        (["nan", "good"], "classification", ("good", "nan")),
        (["a|b", "b|c"], "classification", ("a|b", "b|c")),
        (["a|b", "b", "a"], "multilabel", ("a", "b")),
        (["a|b", "b|a", "a|c", "c|a", "b|c"], "classification", ("a|b", "a|c", "b|a", "b|c", "c|a")),
        (["a|b", "b|a", "a", "b"], "classification", ("a", "a|b", "b", "b|a")),
        (["a|", "b|", "a|b|"], "classification", ("a|", "a|b|", "b|")),
    ],
)
def test_numbers_with_a_decimal_point_are_scores(
    tmp_path: Path, labels: list[str], kind: str, names: tuple[str, ...] | None
) -> None:
    files = OwnFiles(write(tmp_path, "a.csv", labels), write(tmp_path, "b.csv", labels), "review", label="stars")
    spec, _ = own_task(files)
    assert (spec.kind, spec.labels) == (kind, names)


def test_floats_of_json_are_scores_and_whole_numbers_are_classes(tmp_path: Path) -> None:
    for name, label in (("scores", 2.5), ("classes", 2)):
        rows = [{"text": f"film {i}", "label": label + i % 2} for i in range(8)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    specs = [own_task(OwnFiles(tmp_path / f"{name}.jsonl", tmp_path / "b.jsonl"))[0] for name in ("scores", "classes")]
    assert [(spec.kind, spec.labels) for spec in specs] == [("regression", None), ("classification", ("2", "3"))]


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (["pos", "neg", "Pos"], "labels of train differ only in case: 'Pos' (2) and 'pos' (2)"),
        (["0", "1", "1.0"], "labels of train are the same number: '1' (2) and '1.0' (2)"),
        (["0", "1", "True"], "labels of train may mean the same: '1' (2) and 'True' (2)"),
        (["0", "True", "true"], "labels of train differ only in case: 'True' (2) and 'true' (2)"),
        (["a|b", "B", "b"], "labels of train differ only in case: 'B' (2) and 'b' (4)"),
        (
            ["caf\u00e9", "cafe\u0301", "bar"],
            "labels of train look alike, and their characters are encoded in different ways: 'cafe\\u0301' (2) and 'caf\\xe9' (2)",
        ),
        (
            ["\u00c9t", "e\u0301t", "bar"],
            "labels of train differ only in case and in how their characters are encoded: 'e\\u0301t' (2) and '\\xc9t' (2)",
        ),
        (
            ["K", "\u212a"],
            "labels of train look alike, and their characters are encoded in different ways: 'K' (2) and '\\u212a' (2)",
        ),
        (["9007199254740992", "9007199254740993"], None),
        (["pos", "neg"], None),
    ],
)
def test_labels_that_may_be_one_are_noted(tmp_path: Path, labels: list[str], note: str | None) -> None:
    files = OwnFiles(write(tmp_path, "a.csv", labels), write(tmp_path, "b.csv", labels), "review", label="stars")
    kind = "multilabel" if "a|b" in labels else "classification"
    spec = own_task(replace(files, kind=kind))[0].model_copy(update={"tuning_fraction": 0.5})  # type: ignore[arg-type]
    assert [line for line in load_training(spec, tmp_path, None).notes if "labels of" in line] == [note] * bool(note)


def test_the_kind_may_be_said(tmp_path: Path) -> None:
    labels = [f"{i}" for i in range(150)]
    files = [write(tmp_path, name, labels) for name in ("a.csv", "b.csv")]
    for kind, count in (("classification", 150), ("regression", 0)):
        spec, _ = own_task(OwnFiles(files[0], files[1], "review", label="stars", kind=kind))  # type: ignore[arg-type]
        assert (spec.kind, len(spec.labels or ())) == (kind, count)


def test_the_same_files_are_the_same_task_from_any_folder(own: OwnFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    absolute = own_task(own)
    monkeypatch.chdir(own.train.parent)
    relative = own_task(OwnFiles(Path("news.csv"), Path("b.csv"), "review", label="stars"))
    assert fingerprint(*absolute, None) == fingerprint(*relative, None)


def test_files_of_two_folders_behind_a_link(tmp_path: Path) -> None:
    train, dev = (write(tmp_path / "deep" / "er", "train.csv", ["a", "b"]), write(tmp_path / "other", "b.csv", ["a"]))
    (tmp_path / "link").symlink_to(train.parent)
    spec, folder = own_task(OwnFiles(tmp_path / "link" / "train.csv", dev, "review", label="stars"))
    assert spec.name == "er"  # the file's name is only the split's
    assert spec.files is not None
    assert (folder / str(spec.files.dev)).read_text() == dev.read_text()


@pytest.mark.parametrize("name", ["sst2.csv", "SST2.csv"])
def test_a_builtin_task_keeps_its_name_for_itself(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, ["a", "b"])
    assert own_task(OwnFiles(path, tmp_path / "b.csv", "review", label="stars"))[0].name == "sst2-own"


def test_the_written_task_file_is_the_task(own: OwnFiles, tmp_path: Path) -> None:
    """Values that YAML would read as something else are quoted, and the same files have the same keys."""
    for path, labels in ((own.train, ["yes", "1", "a: b", "# c"]), (own.dev, ["yes", "1"])):
        write(path.parent, path.name, labels)
    file = tmp_path / "out.yaml"
    file.write_text(task_yaml(own, file)[0])
    assert load(file, TaskSpec) == own_task(own)[0]
    assert fingerprint(load(file, TaskSpec), tmp_path, None) == fingerprint(*own_task(own), None)


def test_where_the_files_stand_has_no_say_and_what_is_in_them_has(own: OwnFiles, tmp_path: Path) -> None:
    """A task file that `init` writes elsewhere has other paths to the files."""
    expected = fingerprint(*own_task(own), None)
    far = tmp_path / "deep" / "er" / "news.yaml"
    far.parent.mkdir(parents=True)
    far.write_text(task_yaml(own, far)[0])
    assert fingerprint(load(far, TaskSpec), far.parent, None) == expected
    text = own.train.read_text()
    own.train.write_text(text.replace("\n", "\r\n"))
    assert fingerprint(*own_task(own), None) != expected
    own.train.write_text(text)
    assert fingerprint(*own_task(own), None) == expected
    far.write_text(far.read_text().replace("  dev:", "  quoting: false\n  dev:", 1))
    assert fingerprint(load(far, TaskSpec), far.parent, None) != expected


def test_a_task_file_says_that_its_name_is_the_folder_s(tmp_path: Path) -> None:
    for name, said in (("train.csv", True), ("Data-train.csv", True), ("films-train.csv", False)):
        train, dev = write(tmp_path / "shop", name, ["a", "b"] * 4), write(tmp_path / "shop", "b.csv", ["a", "b"] * 4)
        text, *_ = task_yaml(OwnFiles(train, dev, "review", label="stars"), tmp_path / "out.yaml")
        assert (f"taken from its folder, since {name} names no task" in text) is said
        assert f"name: {'shop' if said else 'films'}  #" in text


def test_columns_parted_by_semicolons_are_read_alike(own: OwnFiles, tmp_path: Path) -> None:
    """Spreadsheets write semicolons where the comma is the decimal sign; commas and semicolons inside texts stay."""
    for path in (own.train, own.dev):
        lines = path.read_text().replace(",", ";").splitlines()
        path.write_text("\n".join([*lines, '"so; so, and ""so""";Food', "a, b;Travel"]))
    data = load_training(*own_task(own), None)
    texts = {*data.train.texts[0], *data.tuning.texts[0]}
    assert len(data.train) + len(data.tuning) == 42
    assert {'so; so, and "so"', "a, b"} <= texts
    columns = guess_columns(own, [])
    assert (columns.text, columns.label) == ("review", "stars")


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"'])
def test_a_first_line_for_excel_names_the_delimiter(own: OwnFiles, line: str) -> None:
    for path in (own.train, own.dev):
        path.write_text(f"{line}\r\n" + path.read_text().replace(",", ";"))
    spec, folder = own_task(own)
    assert spec.text == ("review",)
    assert len(load_training(spec, folder, None).train) > 0
    with closing(Rows(own.dev, ".csv")) as rows:
        first = next(iter(rows))
        assert (rows.delimiter, list(first.values), first.number) == (";", ["review", "stars"], 3)
    own.dev.write_text(f"{line}\nreview;stars\na;Foood\n")
    with pytest.raises(CompressError, match=r"b\.csv: line 3: unknown label 'Foood'"):
        load_training(spec, folder, None)


def test_a_label_of_dev_that_train_has_not_is_told_by_init_as_by_run(own: OwnFiles, tmp_path: Path) -> None:
    own.dev.write_text("review,stars\na,Food\nb,Foood\n")
    with pytest.raises(CompressError, match=r"b\.csv: line 3: unknown label 'Foood'; did you mean 'Food'\?") as caught:
        task_yaml(own, tmp_path / "out.yaml")
    with pytest.raises(CompressError) as running:
        load_training(*own_task(own), None)
    assert str(running.value).split(": ", 1)[1] == str(caught.value).split(": ", 1)[1]


PAIRS = {
    "texts": ([f"it follows from that {i}" for i in range(40)], True),
    "repeated": ([f"it follows from that {i // 4}" for i in range(40)], True),
    "names": ([f"Ann Smith{i}" for i in range(40)], False),
    "classes": ([f"one of the classes {i % 3}" for i in range(40)], False),
    "numbers": (list(range(40)), False),
}


@pytest.mark.parametrize("case", PAIRS)
def test_texts_that_nothing_reads_are_told(tmp_path: Path, case: str) -> None:
    values, expected = PAIRS[case]
    for name in ("a.jsonl", "b.jsonl"):
        rows = [
            {"id": i, "premise": f"{name} is number {i}", "second": value, "label": "yn"[i % 2]}
            for i, value in enumerate(values)
        ]
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
    files = OwnFiles(tmp_path / "a.jsonl", tmp_path / "b.jsonl", "premise")
    advice = load_training(*own_task(files), None).advice
    assert [
        ("a.jsonl: the texts in column 'second' are not read" in line, "--pair second" in line) for line in advice
    ] == [(True, True)] * expected
    if case == "texts":
        assert load_training(*own_task(replace(files, pair="second")), None).advice == ()
