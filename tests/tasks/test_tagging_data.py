"""A label for each word: as columns of words or lists of words, and how they are loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tagged_files import conll, csv_lists, dev_words, jsonl, others, read, sentences, tagging, written

from compress.errors import CompressError
from compress.metrics.tags import split_labels
from compress.spec.task import Files
from compress.tasks import (
    TASK_KINDS,
    OwnFiles,
    fingerprint,
    load_reported,
    load_training,
    own_task,
    score,
    split_fingerprint,
)

KIND = TASK_KINDS["tagging"]
NAMES = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
TRAIN, DEV = sentences("train"), sentences("dev", 12)


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


def test_listed_labels_of_single_words_need_no_inside(tmp_path: Path) -> None:
    texts = [(["no", f"{n}", "Oslo", "Rome"], ["O", "O", "B-LOC", "B-LOC"]) for n in range(30)]
    written(tmp_path, conll(texts[:20]), conll(texts[20:]))
    data, reported = read(tmp_path, labels=("O", "B-LOC"))
    assert data.labels == reported.labels == ("O", "B-LOC")
    assert dev_words(reported)[0] == [("no", "O"), ("20", "O"), ("Oslo", "B-LOC"), ("Rome", "B-LOC")]
    assert read(tmp_path)[0].labels == ("O", "B-LOC", "I-LOC")  # unless they are listed


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
    gold = KIND.labels.gold(split.labels, split.texts)
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
    assert any(
        "train: tags are numbers and stay numbers; name them with `labels` in the task file" in n for n in data.notes
    )
    with pytest.raises(CompressError, match=r"`entity_f1` needs labels of entities, .* found 0, 1, 2"):
        read(tmp_path, files=files)


def test_numbers_of_tags_are_said_to_stay_numbers_without_a_task_file_too(tmp_path: Path) -> None:
    numbered = [[(words, [len(tag) for tag in tags]) for words, tags in texts] for texts in (TRAIN, DEV)]
    train, dev = written(tmp_path, jsonl(numbered[0]), jsonl(numbered[1]), ".jsonl")
    data = load_training(*own_task(OwnFiles(train, dev)), None)
    assert data.labels == ("1", "5") and data.spec.metrics == ("accuracy",)
    assert any("train: tags are numbers and stay numbers; name them with `labels`" in note for note in data.notes)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_lists_and_spans_in_csv_are_json(tmp_path: Path, suffix: str) -> None:
    files = Files(train=f"train.{suffix}", dev=f"dev.{suffix}")
    mark = {"csv": ",", "tsv": "\t"}[suffix]
    for name, texts in (("train", TRAIN), ("dev", DEV)):
        (tmp_path / f"{name}.{suffix}").write_text(csv_lists(texts, mark=mark))
    assert dev_words(read(tmp_path, files=files)[1]) == EXPECTED
    for name in ("train", "dev"):
        rows = "".join(f'Ada {name} {n}{mark}"[{{""start"": 0, ""end"": 3, ""label"": ""PER""}}]"\n' for n in range(20))
        (tmp_path / f"{name}.{suffix}").write_text(f"tokens{mark}tags\nnobody{mark}[]\n{rows}")
    words = dev_words(read(tmp_path, files=files)[1])
    assert words[:2] == [[("nobody", "O")], [("Ada", "B-PER"), ("dev", "O"), ("0", "O")]]


def other_scheme(tags: list[str], scheme: str) -> list[str]:
    """Convert IOB2 tags, without adjacent entities of one type, to another scheme."""
    if scheme == "IOB1":
        return [tag.replace("B-", "I-") for tag in tags]
    last, alone = {"BIOES": "ES", "BILOU": "LU"}[scheme]
    new_tags = []
    for tag, after in zip(tags, [*tags[1:], "O"], strict=True):
        ends = tag != "O" and not after.startswith("I-")
        mark = tag[:1] if not ends else alone if tag.startswith("B-") else last
        new_tags.append(tag if tag == "O" else f"{mark}{tag[1:]}")
    return new_tags


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


def test_outputs_are_scored_by_words(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    _, data = read(tmp_path)
    labels = data.splits["dev"].labels
    gold = KIND.labels.gold(labels, ())
    ids = split_labels(gold)[0]
    outputs = np.eye(len(NAMES), dtype=np.float32)[ids]
    spec = tagging(metrics=("entity_f1", "accuracy"))
    assert score(spec, NAMES, outputs, gold) == {"entity_f1": 100.0, "accuracy": 100.0}
    outputs[0] = np.nan
    with pytest.raises(CompressError, match=rf"1 of {len(gold)} words have logits that are not finite"):
        score(spec, NAMES, outputs, gold)
    with pytest.raises(CompressError, match="expected logits of shape"):
        score(spec, NAMES, outputs[:-1], gold)


def test_types_of_entities_are_counted_as_the_headline_counts_them() -> None:
    gold, outputs = np.array([~3, 4, 0]), np.eye(5)[[4, 4, 0]]  # B-PER I-PER O, given as I-PER I-PER O
    assert KIND.scoring.entity_types(outputs, gold, NAMES, ("entity_f1",))["PER"].f1 == 100
    assert KIND.scoring.entity_types(outputs, gold, NAMES, ("accuracy", "entity_f1_strict"))["PER"].f1 == 0
    assert KIND.scoring.entity_types(outputs, gold, NAMES, ("accuracy",))["PER"].f1 == 100


def test_the_kind_answers_and_is_kept_in_the_form_of_words() -> None:
    gold = np.array([~3, 4, 0, ~0, 1])
    outputs = np.random.default_rng(0).normal(size=(5, 5))
    form = KIND.stored
    stored = form.from_outputs(outputs).astype(form.dtype(NAMES))
    assert (KIND.answers(form.to_outputs(stored, NAMES)) == KIND.answers(outputs)).all()
    assert form.dtype(NAMES) == np.int8 and form.dtype(NAMES * 30) == np.int16
    assert form.fits(gold, NAMES) and form.fits(stored, NAMES) and not form.fits(np.array([~5]), NAMES)
    assert not form.fits(np.array([5]), NAMES) and not form.fits(outputs, NAMES)
    assert [KIND.labels.format(label, NAMES) for label in gold] == ["B-PER", "I-PER", "O", "O", "B-LOC"]
    assert KIND.decisions is not None and KIND.decisions.confidence(outputs).shape == (5,)
    assert KIND.ensemble is not None and KIND.ensemble.fit_temperature is not None
    assert 0.05 <= KIND.ensemble.fit_temperature(outputs, gold) <= 20
    assert KIND.ensemble.mean([outputs, outputs]).shape == (5, 5)


def test_texts_go_by_their_rarest_label() -> None:
    texts = [[0, 1], [0, 0], [], [0, 1, 3], [0], [3, 3]]
    labels = np.empty(6, dtype=object)
    for row, ids in enumerate(texts):
        labels[row] = np.array([(label, i, i + 1) for i, label in enumerate(ids)], np.int32).reshape(-1, 3)
    assert KIND.labels.strata(labels) == [1, 0, -1, 1, 0, 3]
    assert KIND.labels.present(labels) == {0, 1, 3}
    assert KIND.constant_baseline.outputs(labels, NAMES, KIND.labels.gold(labels, ())).tolist() == [1, 0, 0, 0, 0]


def test_fingerprints_follow_tags(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    spec = tagging()
    before, split = fingerprint(spec, tmp_path, None), load_reported(spec, tmp_path, None).splits["dev"]
    same = split_fingerprint(split)
    changed = replace(split, labels=split.labels[::-1])
    assert split_fingerprint(changed) != same == split_fingerprint(split)
    written(tmp_path, conll(TRAIN), conll(DEV).replace("Ada\tB-PER", "Ada\tB-LOC", 1))
    assert fingerprint(spec, tmp_path, None) != before


def test_comments_before_a_text_are_of_no_word(tmp_path: Path) -> None:
    written(tmp_path, conll(TRAIN), conll(DEV))
    expected, _ = read(tmp_path)
    texts = conll(TRAIN).split("\n\n")
    commented = (f"# sent_id = {number}\n# text = a b\n{text}" for number, text in enumerate(texts))
    written(tmp_path, "\n\n".join(commented), conll(DEV))
    actual, _ = read(tmp_path)
    assert actual.train.texts == expected.train.texts and actual.labels == expected.labels


def test_a_label_called_o_comes_first_among_others(tmp_path: Path) -> None:
    """It is the answer for a word without a token, in scores and in bundles."""
    written(tmp_path, conll(others("GENE", "O")), conll(others("GENE", "O", word="dev")[:2]))
    assert read(tmp_path, metrics=("accuracy",))[0].labels == ("O", "GENE")


def test_tags_that_look_like_entities_beside_others_are_told(tmp_path: Path) -> None:
    written(tmp_path, conll(others("B-PER", "o")), conll(others("B-PER", "o", word="dev")[:2]))
    notes = read(tmp_path, metrics=("accuracy",))[0].notes
    assert any("'B-PER' occur beside 'o'" in note for note in notes)


def test_tags_without_marks_are_told(tmp_path: Path) -> None:
    written(tmp_path, conll(others("person", "O")), conll(others("person", "O", word="dev")[:2]))
    notes = read(tmp_path, metrics=("accuracy",))[0].notes
    assert any("write B-person and I-person" in note for note in notes)


def test_conll_u_gives_forms_and_parts_of_speech(tmp_path: Path) -> None:
    texts = []
    for number in range(40):
        lines = [f"# sent_id = {number}", f"1-2\tcan't{number}" + "\t_" * 8]
        words = ((1, "ca", "AUX"), (2, "n't", "PART"), (3, f"go{number}", "VERB"))
        lines += [f"{place}\t{word}\tlemma\t{tag}\tX\t_\t0\troot\t_\t_" for place, word, tag in words]
        texts.append("\n".join([*lines, "3.1\tgone" + "\t_" * 8]) + "\n")
    written(tmp_path, "\n".join(texts[3:]), "\n".join(texts[:3]))
    train, data = read(tmp_path, metrics=("accuracy",))
    assert train.labels == ("AUX", "PART", "VERB")
    assert dev_words(data)[0] == [("ca", "AUX"), ("n't", "PART"), ("go0", "VERB")]
