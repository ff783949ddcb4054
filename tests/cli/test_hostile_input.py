"""Hostile input: refused in one line before any work."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import Cli, refused

import compress
from compress.errors import CompressError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--seed", "18446744073709551616"], "Invalid value for '--seed'"),
        (["--base-seed", "18446744073709551616"], "Invalid value for '--base-seed'"),
        (["--threads", "3000000000"], "Invalid value for '--threads'"),
        (["--bench-threads", "3000000000"], "Invalid value for '--bench-threads'"),
        (["--teacher", ""], "--teacher: expected a value, found an empty one"),
        (["--corpus="], "--corpus: expected a value, found an empty one"),
        (["--teacher", "~nobody-of-that-name/x"], "~nobody-of-that-name/x: begins with ~"),
        (["--teacher", "n" * 300], "cannot be a path: File name too long"),
        (["--teacher", "./" + "n" * 100_000], "cannot be a path: File name too long"),
        (["--teacher=~nobody-of-that-name/x"], "~nobody-of-that-name/x: begins with ~"),
        (
            ["--data-dir", "."],
            "--data-dir names data, and no task here reads it (mine: data of their own); leave it out",
        ),
        (["--set", 'quantize.exclude=["("]'], "'(' is not a regular expression: missing )"),
        (["--set", "finetune.epochs=!!bool maybe"], "is not a YAML value"),
        (["--set", "finetune.per_task.mine.epochs=2024-01-01"], "per_task.mine.epochs"),
        (["--set", "finetune.epochs=!!int ''"], "is not a YAML value"),
        (["--set", f"title=1{':00' * 250}.0"], "is not a YAML value"),
        (["-q", ""], "compress run: expected a name or a place, found an empty word"),
        (["--set", 'title="\\ud83d"'], "is not a YAML value"),
        (["--set", "quantize.exclude=['a{99999999999999}']"], "is not a regular expression"),
        (["--seeds", "4294967295"], "Invalid value for '--seeds'"),
        (["--seeds", "0,1"], "'--seeds': expected a valid integer; found '0,1'"),
        (["--max-latency-ms=fast"], "'--max-latency-ms': expected a valid number; found 'fast'"),
        (["-j", "0"], "expected a value greater than or equal to 1; found '0'"),
        (["--seed", "4294967295", "--seeds", "2"], "seeds: expected 0 to 4294967295, found 4294967296"),
        (
            ["--set", "finetune.epochs=0x" + "f" * 5000],
            "is not a YAML value: cannot be read as a value (a whole number beyond",
        ),
        (["--set", "finetune.per_task.mine.epochs=0b1" + "0" * 63], "a whole number beyond 9223372036854775807"),
        (["--set", f"finetune.{'k' * 100_000}=1"], "unknown key"),
        (["--set", "finetune.max_length=2"], "finetune: max_length is 2; expected more than the 2 special tokens"),
    ],
)
def test_options_without_sense(cli: Cli, tmp_path: Path, task_file: Path, arguments: list[str], expected: str) -> None:
    out = tmp_path / "runs"
    teacher = () if "--teacher" in arguments else ("--teacher", "bert-mini")
    assert expected in refused(cli, "run", "int8", "--task", task_file, "--out", out, *teacher, *arguments)
    assert not out.exists()


def test_half_a_surrogate_pair_is_found_with_its_line_before_any_training(
    cli: Cli, tmp_path: Path, task_file: Path
) -> None:
    rows = [{"text": f"the film {n} is good", "label": ("yes", "no")[n % 2]} for n in range(12)]
    (tmp_path / "dev.jsonl").write_text("\n".join(json.dumps(row) for row in rows).replace("film 3", "film \\ud83d"))
    task_file.write_text(task_file.read_text().replace("dev.csv", "dev.jsonl"))
    error = refused(cli, "run", "int8", "--task", task_file, "--teacher", "bert-mini", "--out", tmp_path / "runs", "-q")
    assert "dev.jsonl: line 4: text: expected Unicode text, found half of a surrogate pair" in error


def test_half_a_surrogate_pair_in_a_label(cli: Cli, tmp_path: Path, task_file: Path) -> None:
    rows = [{"text": f"the film {n} is good", "label": ("yes", "no")[n % 2]} for n in range(12)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)).replace("yes", "\\ud83d"))
    text = task_file.read_text().replace("train.csv", "train.jsonl")
    task_file.write_text("\n".join(line for line in text.splitlines() if not line.startswith("labels")))
    error = refused(cli, "run", "int8", "--task", task_file, "--teacher", "bert-mini", "--out", tmp_path / "runs", "-q")
    assert "train.jsonl: column 'label': expected Unicode text, found half of a surrogate pair" in error


@pytest.mark.parametrize("arguments", [("report", ""), ("ship", ""), ("verify", ""), ("predict", ""), ("list", "")])
def test_an_empty_word_is_not_this_folder(cli: Cli, arguments: tuple[str, str]) -> None:
    assert f"compress {arguments[0]}: expected a name or a place, found an empty word" in refused(cli, *arguments)


@pytest.mark.parametrize("settings", [{"seeds": (2**65,)}, {"seeds": (-1,)}, {"threads": 3_000_000_000}])
def test_numbers_that_nobody_means_from_python(task_file: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(CompressError, match=f"^{next(iter(settings))}: expected"):
        compress.plan("int8", tasks=str(task_file), teacher="bert-mini", **settings)


@pytest.mark.parametrize("words", [("--out=~/words",), ("--out", "~/words")])
def test_a_home_folder_that_the_shell_has_not_expanded(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a film and a story .\n")
    assert cli("vocab", "--corpus=text.txt", "--size=40", *words).code == 0
    assert (tmp_path / "home" / "words" / "tokenizer.json").exists()
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    ("name", "expected"), [("dev.jsonl", "line 1: the number 9999"), ("dev.parquet", "cannot be read as Parquet")]
)
def test_columns_that_nobody_can_read(cli: Cli, tmp_path: Path, task_file: Path, name: str, expected: str) -> None:
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "dev.jsonl").write_text(f'{{"text": "a film", "label": "yes", "id": {"9" * 5000}}}')
    columns = [pyarrow.array(["a film"]), pyarrow.array(["yes"]), pyarrow.array(["yes"])]
    pyarrow.parquet.write_table(pyarrow.table(columns, names=["text", "label", "label"]), tmp_path / "dev.parquet")
    task_file.write_text(task_file.read_text().replace("dev.csv", name))
    error = refused(cli, "run", "int8", "--task", task_file, "--teacher", "bert-mini", "--out", tmp_path / "runs", "-q")
    assert f"{name}: {expected}" in error


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "labels: ['no', 'yes']\nmetrics: [accuracy]",
            "kind: regression\npositive: bad\nmetrics: [pearson]",
            "`positive`",
        ),
        ("files:", "synthetic: {generator: sentiment, train: 20, dev: 9}\nfiles:", "found files and synthetic"),
        ("metrics: [accuracy]", "metrics: [accuracy, accuracy]", "`metrics` names one twice"),
    ],
)
def test_a_task_that_contradicts_itself(cli: Cli, task_file: Path, old: str, new: str, expected: str) -> None:
    task_file.write_text(task_file.read_text().replace(old, new))
    error = refused(cli, "plan", "int8", "--task", task_file, "--teacher", "bert-mini")
    assert f"{task_file}:" in error
    assert expected in error


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("id2label", ["bad", "good"], "expected names for the ids 0, 1, 2"),
        ("id2label", 5, "expected names for the ids 0, 1, 2"),
        ("id2label", {"1": "a", "7": "b"}, "expected names for the ids 0, 1, 2"),
        ("id2label", {"0": "a", "1": "a"}, "expected different names"),
        ("type_vocab_size", "x", "expected a whole number from 1 to 1024; found 'x'"),
        ("hidden_size", float("inf"), "expected a whole number from 1 to 131072; found inf"),
        ("architectures", 5, "architectures: expected a list of names; found 5"),
        ("num_attention_heads", 3, "expected sizes of 1 or more and heads that divide the hidden size"),
        ("num_attention_heads", 0, "num_attention_heads: expected a whole number from 1 to 4096; found 0"),
    ],
)
def test_a_config_of_wrong_types(
    cli: Cli,
    tmp_path: Path,
    task_file: Path,
    tiny_checkpoint: Callable[[str], Path],
    toy_tokenizer: Any,
    field: str,
    value: object,
    expected: str,
) -> None:
    folder = tmp_path / "teacher"
    shutil.copytree(tiny_checkpoint("bert"), folder)
    toy_tokenizer.save(str(folder / "tokenizer.json"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {field: value}))
    arguments = ("int8", "--task", task_file, "--teacher", folder, "--out", tmp_path / "runs", "--quiet")
    assert expected in refused(cli, "run", *arguments)


def test_results_that_are_none_hide_no_others(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert "no such file or directory" in refused(cli, "report", tmp_path / "loop", "-o", tmp_path / "out")
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    for text in ("[" * 100_000, '{"schema": ' + "9" * 5000 + "}"):
        (tmp_path / "runs" / "deep" / "result.json").write_text(text)
        assert "cannot be read as a result" in refused(
            cli, "report", tmp_path / "runs" / "deep", "-o", tmp_path / "out"
        )
        code, _, error = cli("list", "runs", "--out", tmp_path / "runs")
        assert code == 0
        assert "cannot be read as a result" in error
    assert "File name too long" in refused(cli, "ship", tmp_path / ("n" * 300), "-o", tmp_path / "bundle")


def test_bytes_on_stdin_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from compress.cli.predict.command import _read_examples
    from compress.errors import CompressError
    from compress.runtime.kinds import ANSWER_KINDS

    stdin = io.TextIOWrapper(
        io.BytesIO(b"good\nab\xff\n"), encoding="utf-8", errors="surrogateescape"
    )  # as under LC_ALL=C
    monkeypatch.setattr(sys, "stdin", stdin)
    model: Any = SimpleNamespace(columns=1, settings=SimpleNamespace(kind=ANSWER_KINDS["classification"]))
    with pytest.raises(CompressError, match="stdin:2: expected UTF-8 text, found byte 0xff"):
        list(_read_examples(model))
