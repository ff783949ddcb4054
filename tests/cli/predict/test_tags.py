"""`compress predict --input` on files with a word per line, and scores of word labels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from runtime_toys import describe
from seqeval import metrics as seqeval
from tagged_files import conll, csv_lists, jsonl
from tagger_toys import LABELS, chain

from compress.runtime import Tagger

SAYS = {"the": "B-PER", "guy": "I-PER", "in": "B-LOC", "so": "O", ",": "O"}
WORDS = [["so", "the", "guy", ",", "in"], ["in", "the"], ["so", "so"], ["guy", "in", "the", "guy"]] * 5
PREDICTED = [[SAYS[word] for word in words] for words in WORDS]  # the model's labels
HOLES = [
    ["O" if (row + place) % 7 == 0 else tag for place, tag in enumerate(tags)] for row, tags in enumerate(PREDICTED)
]
GOLD = [  # in IOB2
    [tag if tag != "I-PER" or tags[:place][-1:] == ["B-PER"] else "B-PER" for place, tag in enumerate(tags)]
    for tags in HOLES
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tagger_folder = chain(tmp_path_factory.mktemp("bundle") / "x", says=SAYS, scale=0.1)
    describe(tagger_folder, text_columns=["words"], max_length=24)
    return tagger_folder


def scores_in(line: str) -> dict[str, float]:
    assert re.fullmatch(r"65 words: .*; 95% intervals\n", line)
    return {name: float(points) for name, points in re.findall(r"(\w+) ([\d.]+) \([\d.]+ to [\d.]+\)", line)}


def expected_scores(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, float]:
    scores = {"entity_f1": seqeval.f1_score(gold, predicted), "accuracy": seqeval.accuracy_score(gold, predicted)}
    return {name: round(100 * float(share), 2) for name, share in scores.items()}


def test_a_file_of_a_word_a_line_is_answered_in_its_form_and_scored(cli, folder: Path, tmp_path: Path) -> None:
    texts = list(zip(WORDS, GOLD, strict=True))
    (tmp_path / "in.conll").write_text("-DOCSTART-\tO\n\n" + conll(texts))
    done = cli("predict", folder, "-i", tmp_path / "in.conll", "-o", tmp_path / "out.conll", "--label", "tags")
    assert (done.code, done.err) == (0, "")
    assert scores_in(done.out) == expected_scores(GOLD, PREDICTED)
    rows = [
        [line.split("\t") for line in text.splitlines()] for text in (tmp_path / "out.conll").read_text().split("\n\n")
    ]
    assert [list(map(tuple, text)) for text in rows if text] == [
        list(zip(*columns, strict=True)) for columns in zip(WORDS, GOLD, PREDICTED, strict=True)
    ]


def test_words_alone_are_answered_and_go_to_other_forms(cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("".join("\n".join(words) + "\n\n" for words in WORDS))
    done = cli("predict", folder, "-i", tmp_path / "in.txt")
    assert done.out.splitlines()[:6] == ["so\tO", "the\tB-PER", "guy\tI-PER", ",\tO", "in\tB-LOC", ""]
    assert cli("predict", folder, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.jsonl").code == 0
    first, *_ = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["tokens"] == WORDS[0]
    entities = [(each.label, each.text) for each in Tagger(folder).predict([WORDS[0]])[0]]
    assert (
        [(each["label"], each["text"]) for each in first["prediction"]]
        == entities
        == [("PER", "the guy"), ("LOC", "in")]
    )


@pytest.mark.parametrize("form", ["lists", "csv", "spans", "bioes"])
def test_labels_in_any_form_are_scored(cli, folder: Path, tmp_path: Path, form: str) -> None:
    gold, path = GOLD, tmp_path / ("in.csv" if form == "csv" else "in.jsonl")
    if form == "csv":
        path.write_text(csv_lists(list(zip(WORDS, gold, strict=True)), ("words", "gold")))
    elif form == "bioes":
        gold = [["S-LOC" if tag == "O" else tag for tag in tags] for tags in GOLD]
        path.write_text(jsonl(list(zip(WORDS, gold, strict=True)), ("words", "gold")))
    elif form == "lists":
        path.write_text(jsonl(list(zip(WORDS, gold, strict=True)), ("words", "gold")))
    else:
        texts = [" ".join(words) for words in WORDS]
        spans = [[[text.index("guy"), text.index("guy") + 3, "PER"]] if "guy" in text else [] for text in texts]
        gold = [[f"B-{'PER'}" if word == "guy" and words.index("guy") == place else "O" for place, word in enumerate(words)]
                for words in WORDS]  # fmt: skip
        path.write_text(jsonl(list(zip(texts, spans, strict=True)), ("words", "gold")))
    done = cli("predict", folder, "-i", path, "-o", tmp_path / "out.jsonl", "--label", "gold")
    assert (done.code, done.err) == (0, "")
    if form == "bioes":
        gold = [["B-LOC" if tag == "S-LOC" else tag for tag in tags] for tags in gold]
    assert scores_in(done.out) == expected_scores(gold, PREDICTED)


def test_labels_that_are_no_entities_have_accuracy_alone(cli, tmp_path: Path) -> None:
    tags = ("NOUN", "VERB")
    folder = chain(tmp_path / "x", labels=tags, says={"guy": "NOUN", "so": "VERB"}, scale=0.1)
    (tmp_path / "in.bio").write_text("guy NOUN\nso NOUN\n\nso VERB\nguy NOUN\n")
    done = cli("predict", folder, "-i", tmp_path / "in.bio", "--label", "tags")
    assert done.err.startswith("4 words: accuracy 75.00 (") and "entity" not in done.err
    assert done.out == "guy\tNOUN\tNOUN\nso\tNOUN\tVERB\n\nso\tVERB\tVERB\nguy\tNOUN\tNOUN\n\n"


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("so O\n\nthe B-PER\nguy B-X\n", ("--label", "tags"), "in.conll: line 4: unknown label 'B-X'; known:"),
        ("so O\nthe PER\n", ("--label", "tags"), "in.conll: line 2: expected a tag such as O, B-PER or I-PER, found 'PER'"),
        ("so O\nthe\n", (), "in.conll: line 2: expected 2 fields, found 1"),
        ("so\nthe\n", ("--label", "tags"), "in.conll: no column 'tags'"),
        ("so O\n", ("--text", "words"), "in.conll: no column 'words'; name one of 'tokens', 'tags' with --text"),
        ("so\tO\nthe\tB-PER\n\tO\n", (), "in.conll: line 3: tokens: expected words, found an empty one"),
        ("", (), "in.conll: no examples"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_its_line(
    cli, folder: Path, tmp_path: Path, content: str, words: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "in.conll").write_text(content)
    done = cli("predict", folder, "-i", tmp_path / "in.conll", "-o", tmp_path / "out.conll", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert expected in done.err
    assert not (tmp_path / "out.conll").exists()


def test_a_word_a_line_comes_of_such_a_file_alone(cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps({"words": ["so"]}))
    done = cli("predict", folder, "-i", tmp_path / "in.jsonl", "-o", tmp_path / "out.conll")
    assert done.code == 2 and "--output: expected a .csv, .tsv or .jsonl file, found out.conll" in done.err


@pytest.mark.parametrize(
    ("field", "form"), [("['so', 'the']", "Python lists have single quotes"), ("['so' 'the']", "a NumPy array as text")]
)
def test_lists_as_python_writes_them_are_refused(cli, folder: Path, tmp_path: Path, field: str, form: str) -> None:
    (tmp_path / "in.csv").write_text(f'words\n"{field}"\n')
    done = cli("predict", folder, "-i", tmp_path / "in.csv")
    assert done.code == 2 and "in.csv: line 2: words: expected a list in JSON" in done.err and form in done.err


def test_a_text_may_begin_with_a_bracket(cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("words\n[so] the guy\n")
    assert cli("predict", folder, "-i", tmp_path / "in.csv").code == 0


def test_a_file_is_not_answered_as_a_text(cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("so\n")
    assert "in.txt: is a file, and would be answered as a text" in cli("predict", folder, "in.txt").err


def test_label_words_gives_every_word(folder: Path) -> None:
    tagger = Tagger(folder)
    labelled = list(tagger.label_words(WORDS))
    assert [[word.label for word in each.labels] for each in labelled] == PREDICTED
    assert [each.text[start:end] for each in labelled[:1] for start, end in each.spans] == WORDS[0]
    assert [tagger.entities(each) for each in labelled] == tagger.predict(WORDS)
    assert set(tagger.labels) == set(LABELS)
