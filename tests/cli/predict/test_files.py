"""`compress predict --input`: reads rows, writes rows with predictions, and scores labelled ones."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from predict_runs import predict
from runtime_toys import describe

from compress.runtime import Classifier

pytestmark = pytest.mark.end_to_end


def read(path: Path, suffix: str) -> list[dict[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if suffix == ".jsonl":
        return [json.loads(line) for line in lines]
    return list(csv.DictReader(lines, delimiter={".csv": ",", ".tsv": "\t"}[suffix]))


@pytest.fixture
def table(folder: Path, tmp_path: Path) -> Path:
    """Write two hundred rows, labelled with the model's answers except for every tenth."""
    texts = [" ".join(["a", "b", "c", "d", ",", '"'][: 1 + i % 6]) for i in range(200)]
    classifier = Classifier(folder)
    answers = [classifier.labels.index(str(one.label)) for one in classifier.predict(texts)]
    count = len(classifier.labels)
    gold = [classifier.labels[(answer + (i % 10 == 0)) % count] for i, answer in enumerate(answers)]
    path = tmp_path / "in.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "text", "gold"])
        writer.writerows(zip(range(200), texts, gold, strict=True))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_rows_keep_their_columns_and_get_answers(folder: Path, table: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out{suffix}"
    done = predict(folder, "--input", table, "--output", out, "--label", "gold")
    assert (done.returncode, done.stderr) == (0, "")
    rows = read(table, ".csv")
    answers = read(out, suffix)
    expected = Classifier(folder).predict([row["text"] for row in rows])
    assert [row["prediction"] for row in answers] == [one.label for one in expected]
    assert [float(row["prediction_score"]) for row in answers] == pytest.approx(
        [one.score for one in expected], abs=1e-5
    )
    assert [{name: row[name] for name in rows[0]} for row in answers] == rows
    assert done.stdout.startswith("200 texts: accuracy 90.00 (")
    assert done.stdout.endswith("; 95% intervals\n")
    low, high = map(float, done.stdout.partition("(")[2].partition(")")[0].split(" to "))
    assert 84 < low < 89 < 91 < high < 95  # 1.96 standard errors are 4.2 points


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_blank_lines_of_a_table_are_no_rows(folder: Path, tmp_path: Path, suffix: str) -> None:
    source, out = tmp_path / f"in{suffix}", tmp_path / "out.jsonl"
    source.write_text("\ufeff\n\r\nid;text\n1;a, b\n\n2;\n" if suffix == ".csv" else "\n\nid\ttext\n1\ta, b\n\n2\t\n")
    assert predict(folder, "--input", source, "--output", out).returncode == 0
    assert [(row["id"], row["text"]) for row in read(out, ".jsonl")] == [("1", "a, b"), ("2", "")]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("in.csv", ["text;id", "a, b;1", "c;2"]),
        ("in.jsonl", ['{"text": "a, b"}', '{"text": "c"}']),
    ],
)
def test_lines_may_end_in_a_carriage_return_alone(
    folder: Path, tmp_path: Path, name: str, lines: Sequence[str]
) -> None:
    source, out = tmp_path / name, tmp_path / "out.jsonl"
    source.write_text("\r".join([*lines, ""]), newline="")
    assert predict(folder, "--input", source, "--output", out).returncode == 0
    assert [row["text"] for row in read(out, ".jsonl")] == ["a, b", "c"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_text_with_any_end_of_line_in_it_stays_one_row(folder: Path, tmp_path: Path, suffix: str) -> None:
    texts = ["a\rb c", "a\nb", "a\r\nb", "\r", "a b"]
    source, out = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    source.write_text("".join(json.dumps({"text": text, "more": "x"}) + "\n" for text in texts))
    assert predict(folder, "--input", source, "--output", out).returncode == 0
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter={".csv": ",", ".tsv": "\t"}[suffix]))
    assert [row["text"] for row in rows] == texts
    assert out.read_bytes().endswith(b"\n") and not out.read_bytes().endswith(b"\r\n")


def test_without_output_the_table_is_on_stdout_and_the_score_beside_it(folder: Path, table: Path) -> None:
    done = predict(folder, "-i", table, "--text", "text", "--label", "gold")
    assert done.stdout.splitlines()[0] == "number,text,gold,prediction,prediction_score"
    assert len(list(csv.reader(done.stdout.splitlines()))) == 201
    assert done.stderr.startswith("200 texts: accuracy 90.00")


def test_pairs_are_two_columns(folder: Path, tmp_path: Path) -> None:
    describe(folder, text_columns=["premise", "hypothesis"])
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"one": "a b", "two": "c"}) + "\n")
    done = predict(folder, "-i", path, "--text", "one", "--pair", "two")
    assert json.loads(done.stdout)["prediction"] == Classifier(folder).predict([("a b", "c")])[0].label
    assert "no column 'premise'; name one of 'one', 'two' with --text" in predict(folder, "-i", path).stderr
    assert "name the second column with --pair" in predict(folder, "-i", path, "--text", "one").stderr


def test_the_first_of_two_columns_is_the_bundles_if_only_the_second_is_named(folder: Path, tmp_path: Path) -> None:
    describe(folder, text_columns=["premise", "hypothesis"])
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"premise": "a b", "two": "c"}) + "\n")
    done = predict(folder, "-i", path, "--pair", "two")
    assert json.loads(done.stdout)["prediction"] == Classifier(folder).predict([("a b", "c")])[0].label


@pytest.mark.parametrize("words", [("--pair", "one"), ("--text", "two", "--pair", "two")])
def test_one_column_for_both_texts_is_refused(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    describe(folder, text_columns=["one", "two"])
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"one": "a b", "two": "c"}) + "\n")
    done = predict(folder, "-i", path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --pair: expected another column than --text, found {words[-1]!r} for both\n"


def test_columns_parted_by_semicolons_stay_so(folder: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text('\ufeffid;text\n1;"a, b; c"\n2;d, d\n', encoding="utf-8")
    assert predict(folder, "-i", path, "-o", out).returncode == 0
    assert out.read_bytes().startswith(b"\xef\xbb\xbfid;text;")  # spreadsheets recognize UTF-8 by this mark
    rows = list(csv.DictReader(out.read_text(encoding="utf-8-sig").splitlines(), delimiter=";"))
    assert [(row["id"], row["text"]) for row in rows] == [("1", "a, b; c"), ("2", "d, d")]
    expected = Classifier(folder).predict(["a, b; c", "d, d"])
    assert [row["prediction"] for row in rows] == [one.label for one in expected]
    assert predict(folder, "-i", path, "-o", tmp_path / "out.tsv").returncode == 0
    assert (tmp_path / "out.tsv").read_text().splitlines()[0] == "id\ttext\tprediction\tprediction_score"


@pytest.mark.parametrize("label", [1.0, 1, "1", " 1 "])
def test_a_whole_number_is_a_label_however_json_writes_it(folder: Path, tmp_path: Path, label: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    names = {str(index): str(index + 1) for index in range(len(config["id2label"]))}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))
    answers = Classifier(folder).predict(texts := ["a b", "c", "d , d"])
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(json.dumps({"text": text, "gold": label}) for text in texts))
    done = predict(folder, "-i", path, "-o", tmp_path / "out.jsonl", "--label", "gold")
    assert done.stdout.startswith(f"3 texts: accuracy {100 * sum(one.label == '1' for one in answers) / 3:.2f} ")


def test_labels_that_are_read_as_numbers_are_said_to_be(folder: Path, tmp_path: Path) -> None:
    names = Classifier(folder).labels
    for gold, said in ((0, True), (names[0], False)):
        path = tmp_path / "in.jsonl"
        path.write_text(json.dumps({"text": "a b", "gold": gold}))
        done = predict(folder, "-i", path, "-o", tmp_path / "out.jsonl", "--label", "gold")
        assert done.stdout.rstrip().endswith(f"; its labels are numbers, 0 for {names[0]}") == said


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("in.csv", "text,art\na b,1\nc,0\n", "art"),
        ("in.csv", "text,about\na b,2\n", "about"),
        ("in.jsonl", '{"text": "a b", "about": "false"}\n', "about"),
    ],
)
def test_a_column_of_0_and_1_is_not_read_as_numbers_of_labels(
    folder: Path, tmp_path: Path, name: str, content: str, column: str
) -> None:
    names = _with_several_labels(folder, ("art", "river"))
    path = tmp_path / name
    path.write_text(content)
    done = predict(folder, "-i", path, "--label", column)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"for columns of 0 and 1 give --label {names}" in done.stderr


def test_a_list_with_0_or_1_for_each_label_is_not_read_as_numbers_of_labels(folder: Path, tmp_path: Path) -> None:
    names = _with_several_labels(folder, ("art", "river"))
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"text": "a b", "about": [1, 0, *[0] * (names.count(",") - 1)]}) + "\n")
    done = predict(folder, "-i", path, "--label", "about")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "about: expected a list of labels, found [1, 0" in done.stderr and f"--label {names}" in done.stderr


def test_a_column_of_0_and_1_named_like_a_label_of_that_name_is_refused_too(folder: Path, tmp_path: Path) -> None:
    names = _with_several_labels(folder, ("0", "1"))
    path = tmp_path / "in.csv"
    for column, code in (("0", 2), ("about", 0)):
        path.write_text(f"text,{column}\na b,1\n")
        done = predict(folder, "-i", path, "--label", column)
        assert done.returncode == code and (f"--label {names}" in done.stderr) == (code == 2)


def test_names_and_lists_of_numbers_are_still_labels(folder: Path, tmp_path: Path) -> None:
    _with_several_labels(folder, ("art", "river"))
    scores = []
    for number, (one, two) in enumerate([("art", "art|river"), ([0], [0, 1]), ("[0]", "0|1"), (["art"], ["0", "1"])]):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps({"text": "a b", "about": each}) + "\n" for each in (one, two, "")))
        done = predict(folder, "-i", path, "--label", "about", "-o", tmp_path / f"{number}.csv")
        assert done.stdout.startswith("3 texts: f1_micro "), done.stderr
        scores.append(done.stdout.partition(";")[0])
    assert len(set(scores)) == 1


def _with_several_labels(folder: Path, first: tuple[str, ...]) -> str:
    """Make the folder's model one of several labels, which begin with `first`. Return their names, comma-separated."""
    config = json.loads((folder / "config.json").read_text())
    names = [*first, *map(str, config["id2label"].values())][: len(config["id2label"])]
    labels = {str(index): name for index, name in enumerate(names)}
    kind = {"problem_type": "multi_label_classification", "id2label": labels}
    (folder / "config.json").write_text(json.dumps(config | kind))
    return ",".join(names)


def test_keys_in_another_order_stay_in_their_columns(folder: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    path.write_text('{"text": "a b", "id": 7, "note": null}\n{"note": "é", "id": 8, "text": "c"}\n')
    assert predict(folder, "-i", path, "-o", out).returncode == 0
    rows = [(row["text"], row["id"], row["note"]) for row in read(out, ".csv")]
    assert rows == [("a b", "7", "null"), ("c", "8", "é")]


def test_an_output_whose_folder_is_not_there(folder: Path, table: Path, tmp_path: Path) -> None:
    done = predict(folder, "-i", table, "-o", tmp_path / "none" / "out.csv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "out.csv: cannot be written: No such file or directory" in done.stderr


def test_a_file_given_as_a_text_is_refused(folder: Path, table: Path) -> None:
    done = predict(folder, table)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--input {table}" in done.stderr


def test_quotes_that_are_text_and_a_file_without_a_header(folder: Path, tmp_path: Path) -> None:
    """Like GLUE's and SemEval's files."""
    lines = ['a\t"b c', '"a b"\td']
    source, out = tmp_path / "in.tsv", tmp_path / "out.jsonl"
    source.write_text("\n".join(lines) + "\n")
    done = predict(folder, "--input", source, "--columns", "one,text", "--output", out)
    assert done.returncode == 2 and "in.tsv:1: " in done.stderr and "--no-quoting" in done.stderr and not out.exists()
    assert predict(folder, "--input", source, "--columns", "one, text", "--no-quoting", "--output", out).returncode == 0
    rows = read(out, ".jsonl")
    assert [(row["one"], row["text"]) for row in rows] == [("a", '"b c'), ('"a b"', "d")]
    assert [row["prediction"] for row in rows] == [one.label for one in Classifier(folder).predict(['"b c', "d"])]
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    done = predict(folder, "--input", tmp_path / "in.jsonl", "--no-quoting")
    assert done.returncode == 2 and "--no-quoting: is for .csv and .tsv files" in done.stderr


def test_a_file_whose_quotes_are_text_is_written_like_it(folder: Path, tmp_path: Path) -> None:
    lines = ["id\ttext", '1\t"b c', '"2"\ta "" d, e', "3\t"]
    source, out = tmp_path / "in.tsv", tmp_path / "out.tsv"
    source.write_text("\n".join(lines) + "\n")
    assert predict(folder, "-i", source, "--no-quoting", "-o", out).returncode == 0
    assert ["\t".join(line.split("\t")[:2]) for line in out.read_text().splitlines()] == lines
    assert predict(folder, "-i", source, "--no-quoting").stdout == out.read_text()
    assert predict(folder, "-i", source, "--no-quoting", "-o", tmp_path / "out.csv").returncode == 0
    assert [row["text"] for row in read(tmp_path / "out.csv", ".csv")] == ['"b c', 'a "" d, e', ""]
    (tmp_path / "commas.csv").write_text(
        'id,text\n1,"b c\n'
    )  # answers of some kinds have commas, so quotes are written
    assert (
        predict(folder, "-i", tmp_path / "commas.csv", "--no-quoting", "-o", tmp_path / "of_commas.csv").returncode == 0
    )
    assert [row["text"] for row in read(tmp_path / "of_commas.csv", ".csv")] == ['"b c']
