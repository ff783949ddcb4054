"""Invalid word labels, each refused with its line or field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tagged_files import conll, csv_lists, jsonl, read, sentences, tagging, written

from compress.errors import CompressError
from compress.spec.task import Files

NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
TRAIN, DEV = sentences("train"), sentences("dev", 12)


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ("Ada\tB-PER\nsaw\n", r"dev\.conll: line 2: expected 2 fields, found 1"),
        ("Ada\tB-PER\n\nsaw\tit\tO\n", r"dev\.conll: line 3: expected 2 fields, found 3"),
        ("Ada\tB-PER\nsaw\tPER\nit\tO\n", r"line 2: expected a tag such as O, B-PER or I-PER, found 'PER'"),
        ("Ada\tB-PER\n\nsaw\tO\nit\tB-per\n", r"line 4: unknown label 'B-per'; did you mean 'B-PER'\?"),
        ("Ada\tO\n\tO\nsaw\tB-PER\n", r"line 2: tokens: expected text, found ''"),
        ("-DOCSTART- O\n\nAda\tO\nsaw\t\n", r"line 4: tags: expected a tag, found ''"),
        ("Ada\tO\nsaw\tO\n", r"dev\.conll: all 2 words have the label 'O'; expected entities among them"),
        ("Ada\n", r"expected a word and its label in each line, separated by a tab or spaces, found 'Ada'"),
        ("\n \n-DOCSTART-\tO\n", r"dev\.conll: no examples"),
        ("", r"dev\.conll: no examples; expected at least one text$"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, dev: str, message: str) -> None:
    written(tmp_path, conll(TRAIN), dev)
    with pytest.raises(CompressError, match=message):
        read(tmp_path)


@pytest.mark.parametrize(("suffix", "blank"), [(".conll", ", with a blank line after each"), (".jsonl", "")])
def test_too_few_texts_are_told_in_the_files_form(tmp_path: Path, suffix: str, blank: str) -> None:
    form = conll if suffix == ".conll" else jsonl
    paths = written(tmp_path, form(TRAIN[:1]), form(DEV), suffix)
    files = Files(train=paths[0].name, dev=paths[1].name)
    with pytest.raises(
        CompressError,
        match=rf"1 example is too few to hold .* expected at least two different texts of the same labels{blank}$",
    ):
        read(tmp_path, files=files)


def test_of_texts_with_different_labels_none_is_held_out_until_two_have_the_same(tmp_path: Path) -> None:
    texts = ["Ada\tB-PER\nin\tO\nRome\tB-LOC", "Bob\tB-PER\nruns\tO", "the\tO"]
    written(tmp_path, "\n\n".join(texts) + "\n", conll(DEV))
    with pytest.raises(
        CompressError, match=r"3 examples are too few .* two different texts of the same labels, with a"
    ):
        read(tmp_path)
    written(tmp_path, "\n\n".join([*texts, "Eve\tB-PER\nsleeps\tO"]) + "\n", conll(DEV))
    assert len(read(tmp_path)[0].tuning) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((["a", "b"], ["O"]), "line 1: expected a tag for each of 2 words, found 1"),
        (("a b", ["O", "O"]), "line 1: tokens: expected a list of words, found 'a b'"),
        ((["a"], "O"), "line 1: tags: expected a list of tags, found 'O'"),
        ((["a"], None), "line 1: tags: expected a list of tags, found None"),
        ((["a", 3], ["O", "O"]), "line 1: tokens: word 2: expected text, found 3"),
        ((["a"], [None]), "line 1: tags: word 1: expected a tag, found None"),
        ((["a"], [True]), "line 1: tags: word 1: expected a tag, found True"),
        ((["a"], [["O"]]), "line 1: tags: word 1: expected a tag, found"),
        ((["\ud800"], ["O"]), "line 1: tokens: expected Unicode text"),
    ],
)
def test_lists_that_are_none_are_refused(tmp_path: Path, row: tuple[Any, Any], message: str) -> None:
    files = {"train": jsonl(TRAIN), "dev": jsonl([row, *DEV])}
    for name, content in files.items():
        (tmp_path / f"{name}.jsonl").write_text(content)
    with pytest.raises(CompressError, match=message):
        read(tmp_path, files=Files(train="train.jsonl", dev="dev.jsonl"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("\"['Ada', 'saw']\",\"[\"\"B-PER\"\", \"\"O\"\"]\"", r"line 2: tokens: .*which is not JSON; Python lists have single"),
        ("[\"\"Ada\"\"],['B-PER' 'O']", r"line 2: tags: expected a list in JSON, .* a NumPy array as text: write it with json"),
        ("Ada saw,\"[\"\"B-PER\"\", \"\"O\"\"]\"", r"line 2: tokens: expected a list in JSON, .* found 'Ada saw'$"),
        ("\"[\"\"Ada\"\"]\",", r"line 2: tags: expected a list in JSON, .* found ''"),
        ("\"[\"\"Ada\"\"]\",\"[\"\"B-PER\"\", \"\"O\"\"]\"", r"line 2: expected a tag for each of 1 words, found 2"),
    ],
)  # fmt: skip
def test_lists_in_csv_that_are_no_json_are_refused(tmp_path: Path, row: str, message: str) -> None:
    header, *rows = csv_lists(TRAIN).splitlines(keepends=True)
    (tmp_path / "train.csv").write_text("".join([header, *rows]))
    (tmp_path / "dev.csv").write_text("".join([header, f"{row}\n", *rows]))
    with pytest.raises(CompressError, match=message):
        read(tmp_path, files=Files(train="train.csv", dev="dev.csv"))


def test_a_tag_of_conll_u_is_told_by_its_own_line(tmp_path: Path) -> None:
    def line(number: str, form: str, tag: str) -> str:
        return "\t".join([number, form, "_", tag, *"______"]) + "\n"

    train = "".join(line("1", f"w{n}", "NOUN") + line("2", "runs", "VERB") + "\n" for n in range(20))
    dev = "# sent_id = 1\n" + line("1-2", "don't", "_") + line("1", "do", "VERB") + line("2", "n't", "PARTICLE")
    for name, text in {"train": train, "dev": dev}.items():
        (tmp_path / f"{name}.conllu").write_text(text)
    with pytest.raises(CompressError, match=r"dev\.conllu: line 4: unknown label 'PARTICLE'"):
        read(tmp_path, files=Files(train="train.conllu", dev="dev.conllu"), metrics=("accuracy",))


def test_train_without_entities_or_with_one_label_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "Ada\tO\nsaw\tO\n", conll(DEV))
    with pytest.raises(CompressError, match=r"names\.conll: column 'tags': all words have the label 'O'"):
        read(tmp_path)
    with pytest.raises(CompressError, match=r"names\.conll: all 2 words have the label 'O'; expected entities"):
        read(tmp_path, labels=NAMES)
    written(tmp_path, "Ada\tX\nsaw\tX\n", "Ada\tX\n")
    with pytest.raises(CompressError, match=r"all 2 words have the label 'X'; training needs at least two"):
        read(tmp_path, labels=("X", "Y"), metrics=("accuracy",))


def test_more_labels_than_can_be_meant_are_refused(tmp_path: Path) -> None:
    written(tmp_path, conll([([str(n)], [f"B-{n}"]) for n in range(60)]), conll(DEV))
    with pytest.raises(CompressError, match=r"column 'tags' has 121 different labels; list them under `labels`"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": ("a", "b")}, "`text` of a tagging task is one column"),
        ({"label": ("a", "b")}, "`label` of a tagging task is one column"),
        ({"positive": "O"}, "no `positive` one"),
        ({"metrics": ("f1_macro",)}, "do not fit kind `tagging`"),
        ({"labels": ("O",)}, "at least two different names"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tagging(**fields)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("O", "B-PER", "I-PER", "I-LOC"), "`labels` has 'I-LOC' without 'B-LOC'; list both"),
        (("O", "B-PER", "I-PER", "B-LOC"), r"names\.conll: line \d+: unknown label 'I-LOC'"),
        (("B-PER", "I-PER", "O"), "`labels` must begin with 'O', found 'B-PER' first"),
        (("O", "B-PER", "I-PER", "E-PER", "S-PER"), "are listed in IOB2, .* whatever the files have; found O, B-PER"),
        (("PER", "LOC"), "metric `entity_f1` needs labels of entities, such as O, B-PER and I-PER, found PER, LOC"),
    ],
)
def test_labels_that_are_no_iob2_are_refused(tmp_path: Path, labels: tuple[str, ...], message: str) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    with pytest.raises(CompressError, match=message):
        read(tmp_path, labels=labels)


def test_a_text_file_of_sentences_says_what_was_expected(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.txt").write_text("a good film\nnot at all a bad one\n")
    with pytest.raises(
        CompressError, match=r"line 2: expected 3 fields, found 6 \(a .txt file holds a word and its label"
    ):
        read(tmp_path, files=Files(train="train.txt", dev="dev.txt"))


def test_columns_of_another_number_are_refused(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    for columns, message in (
        (("a", "b", "c"), "names 3 columns, the file has 2"),
        (("a", "a"), "two columns are named 'a'"),
    ):
        with pytest.raises(CompressError, match=message):
            read(tmp_path, files=Files(train="names.conll", dev="dev.conll", columns=columns))


def test_json_of_another_shape_is_no_list(tmp_path: Path) -> None:
    lines = json.dumps({"tokens": {"a": 1}, "tags": ["O"]})
    for name in ("x.jsonl", "y.jsonl"):
        (tmp_path / name).write_text(lines + "\n")
    with pytest.raises(CompressError, match="tokens: expected text or a list of words, found"):
        read(tmp_path, files=Files(train="x.jsonl", dev="y.jsonl"))
