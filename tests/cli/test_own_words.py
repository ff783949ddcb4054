"""Files of labelled words without a task file: `plan` and `init` detect their kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tagged_files import conll, csv_lists, jsonl, sentences, written

TEXT = "Ada saw Paris ."


def plan(cli, *words: object) -> dict:
    done = cli("plan", "int8", "--teacher", "bert-mini", "--json", *words)
    assert done.code == 0, done.err
    (document,) = json.loads(done.out)
    return document


@pytest.mark.parametrize("form", ["conll", "txt", "lists", "csv", "spans"])
def test_a_plan_is_that_of_the_task_file_that_init_writes(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    train, dev = sentences("train", 60), sentences("dev")
    names: tuple[str, ...] = ()
    if form == "lists":
        files = written(tmp_path, jsonl(train, ("words", "ner")), jsonl(dev, ("words", "ner")), ".jsonl")
        names = ("--text", "words", "--label", "ner")
    elif form == "csv":
        files = written(tmp_path, csv_lists(train), csv_lists(dev), ".csv")
    elif form == "spans":
        rows = [(f"{split} {n} {TEXT}", [[len(split) + len(str(n)) + 2, len(split) + len(str(n)) + 5, "PER"]])
                for split in ("train", "dev") for n in range(40)]  # fmt: skip
        files = written(
            tmp_path, jsonl(rows[:40], ("text", "entities")), jsonl(rows[40:], ("text", "entities")), ".jsonl"
        )
        names = ("--label", "entities")
    else:
        files = written(tmp_path, conll(train), conll(dev), f".{form}")
    words = ("--train", files[0].name, "--dev", files[1].name, *names)
    own = plan(cli, *words)
    done = cli("init", *words)
    assert (done.code, done.out.splitlines()[0]) == (0, "names.yaml"), done.err
    assert plan(cli, "--task", "names.yaml") == own
    text = (tmp_path / "names.yaml").read_text()
    assert "kind: tagging" in text and "- B-PER  # " in text and "metrics: [entity_f1]" in text
    assert "read in windows that overlap" in text


def test_labels_that_are_no_entities_are_scored_by_accuracy(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [([f"w{n}", "runs", "fast"], ["NOUN", "VERB", "ADV"]) for n in range(40)]
    train, dev = written(tmp_path, conll(texts), conll([(["x", "runs"], ["NOUN", "VERB"])]))
    assert cli("init", "--train", train.name, "--dev", dev.name).code == 0
    assert "metrics: [accuracy]" in (tmp_path / "names.yaml").read_text()


def test_a_pair_is_refused(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, dev = written(tmp_path, conll(sentences("train")), conll(sentences("dev")))
    done = cli("plan", "int8", "--teacher", "bert-mini", "--train", train.name, "--dev", dev.name, "--pair", "tags")
    assert done.code == 2 and "--pair" in done.err


def test_a_wrong_column_is_told_before_a_length(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, conll(sentences("train")), conll(sentences("dev")))
    task = "name: t\nkind: tagging\ntext: [{}]\nlabel: tags\nlabels: [O, B-PER, I-PER, B-LOC, I-LOC]\nmetrics: [entity_f1]\n"
    files = "max_length: 100000\nfiles: {train: names.conll, dev: dev.conll}\n"
    for column, expected in (("wrods", "no column 'wrods'"), ("tokens", "max_length is 100000 tokens")):
        (tmp_path / "task.yaml").write_text(task.format(column) + files)
        done = cli("plan", "int8", "--teacher", "bert-mini", "--task", "task.yaml")
        assert done.code == 2 and expected in done.err, done.err


def test_a_student_that_does_not_fit_is_told_by_its_option(cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    train, dev = written(tmp_path, conll(sentences("train")), conll(sentences("dev")))
    (tmp_path / "deep.yaml").write_text("name: deep\ntitle: Deep\nlayers: 40\n")
    words = ("--train", train.name, "--dev", dev.name, "--teacher", "bert-mini", "--student", "deep.yaml")
    done = cli("plan", "distilbert", *words)
    assert done.code == 2 and done.err.startswith("error: --student deep.yaml: student deep"), done.err
