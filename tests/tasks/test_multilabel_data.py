"""Lists of labels, in every format that files use."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from compress.errors import CompressError
from compress.files.tabular import label_list
from compress.spec.task import Files, TaskSpec
from compress.tasks import TASK_KINDS, OwnFiles, load_reported, load_training, own_task
from compress.tasks.own.template import task_yaml

KIND = TASK_KINDS["multilabel"]
LISTS = [["sport"], ["tech", "sport"], [], ["money"], ["tech"], ["sport", "money"]] * 5
NAMES = ("money", "sport", "tech")
ROWS = [[int(name in labels) for name in NAMES] for labels in LISTS]


def texts(split: str) -> list[str]:
    return [f"{split} text {chr(97 + n % 26)}{n} of its own" for n in range(len(LISTS))]


def own(folder: Path, values: Sequence[Any], label: str = "labels", suffix: str = ".jsonl") -> OwnFiles:
    """Write two files whose label column has `values`."""
    paths = [folder / f"{split}{suffix}" for split in ("news", "dev")]
    for path in paths:
        rows = list(zip(texts(path.stem), values, strict=True))
        if suffix == ".parquet":
            table = pyarrow.table({"text": [t for t, _ in rows], "labels": pyarrow.array(list(values))})
            pyarrow.parquet.write_table(table, path)
        elif suffix == ".jsonl":
            path.write_text("".join(json.dumps({"text": t, "labels": v}) + "\n" for t, v in rows), encoding="utf-8")
        else:
            path.write_text("\n".join(["text,labels", *(f'{t},"{v}"' for t, v in rows)]) + "\n", encoding="utf-8")
    return OwnFiles(paths[0], paths[1], label=label)


def read(files: OwnFiles) -> tuple[TaskSpec, np.ndarray]:
    spec, folder = own_task(files)
    data = load_reported(spec, folder, None)
    assert data.labels == NAMES
    return spec, data.splits["dev"].labels


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_column_of_lists_is_a_task_of_several_labels(tmp_path: Path, suffix: str) -> None:
    spec, labels = read(own(tmp_path, LISTS, suffix=suffix))
    assert (spec.kind, spec.metrics) == ("multilabel", ("f1_micro", "f1_macro"))
    assert labels.dtype == np.uint8 and labels.tolist() == ROWS


@pytest.mark.parametrize("form", ["|", "; ", ",", "json", "python"])
def test_lists_written_as_text_are_read_where_the_kind_is_said(tmp_path: Path, form: str) -> None:
    written = {"json": lambda names: json.dumps(names).replace('"', '""'), "python": str}.get(form, form.join)
    files = own(tmp_path, [written(names) for names in LISTS], suffix=".csv")
    _, labels = read(OwnFiles(files.train, files.dev, label="labels", kind="multilabel"))
    assert labels.tolist() == ROWS


@pytest.mark.parametrize("form", ["|", "json", "python"])
def test_lists_that_can_be_nothing_else_need_no_kind(tmp_path: Path, form: str) -> None:
    written = {"json": lambda names: json.dumps(names).replace('"', '""'), "python": str}.get(form, form.join)
    assert read(own(tmp_path, [written(names) for names in LISTS], suffix=".csv"))[1].tolist() == ROWS


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_texts_are_lists_in_every_form_of_file(tmp_path: Path, suffix: str) -> None:
    """As in docs/kinds/multilabel.md: strings may also be mixed with lists, if a .jsonl has both."""
    values = ["|".join(names) if suffix == ".parquet" or n % 2 else names for n, names in enumerate(LISTS)]
    files = own(tmp_path, values, suffix=suffix)
    _, labels = read(OwnFiles(files.train, files.dev, label="labels", kind="multilabel"))
    assert labels.tolist() == ROWS


def test_columns_of_0_and_1_are_labels(tmp_path: Path) -> None:
    for split in ("news", "dev"):
        lines = [f"{t},{','.join(map(str, row))}" for t, row in zip(texts(split), ROWS, strict=True)]
        (tmp_path / f"{split}.csv").write_text("\n".join([f"text,{','.join(NAMES)}", *lines]) + "\n")
    files = OwnFiles(tmp_path / "news.csv", tmp_path / "dev.csv", label="money, sport,tech")
    spec, labels = read(files)
    assert spec.label == NAMES and spec.labels is None and labels.tolist() == ROWS
    path = tmp_path / "task.yaml"
    path.write_text(task_yaml(files, path)[0])
    assert "label: [money, sport, tech]" in path.read_text() and "kind: multilabel" in path.read_text()


@pytest.mark.parametrize("columns", [{"pair": "tech"}, {"text": "sport"}])
def test_a_column_of_0_and_1_is_no_text(tmp_path: Path, columns: dict[str, Any]) -> None:
    for split in ("news", "dev"):
        (tmp_path / f"{split}.csv").write_text("text,sport,tech\na,0,1\nb,1,0\n")
    (option, name), *_ = columns.items()
    with pytest.raises(CompressError, match=f"--label: expected another column than --{option}, found '{name}' for"):
        own_task(OwnFiles(tmp_path / "news.csv", tmp_path / "dev.csv", label="sport,tech", **columns))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a|b;c", ["a", "b;c"]), ("a;b,c", ["a", "b,c"]), ("a, b", ["a", "b"]), ("", []), (" ", []), ("one", ["one"]),
        ('["a, b", 2]', ["a, b", "2"]), ([1.0, "x"], ["1", "x"]), ([], []), ("a||b", None), (["a", ""], None), (None, None),
        (r'["tech\/ai", "\ud83d\ude00"]', ["tech/ai", "😀"]), ("['a', 'b']", ["a", "b"]), ('["a" "b"]', None),
        (3, None), ([1.5, float("nan")], None), ("[broken", None), ("[__import__('os')]", None), ([["a"]], None), ("[" * 5000, None),
    ],
)  # fmt: skip
def test_what_is_a_list(value: Any, expected: list[str] | None) -> None:
    assert label_list(value) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: "a||b"}, r"news\.jsonl: line 4: expected a list of labels, found 'a\|\|b'"),
        ({0: None, 5: 7}, r"line 1: expected a list of labels, found None; line 6: .* found 7"),
        ({n: ["only"] for n in range(30)}, r"expected lists of at least two different labels, found \['only'\]"),
        ({n: [f"l{n}-{i}" for i in range(4)] for n in range(30)}, r"'labels' has 120 different labels; list them"),
    ],
)
def test_what_is_no_list_is_refused_by_its_line(tmp_path: Path, change: dict[int, Any], message: str) -> None:
    values = [change.get(row, value) for row, value in enumerate(LISTS)]
    with pytest.raises(CompressError, match=message):
        own_task(own(tmp_path, values))


@pytest.mark.parametrize("flags", [("0", "1"), ("false", "true"), ("0.0", "1.0")])
@pytest.mark.parametrize("own_files", [True, False], ids=["files alone", "task file"])
def test_one_column_of_0_and_1_is_not_a_list_of_labels(tmp_path: Path, flags: Sequence[str], own_files: bool) -> None:
    files = replace(own(tmp_path, [flags[n % 2] for n in range(30)], suffix=".csv"), kind="multilabel")
    spec = TaskSpec(
        name="t", kind="multilabel", text=("text",), label="labels", metrics=("f1_micro",),
        files=Files(train="news.csv", dev="dev.csv"),
    )  # fmt: skip
    with pytest.raises(CompressError, match=r"news\.csv: column 'labels' is of .*, as --label a,b"):
        load_training(*(own_task(files) if own_files else (spec, tmp_path)), None)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".csv"])
@pytest.mark.parametrize("labels", [None, NAMES], ids=["files alone", "task file"])
def test_vectors_of_0_and_1_are_not_lists_of_labels(
    tmp_path: Path, suffix: str, labels: tuple[str, ...] | None
) -> None:
    """[0, 1, 0] would be a text with the labels 0 and 1."""
    files = own(tmp_path, ROWS, suffix=suffix)
    spec = TaskSpec(
        name="t", kind="multilabel", text=("text",), label="labels", labels=labels, metrics=("f1_micro",),
        files=Files(train=files.train.name, dev=files.dev.name),
    )  # fmt: skip
    value = r"'\[0, 1, 0\]'" if suffix == ".csv" else r"\[0, 1, 0\]"
    message = rf"(line|row) [12]: expected a list of the labels that the text has, found {value}: .* as --label a,b"
    with pytest.raises(CompressError, match=message):
        load_training(*(own_task(files) if labels is None else (spec, tmp_path)), None)


@pytest.mark.parametrize(
    "values",
    [
        ["0", "1", "0|1"],
        [["0"], ["1"]],
        ["[0]", "[1]"],
        ["0", "1", "2"],
        [[0, 1], [1]],
        [[0, 1, 1], [1]],
        [[2, 0], [1, 1]],
    ],
)
def test_labels_may_be_called_0_and_1(tmp_path: Path, values: list[Any]) -> None:
    files = own(tmp_path, [values[n % len(values)] for n in range(30)])
    assert {*(own_task(replace(files, kind="multilabel"))[0].labels or ())} >= {"0", "1"}


def test_many_labels_are_meant_where_the_kind_is_said(tmp_path: Path) -> None:
    values = [[f"l{row}-{place}" for place in range(4)] for row in range(30)]
    spec, _ = own_task(replace(own(tmp_path, values), kind="multilabel"))
    assert spec.kind == "multilabel" and len(spec.labels or ()) == 120


def test_labels_that_train_does_not_know_are_refused_by_the_file_that_has_them(tmp_path: Path) -> None:
    files = own(tmp_path, LISTS)
    files.dev.write_text(files.dev.read_text().replace('["tech"]', '["Tech"]', 1))
    spec, folder = own_task(files)
    with pytest.raises(CompressError, match=r"dev\.jsonl: line 5: unknown label 'Tech'; did you mean 'tech'\?"):
        load_training(spec, folder, None)


def test_flags_may_have_a_decimal_point(tmp_path: Path) -> None:
    """Tools that fill gaps write 0 and 1 so."""
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text(f"text,a,b\nfirst {split},0.0,1.0\nsecond {split},1.0,0\n")
    spec, folder = own_task(OwnFiles(tmp_path / "train.csv", tmp_path / "dev.csv", label="a,b"))
    assert load_reported(spec, folder, None).splits["dev"].labels.tolist() == [[0, 1], [1, 0]]


def test_other_flags_than_0_and_1_are_refused(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.csv").write_text("text,a,b\nfirst words,0,1\nsecond words,2,0\n")
    spec, folder = own_task(OwnFiles(tmp_path / "train.csv", tmp_path / "dev.csv", label="a,b"))
    with pytest.raises(CompressError, match=r"line 3: a: expected 0 or 1, found '2'"):
        load_training(spec, folder, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "classification", "label": ("a", "b")}, "`label` of a classification task is one column"),
        ({"label": ("a", "a")}, "at least two different columns"),
        ({"label": ("a", "b"), "labels": ("a", "b")}, "`labels`: leave it out"),
        ({"label": "a", "positive": "x"}, "no `positive` one"),
        ({"label": "x"}, "`label`: column 'x' is also in `text`"),
        ({"label": ("a", "x")}, "`label`: column 'x' is also in `text`"),
        ({"label": "a", "metrics": ("matthews",)}, "do not fit kind `multilabel`"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    files = Files(train="a.csv", dev="b.csv")
    arguments = {"name": "t", "kind": "multilabel", "text": ("x",), "metrics": ("accuracy",), "files": files, **fields}
    with pytest.raises(ValueError, match=message):
        TaskSpec(**arguments)


def test_the_tuning_split_has_rare_labels_too(tmp_path: Path) -> None:
    values = [["common"] * (n % 2 == 0) + ["rare"] * (n % 10 == 0) for n in range(30)]
    spec, folder = own_task(own(tmp_path, values))
    data = load_training(spec.model_copy(update={"tuning_fraction": 0.4}), folder, None)
    assert data.tuning.labels.any(axis=0).all() and data.train.labels.any(axis=0).all()


def test_examples_go_by_their_rarest_label() -> None:
    labels = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1], [1, 1, 1]])
    assert KIND.labels.strata(labels) == [1, 0, -1, 2, 1]


def test_the_constant_gives_the_labels_with_the_best_score() -> None:
    rng = np.random.default_rng(3)
    for shares in ([0.8, 0.6, 0.05], [0.1, 0.9, 0.02], [0.3, 0.3, 0.3]):
        train = (rng.random((400, 3)) < shares).astype(np.uint8)
        output = KIND.constant_baseline.outputs(train, NAMES, train)
        metric = KIND.scoring.headline(("f1_micro",), -1, NAMES)
        got = metric(np.tile(output, (400, 1)), train)
        subsets = np.array(np.meshgrid(*[[-1, 1]] * 3)).T.reshape(-1, 3)
        best = max(metric(np.tile(signs, (400, 1)).astype(float), train) for signs in subsets)
        assert got == pytest.approx(best)


def test_answers_flip_by_any_label_and_are_written_with_their_names() -> None:
    outputs = np.array([[0.2, -1.0, 3.0], [-1.0, -2.0, -0.1]])
    answers = KIND.answers(outputs)
    assert [KIND.labels.format(answer, NAMES) for answer in answers] == ["money, tech", "(none)"]
    assert KIND.decisions is not None
    expected = [np.prod(1 / (1 + np.exp(-np.abs(row)))) for row in outputs]
    assert KIND.decisions.confidence(outputs) == pytest.approx(expected)
    assert KIND.fidelity.divergence(outputs, outputs) == 0


def test_the_distance_to_fp32_is_that_of_bernoulli_distributions() -> None:
    rng = np.random.default_rng(0)
    fp32, other = rng.normal(size=(2, 20, 3))
    p, q = (1 / (1 + np.exp(-logits)) for logits in (fp32, other))
    expected = (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).sum(1).mean()
    assert KIND.fidelity.divergence(fp32, other) == pytest.approx(expected)


@pytest.mark.parametrize(("labels", "shown"), [([], "(none)"), (["sport", "money"], "money, sport")])
def test_a_reported_split_with_the_same_labels_everywhere_is_noted(
    labels: list[str], shown: str, tmp_path: Path
) -> None:
    files = own(tmp_path, LISTS)
    files.dev.write_text("".join(json.dumps({"text": f"other {n}", "labels": labels}) + "\n" for n in range(5)))
    note = f"dev has the same labels in all texts, {shown}: its scores cannot compare models"
    spec, folder = own_task(files)
    assert note in load_training(spec, folder, None).notes
