"""`compress predict`: reads lines, writes answers as they come, and ends quietly."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from runtime_toys import describe

from compress.runtime import Classifier

pytestmark = pytest.mark.end_to_end

PROGRAM = [sys.executable, "-c", "from compress.cli import main; main()", "predict"]


def predict(*arguments: object, lines: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
    stdin = lines.encode() if isinstance(lines, str) else lines
    return subprocess.run([*PROGRAM, *map(str, arguments)], input=stdin, capture_output=True)


def test_lines_of_stdin_are_answered_in_order(folder: Path) -> None:
    texts = [" ".join(["a", "b", "c", "d"][: i % 5]) for i in range(700)]
    done = predict(folder, lines="\n".join(texts))
    expected = [f"{one.label}\t{one.score:.4f}" for one in Classifier(folder).predict(texts)]
    assert done.stdout.decode().splitlines() == expected
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_line_that_is_no_utf8_is_named_wherever_blocks_end(folder: Path, tmp_path: Path) -> None:
    good, bad = "a é b\n" * 3000, b"caf\xe9\n"
    done = predict(folder, lines=good.encode() + bad)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert done.stdout.count(b"\n") == 3000, "those before it are answered"
    assert b"stdin:3001: expected UTF-8 text, found byte 0xe9" in done.stderr
    for name, header, line in (("in.csv", "\ufefftext\n", 3002), ("in.jsonl", "", 3001)):
        path, out = tmp_path / name, tmp_path / "out.jsonl"
        rows = good if header else '{"text": "a é b"}\n' * 3000
        path.write_bytes((header + rows).encode() + bad)
        done = predict(folder, "--input", path, "--output", out)
        message = f"{path}:{line}: expected UTF-8 text, found byte 0xe9; save the file as UTF-8"
        assert (done.returncode, done.stderr.decode().strip()) == (2, f"error: {message}")
        assert not out.exists()


def test_a_byte_order_mark_is_no_part_of_the_first_text(folder: Path) -> None:
    done = predict(folder, "--json", lines="\ufeffa b\n\ufeffc\n")
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == ["a b", "\ufeffc"]
    done = predict(folder, lines=b"\xef\xbb\xbffine\n\xff\n")
    assert (done.returncode, done.stdout.count(b"\n"), done.stderr.count(b"\n")) == (2, 1, 1)
    assert b"stdin:2: expected UTF-8 text, found byte 0xff" in done.stderr


def test_no_lines_no_answers(folder: Path) -> None:
    done = predict(folder, "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("package", "words", "remedy"),
    [
        ("typer", ["a"], "pip install typer"),
        ("jaxtyping", ["-i", "in.csv", "--label", "gold"], "install the package without --no-deps"),
    ],
)
def test_what_is_not_installed_is_said_before_any_answer(
    folder: Path, tmp_path: Path, package: str, words: list[str], remedy: str
) -> None:
    """As in an environment for a bundle, with only the packages for prediction."""
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('absent', name='{package}')")
    (tmp_path / "in.csv").write_text(f"text,gold\na b,{Classifier(folder).labels[0]}\n")
    program = [sys.executable, "-m", "compress", "predict", str(folder), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"error: {package}: not installed" in done.stderr and remedy in done.stderr


def test_json_tells_the_text_and_what_computed_the_answer(folder: Path) -> None:
    done = predict(folder, "--json", "--threads", 1, lines="a café\nb\r\n")
    first, second = map(json.loads, done.stdout.decode().splitlines())
    assert (first["text"], second["text"]) == ("a café", "b")
    assert (first["runtime"], first["precision"]) == ("onnxruntime", "fp32")
    assert first["scores"][first["label"]] == first["score"]


def test_a_label_is_printed_on_one_line_in_one_field(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    names = {str(index): f"no\t{index}\n or\r\nso" for index in range(len(Classifier(folder).labels))}
    for more in ({}, {"problem_type": "multi_label_classification"}):
        (folder / "config.json").write_text(json.dumps(config | {"id2label": names} | more))
        (answer,) = Classifier(folder).predict(["a text"])
        done = predict(folder, "a text")
        assert done.stdout.count(b"\n") == 1 and done.stdout.count(b"\t") == int(not more)
        assert (b"no" in done.stdout) == (answer.label is not None)


def test_answers_come_while_the_input_is_still_open(folder: Path) -> None:
    with subprocess.Popen([*PROGRAM, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"a text\n" * 257)  # a window, and the line that starts the next
        child.stdin.flush()
        answers = [child.stdout.readline() for _ in range(256)]
        assert all(b"\t" in answer for answer in answers)
        child.stdin.close()
        assert child.stdout.read().count(b"\n") == 1
    assert child.returncode == 0


def test_a_closed_pipe_is_a_quiet_end(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a text with some words\n" * 50_000)
    with (tmp_path / "lines").open() as lines:
        child = subprocess.Popen([*PROGRAM, folder], stdin=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    assert b"\t" in child.stdout.readline()
    child.stdout.close()
    errors = child.stderr.read()
    child.stderr.close()
    assert (child.wait(60), errors) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_takes_no_more_is_said_to_be_incomplete(folder: Path, unbuffered: str) -> None:
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PROGRAM, folder, "a"], stdout=full, stderr=subprocess.PIPE, env=environment)
    reason = os.strerror(errno.ENOSPC)
    assert done.stderr.decode() == f"error: the output: {reason}; what was written so far is incomplete\n"
    assert done.returncode == 2


def test_what_was_before_a_wrong_line_is_answered(folder: Path) -> None:
    describe(folder, text_columns=["premise", "hypothesis"], max_length=24)
    done = predict(folder, lines="a\tb\nc\td\nno tab\na\tb\n")
    assert done.stdout.count(b"\n") == 2
    assert done.stderr.decode() == "error: stdin:3: expected two texts separated by a tab; found 'no tab'\n"
    assert done.returncode == 2


def test_a_line_of_more_than_two_texts_is_refused(folder: Path) -> None:
    describe(folder, text_columns=["premise", "hypothesis"], max_length=24)
    done = predict(folder, lines="a\tb\nc\td\te\n")
    assert (done.returncode, done.stdout.count(b"\n"), done.stderr.count(b"\n")) == (2, 1, 1)
    assert b"stdin:2: expected two texts separated by a tab" in done.stderr


def test_bytes_that_are_no_text_are_one_line(folder: Path) -> None:
    done = predict(folder, lines=b"fine\n\xff\xfe\n")
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--runtime", "tflite"], "runtime: expected onnxruntime or openvino, found 'tflite'"),
        (["--precision-hint", "bf16"], "precision_hint: found 'bf16'; only the runtime openvino has one"),
        (["--runtime", "openvino", "--precision-hint", "f8"], "precision_hint: expected f32 or bf16, found 'f8'"),
    ],
)
def test_wrong_options_are_one_line(folder: Path, arguments: list[str], expected: str) -> None:
    done = predict(folder, "text", *arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert expected in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
