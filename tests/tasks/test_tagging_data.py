"""A label for each word: as columns of words, lists of words, and what comes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tagged_files import conll, jsonl, sentences, tagging, written

from compress.errors import CompressError
from compress.spec.task import Files, Hub
from compress.tasks import (
    TASK_KINDS,
    ReportedData,
    TrainingData,
    fingerprint,
    load_reported,
    load_training,
    score,
    split_fingerprint,
)

KIND = TASK_KINDS["tagging"]
NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
TRAIN, DEV = sentences("train"), sentences("dev", 12)


def read(folder: Path, **fields: Any) -> tuple[TrainingData, ReportedData]:
    spec = tagging(**fields)
    return load_training(spec, folder, None), load_reported(spec, folder, None)


def dev_words(data: ReportedData) -> list[list[tuple[str, str]]]:
    """Of each dev text its words and their labels."""
    split = data.splits["dev"]
    return [
        [(text[start:end], data.labels[label]) for label, start, end in words]
        for text, words in zip(split.texts[0], split.labels, strict=True)
    ]


EXPECTED = [list(zip(*text, strict=True)) for text in DEV]


@pytest.mark.parametrize("mark", ["\t", " ", "   ", " \t "])
@pytest.mark.parametrize("suffix", [".conll", ".txt", ".bio", ".iob2"])
def test_a_word_a_line(tmp_path: Path, mark: str, suffix: str) -> None:
    train, dev = written(tmp_path, conll(TRAIN, mark), conll(DEV, mark), suffix)
    data, reported = read(tmp_path, files=Files(train=train.name, dev=dev.name))
    assert data.labels == reported.labels == NAMES and data.notes == ()
    assert dev_words(reported) == EXPECTED
    assert reported.splits["dev"].texts[0][0] == "dev 0 : Ada saw Paris ."
    labels = reported.splits["dev"].labels
    assert labels.dtype == object and labels.shape == (12,) and {part.dtype for part in labels} == {np.dtype(np.int32)}
    assert len(data.train) + len(data.tuning) == 30 and len(data.tuning) >= 1


def test_documents_marks_carriage_returns_and_blank_lines_of_spaces(tmp_path: Path) -> None:
    plain = conll(DEV)
    odd = "\ufeff-DOCSTART- -X- O\n\n" + plain.replace("\n\n", "\n \t\n\n-DOCSTART-\tO\n\n") + "\n\n"
    written(tmp_path, conll(TRAIN), odd.replace("\n", "\r\n"))
    assert dev_words(read(tmp_path)[1]) == EXPECTED


def test_words_may_hold_other_spaces_and_marks(tmp_path: Path) -> None:
    words = ["a\u00a0b", "\u2028", "#", '"', "\ufeffx", "<s>", "漢字"]
    written(tmp_path, conll(TRAIN), conll([*DEV, (words, ["O"] * 7)]))
    assert dev_words(read(tmp_path)[1])[-1] == [(word, "O") for word in words]


def test_columns_between_have_names_and_can_be_named(tmp_path: Path) -> None:
    def wide(texts: list[tuple[list[str], list[str]]]) -> str:
        return conll([(words, [f"NN{i % 2} x {tag}" for i, tag in enumerate(tags)]) for words, tags in texts], " ")

    written(tmp_path, wide(TRAIN), wide(DEV))
    assert dev_words(read(tmp_path)[1]) == EXPECTED
    files = Files(train="names.conll", dev="dev.conll", columns=("form", "pos", "other", "ner"))
    assert dev_words(read(tmp_path, files=files, text=("form",), label="ner")[1]) == EXPECTED
    for label, own in (("column2", Files(train="names.conll", dev="dev.conll")), ("pos", files)):
        text = "tokens" if label == "column2" else "form"
        data, _ = read(tmp_path, files=own, text=(text,), label=label, metrics=("accuracy",))
        assert data.labels == ("NN0", "NN1")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_lists_of_words_and_tags(tmp_path: Path, suffix: str) -> None:
    train, dev = written(tmp_path, jsonl(TRAIN), jsonl(DEV), suffix)
    for path, texts in ((train, TRAIN), (dev, DEV)):
        if suffix == ".parquet":
            columns = dict(zip(("tokens", "tags"), map(list, zip(*texts, strict=True)), strict=True))
            pyarrow.parquet.write_table(pyarrow.table(columns), path)
    data, reported = read(tmp_path, files=Files(train=train.name, dev=dev.name))
    assert data.labels == NAMES and dev_words(reported) == EXPECTED


def test_an_empty_text_has_no_words(tmp_path: Path) -> None:
    train, dev = written(tmp_path, jsonl([*TRAIN, ([], [])]), jsonl([DEV[0], ([], []), DEV[1]]), ".jsonl")
    _, reported = read(tmp_path, files=Files(train=train.name, dev=dev.name))
    split = reported.splits["dev"]
    assert split.labels[1].shape == (0, 3) and split.texts[0][1] == ""
    gold = KIND.gold(split.labels)
    assert len(gold) == 7 + 9 and (gold < 0).sum() == 2 and gold[0] == ~0 and gold[7] == ~0


def test_numbers_of_tags_have_the_names_of_the_task(tmp_path: Path) -> None:
    order = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
    numbered = [[(words, [order.index(tag) for tag in tags]) for words, tags in texts] for texts in (TRAIN, DEV)]
    train, dev = written(tmp_path, jsonl(numbered[0]), jsonl(numbered[1]), ".jsonl")
    files = Files(train=train.name, dev=dev.name)
    data, reported = read(tmp_path, files=files, labels=order)
    assert data.labels == order and dev_words(reported) == EXPECTED
    data, _ = read(tmp_path, files=files, metrics=("accuracy",))
    assert data.labels == ("0", "1", "2", "3", "4")
    assert any("train: tags are numbers and stay so; `labels` in the task file names them" in n for n in data.notes)
    with pytest.raises(CompressError, match=r"`entity_f1` needs labels of entities, .* found 0, 1, 2"):
        read(tmp_path, files=files)


def other_scheme(tags: list[str], scheme: str) -> list[str]:
    """IOB2 tags, none of whose entities touch one of their type, in another scheme."""
    if scheme == "IOB1":
        return [tag.replace("B-", "I-") for tag in tags]
    last, alone = {"BIOES": "ES", "BILOU": "LU"}[scheme]
    found = []
    for tag, after in zip(tags, [*tags[1:], "O"], strict=True):
        ends = tag != "O" and not after.startswith("I-")
        mark = tag[:1] if not ends else alone if tag.startswith("B-") else last
        found.append(tag if tag == "O" else f"{mark}{tag[1:]}")
    return found


@pytest.mark.parametrize(
    ("scheme", "note"),
    [
        ("IOB1", "train: 40 entities begin with I-, as in IOB1; it is read as B-"),
        ("BIOES", "train: tags are BIOES, read as IOB2"),
        ("BILOU", "train: tags are BILOU, read as IOB2"),
    ],
)
def test_other_schemes_become_iob2(tmp_path: Path, scheme: str, note: str) -> None:
    train, dev = (conll([(words, other_scheme(tags, scheme)) for words, tags in texts]) for texts in (TRAIN, DEV))
    written(tmp_path, train, dev)
    data, reported = read(tmp_path)
    assert data.labels == NAMES and dev_words(reported) == EXPECTED
    assert note in data.notes


def test_both_marks_of_a_type_are_labels_though_the_data_lack_one(tmp_path: Path) -> None:
    short = [(["one", "Ada", str(n)], ["O", "B-PER", "O"]) for n in range(20)]
    written(tmp_path, conll(short), conll([(["the", "Ada"], ["O", "B-PER"])]))
    data, _ = read(tmp_path)
    assert data.labels == ("O", "B-PER", "I-PER")
    assert "train has no example of the label 'I-PER'" in data.notes


def test_parts_of_speech_are_sorted(tmp_path: Path) -> None:
    texts = [([f"w{n}", "x", "y"], ["VERB", "ADJ", "NOUN"]) for n in range(20)]
    written(tmp_path, conll(texts), conll([(["new", "x"], ["NOUN", "ADJ"])]))
    data, reported = read(tmp_path, metrics=("accuracy",))
    assert data.labels == ("ADJ", "NOUN", "VERB") and dev_words(reported) == [[("new", "NOUN"), ("x", "ADJ")]]


def test_class_labels_of_a_data_set_have_their_names(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
    tags = datasets.List(datasets.ClassLabel(names=names))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": tags})
    saved = {
        split: datasets.Dataset.from_dict(
            {"tokens": [w for w, _ in texts], "ner_tags": [[names.index(tag) for tag in t] for _, t in texts]},
            features=features,
        )
        for split, texts in (("train", TRAIN), ("validation", DEV))
    }
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "set"))
    data, reported = read(tmp_path, hub=Hub(path="set"), label="ner_tags")
    assert (
        data.labels == ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER") and dev_words(reported) == EXPECTED
    )


def test_outputs_are_scored_by_words(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    _, data = read(tmp_path)
    labels = data.splits["dev"].labels
    gold = KIND.gold(labels)
    ids = KIND.expected(gold)
    outputs = np.eye(len(NAMES), dtype=np.float32)[ids]
    spec = tagging(metrics=("entity_f1", "accuracy"))
    assert score(spec, NAMES, outputs, gold) == {"entity_f1": 100.0, "accuracy": 100.0}
    outputs[0] = np.nan
    with pytest.raises(CompressError, match=rf"1 of {len(gold)} words have logits that are not finite"):
        score(spec, NAMES, outputs, gold)
    with pytest.raises(CompressError, match="expected logits of shape"):
        score(spec, NAMES, outputs[:-1], gold)


def test_the_kind_answers_and_is_kept_in_the_form_of_words() -> None:
    gold = np.array([~3, 4, 0, ~0, 1])
    outputs = np.random.default_rng(0).normal(size=(5, 5))
    kept = KIND.kept(outputs).astype(KIND.kept_type(NAMES))
    assert (KIND.answers(KIND.outputs(kept, NAMES)) == KIND.answers(outputs)).all()
    assert KIND.kept_type(NAMES) == np.int8 and KIND.kept_type(NAMES * 30) == np.int16
    assert KIND.fits(gold, NAMES) and KIND.fits(kept, NAMES) and not KIND.fits(np.array([~5]), NAMES)
    assert not KIND.fits(np.array([5]), NAMES) and not KIND.fits(outputs, NAMES)
    assert [KIND.written(label, NAMES) for label in gold] == ["B-PER", "I-PER", "O", "O", "B-LOC"]
    assert KIND.confidence is not None and KIND.confidence(outputs).shape == (5,)
    assert KIND.temperature is not None and 0.05 <= KIND.temperature(outputs, gold) <= 20
    assert KIND.mean is not None and KIND.mean([outputs, outputs]).shape == (5, 5)


def test_texts_go_by_their_rarest_label() -> None:
    texts = [[0, 1], [0, 0], [], [0, 1, 3], [0], [3, 3]]
    labels = np.empty(6, dtype=object)
    for row, ids in enumerate(texts):
        labels[row] = np.array([(label, i, i + 1) for i, label in enumerate(ids)], np.int32).reshape(-1, 3)
    assert KIND.strata(labels) == [1, 0, -1, 1, 0, 3]
    assert KIND.present(labels) == {0, 1, 3}
    assert KIND.constant(labels, NAMES).tolist() == [1, 0, 0, 0, 0]


def test_fingerprints_follow_tags(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    spec = tagging()
    before, split = fingerprint(spec, tmp_path, None), load_reported(spec, tmp_path, None).splits["dev"]
    same = split_fingerprint(split)
    changed = replace(split, labels=split.labels[::-1])
    assert split_fingerprint(changed) != same == split_fingerprint(split)
    written(tmp_path, conll(TRAIN), conll(DEV).replace("Ada\tB-PER", "Ada\tB-LOC", 1))
    assert fingerprint(spec, tmp_path, None) != before


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        ("Ada\tB-PER\nsaw\n", r"dev\.conll: line 2: expected 2 fields, found 1"),
        ("Ada\tB-PER\n\nsaw\tit\tO\n", r"dev\.conll: line 3: expected 2 fields, found 3"),
        ("Ada\tB-PER\nsaw\tPER\nit\tO\n", r"line 1: word 2: expected a tag such as O, B-PER or I-PER, found 'PER'"),
        ("Ada\tB-PER\n\nsaw\tO\nit\tB-per\n", r"line 3: word 2: unknown label 'B-per'; did you mean 'B-PER'\?"),
        ("\tO\nAda\tB-PER\n", r"line 1: tokens: word 1: expected text, found ''"),
        ("Ada\t\n", r"line 1: tags: word 1: expected a tag, found ''"),
        ("Ada\tO\nsaw\tO\n", r"dev\.conll: all 2 words have the label 'O'; expected entities among them"),
        ("Ada\n", r"expected in each line a word and its label, with a tab or spaces between, found 'Ada'"),
        ("\n \n-DOCSTART-\tO\n", r"dev\.conll: no examples"),
        ("", r"dev\.conll: no examples"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, dev: str, message: str) -> None:
    written(tmp_path, conll(TRAIN), dev)
    with pytest.raises(CompressError, match=message):
        read(tmp_path)


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
        (("O", "B-PER", "I-PER", "B-LOC"), "`labels` has 'B-LOC' without 'I-LOC'; list both"),
        (("B-PER", "I-PER", "O"), "`labels` begin with 'O', found 'B-PER' first"),
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
    (tmp_path / "x.jsonl").write_text(lines + "\n")
    with pytest.raises(CompressError, match="tokens: expected text or a list of words, found"):
        read(tmp_path, files=Files(train="x.jsonl", dev="x.jsonl"))


def test_comments_before_a_text_are_of_no_word(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    expected, _ = read(tmp_path)
    texts = conll(TRAIN).split("\n\n")
    commented = (f"# sent_id = {number}\n# text = a b\n{text}" for number, text in enumerate(texts))
    written(tmp_path, "\n\n".join(commented), conll(DEV))
    found, _ = read(tmp_path)
    assert found.train.texts == expected.train.texts and found.labels == expected.labels


def others(*tags: str) -> list[tuple[list[str], list[str]]]:
    return [([f"a{number}", "b"], [tags[number % len(tags)], tags[-1]]) for number in range(40)]


def test_a_label_called_o_comes_first_among_others(tmp_path: Path) -> None:
    """It is what a word without a token is answered with, in scores as in bundles."""
    written(tmp_path, conll(others("GENE", "O")), conll(others("GENE", "O")[:2]))
    assert read(tmp_path, metrics=("accuracy",))[0].labels == ("O", "GENE")


def test_tags_that_look_like_entities_beside_others_are_told(tmp_path: Path) -> None:
    written(tmp_path, conll(others("B-PER", "o")), conll(others("B-PER", "o")[:2]))
    notes = read(tmp_path, metrics=("accuracy",))[0].notes
    assert any("'B-PER' stand beside 'o'" in note for note in notes)


def test_tags_without_marks_are_told(tmp_path: Path) -> None:
    written(tmp_path, conll(others("person", "O")), conll(others("person", "O")[:2]))
    notes = read(tmp_path, metrics=("accuracy",))[0].notes
    assert any("write B-person and I-person" in note for note in notes)


def test_conll_u_gives_forms_and_parts_of_speech(tmp_path: Path) -> None:
    texts = []
    for number in range(40):
        lines = [f"# sent_id = {number}", f"1-2\tcan't{number}" + "\t_" * 8]
        words = ((1, "ca", "AUX"), (2, "n't", "PART"), (3, f"go{number}", "VERB"))
        lines += [f"{place}\t{word}\tlemma\t{tag}\tX\t_\t0\troot\t_\t_" for place, word, tag in words]
        texts.append("\n".join([*lines, "3.1\tgone" + "\t_" * 8]) + "\n")
    written(tmp_path, "\n".join(texts), "\n".join(texts[:3]))
    train, data = read(tmp_path, metrics=("accuracy",))
    assert train.labels == ("AUX", "PART", "VERB")
    assert dev_words(data)[0] == [("ca", "AUX"), ("n't", "PART"), ("go0", "VERB")]
