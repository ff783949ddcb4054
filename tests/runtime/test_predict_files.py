"""`compress predict --input`: reads rows, writes rows with predictions, and scores labelled ones."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import threading
from pathlib import Path

import pytest
from recipe_runs import compress
from runtime_toys import describe

from compress.cli.row_files import Row, Writer
from compress.errors import CompressError
from compress.runtime import Classifier


def predict(*arguments: object) -> subprocess.CompletedProcess[str]:
    return compress("predict", *arguments, cwd=Path.cwd())


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


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("text\na\n", ("--text", "txet"), "in.csv: no column 'txet'; did you mean `text`?"),
        ("text\na\na,b\n", ("--text", "text"), "in.csv: line 3: expected 1 fields, found 2"),
        (
            "text,prediction\na,b\n",
            ("--text", "text"),
            "in.csv: has a column 'prediction', which is also the name of an added column",
        ),
        (
            "text,gold\na,nobody\n",
            ("--text", "text", "--label", "gold"),
            "in.csv: line 2: gold: unknown label 'nobody'; known: ",
        ),
        ("", (), "in.csv: empty file"),
        ("\n\n", (), "in.csv: empty file"),
        ("\nid,text,id\n1,a,2\n", (), "in.csv: line 2: two columns are named 'id'; rename one"),
        ('text\n"a\n', ("--text", "text"), "check the quotes"),
        ("text\na\n", ("more",), "--input names the texts, and TEXT gives others"),
        ("text\na\n", ("--json",), "--json: a file is answered in its own form; give --output FILE.jsonl for JSON"),
        ("id,text,id\n1,a,2\n", (), "in.csv: line 1: two columns are named 'id'; rename one"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_half_written_is_kept(
    folder: Path, tmp_path: Path, content: str, words: tuple[str, ...], expected: str
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(content)
    done = predict(folder, *words, "-i", path, "-o", out)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr
    assert not out.exists()


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


@pytest.mark.parametrize(
    ("name", "content", "words", "expected"),
    [
        ("in.jsonl", '{"text": "a"}\n{"text": "b", "id": 1}\n', (), "line 2: key 'id' is not in every row"),
        ("in.jsonl", '{"text": "a", "id": "\\ud800"}\n', (), "line 1: expected text that can be written in utf-8"),
        ("in.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', (), "in.jsonl: line 2: text: expected Unicode text"),
        ("in.tsv", 'text\tid\n"a\t1\nb\t2\nc"\t3\n', (), "line 4: a quoted field spans several rows"),
        (
            "in.jsonl", '{"text": "a", "gold": "0"}\n{"text": "b"}\n' + '{"text": "c", "gold": "0"}\n' * 9,
            ("--label", "gold"), "line 2: no column 'gold'",
        ),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_told_by_their_line(
    folder: Path, tmp_path: Path, name: str, content: str, words: tuple[str, ...], expected: str
) -> None:
    path, out = tmp_path / name, tmp_path / "out.csv"
    path.write_text(content)
    done = predict(folder, "-i", path, "-o", out, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert expected in done.stderr
    assert not out.exists()


def test_an_output_whose_folder_is_not_there(folder: Path, table: Path, tmp_path: Path) -> None:
    done = predict(folder, "-i", table, "-o", tmp_path / "none" / "out.csv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "out.csv: cannot be written: No such file or directory" in done.stderr


def test_options_of_a_file_without_one_and_pairs_of_piped_lines(folder: Path) -> None:
    assert "--label needs a file: expected --input FILE" in predict(folder, "a", "--label", "gold").stderr
    assert "--pair: a piped line holds both texts, separated by a tab" in predict(folder, "--pair", "b").stderr


def test_a_file_given_as_a_text_is_refused(folder: Path, table: Path) -> None:
    done = predict(folder, table)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--input {table}" in done.stderr


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("T2.CSV", "give --input T2.CSV"),
        ("x.parquet", "as .csv or .jsonl with --input"),
        ("X.Parquet", ".csv or .jsonl"),
    ],
)
def test_files_of_data_are_known_by_any_suffix_that_they_have(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way_out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("text\na\n")
    done = predict(folder, "a", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{name}: is a file" in done.stderr and way_out in done.stderr


def test_a_plain_text_file_is_refused_with_the_command_that_answers_its_lines(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "my reviews.txt"
    path.write_text("a b\nc\n")
    done = predict(folder, "--input", path)
    assert (done.returncode, done.stdout) == (2, "")
    expected, _, command = done.stderr.partition("; to answer its lines, run: ")
    assert expected.endswith("--input: expected a .csv, .tsv or .jsonl file, found my reviews.txt")
    _, _, bundle, sign, file = shlex.split(command)
    assert (bundle, sign, file) == (str(folder), "<", str(path))


def test_a_file_with_a_header_alone_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("review,stars\n")
    done = predict(folder, "--input", tmp_path / "empty.csv", "--text", "review", "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "no examples" in done.stderr
    assert not (tmp_path / "out.csv").exists()


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


@pytest.mark.parametrize(
    ("columns", "content", "expected"),
    [
        ("text", "a b,0\nc,1\n", "in.csv: line 1: expected 1 fields, found 2"),
        ("text,gold", "\ntext,gold\na b,0\n", "in.csv: line 2: has the names of --columns; leave --columns out"),
        ("text,gold", '\ufeff"text", gold\na b,0\n', "in.csv: line 1: has the names of --columns"),
    ],
)
def test_names_for_a_file_with_other_columns_or_a_header_are_refused(
    folder: Path, tmp_path: Path, columns: str, content: str, expected: str
) -> None:
    path = tmp_path / "in.csv"
    path.write_text(content, encoding="utf-8")
    done = predict(folder, "-i", path, "--columns", columns, "--text", "text")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr


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


def test_an_answer_that_takes_quotes_is_refused_where_there_are_none(tmp_path: Path) -> None:
    writer = Writer(io.StringIO(), ".tsv", quoting=False)
    with pytest.raises(
        CompressError, match=r"in\.tsv: line 2: 'prediction' has a '\\t' or a line end.* --output FILE\.jsonl"
    ):
        writer.write(Row("in.tsv: line 2", {"text": 'a "b', "prediction": "one\ttwo"}, "in.tsv", 2))


def test_a_checkpoint_is_told_how_bundles_are_made(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = predict(tmp_path, "good")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "model.onnx" in done.stderr and "; `compress ship` makes bundles" in done.stderr


def test_a_run_is_not_taken_for_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    done = predict(tmp_path, "good")
    assert done.returncode == 2
    assert "compress ship" in done.stderr


@pytest.mark.parametrize(
    ("name", "good", "bad", "words", "expected"),
    [
        ("in.csv", "a b,0", "c,nobody", ("--label", "gold"), "line 602: gold: unknown label 'nobody'"),
        ("in.csv", "a b,0", "c", (), "line 602: expected 2 fields, found 1"),
        ("in.jsonl", '{"text": "a", "gold": 0}', '{"text": "c"}', ("--label", "gold"), "line 601: no column 'gold'"),
        ("in.jsonl", '{"text": "a", "id": 0}', '{"text": "c"}', ("-o", "out.csv"), "line 601: key 'id' is not in"),
        ("in.jsonl", '{"text": "a"}', '{"text": "c", "prediction": 1}', (), "line 601: has a column 'prediction'"),
    ],
)
def test_the_last_row_is_checked_before_the_first_is_answered(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    good: str,
    bad: str,
    words: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    header = ["text,gold"] if name == "in.csv" else []
    Path(name).write_text("\n".join([*header, *[good] * 600, bad]) + "\n")
    done = predict(folder, "-i", name, *words)  # without a file of answers, those of earlier rows would be on stdout
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr
    assert not Path("out.csv").exists()


def test_a_pipe_is_read_once_and_its_labels_before_the_answers_of_their_rows(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    os.mkfifo(path)
    good = json.dumps({"text": "a b", "gold": 0})
    bad = json.dumps({"text": "c", "gold": "nobody"})
    for last, code, answers in ((good, 0, 258), (bad, 2, 257)):
        lines = "\n".join([*[good] * 257, last])
        writer = threading.Thread(target=path.write_text, args=(lines,))
        writer.start()
        done = predict(folder, "-i", path, "--label", "gold")
        writer.join()
        assert (done.returncode, done.stdout.count("\n")) == (code, answers)
        assert ("258 texts: accuracy" if code == 0 else "line 258: gold: unknown label 'nobody'") in done.stderr
