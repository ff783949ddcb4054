"""Unnamed columns of texts and labels: found by names and values, or the user is asked to name them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.spec.kinds import KindName
from compress.tasks import OwnFiles, own_task
from compress.tasks.own.template import files_in, guess_columns, task_yaml


def test_columns_are_guessed(tmp_path: Path) -> None:
    rows = [f"{i},premise {i},what follows from it {i},{'yes' if i % 2 else 'no'},x" for i in range(20)]
    for name in ("train", "validation"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,premise,hypothesis,entails,source", *rows]))
    files = OwnFiles(*files_in(tmp_path))
    assert files.dev.name == "validation.csv"
    columns = guess_columns(files, [])
    assert (columns.text, columns.pair, columns.label) == ("premise", "hypothesis", "entails")
    columns = guess_columns(OwnFiles(files.train, files.dev, "hypothesis"), ["text"])
    assert (columns.text, columns.pair, columns.label) == ("hypothesis", None, "entails")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("what one of them said {}", "and what the other answered {}", "a"),
        ("a title {}", "a text that is much longer than its title is {}", "b"),
        ("https://example.org/some/page/{}", "a text about the page {}", "b"),
        ("wie man sagt {}", "", "a"),
    ],
)
def test_the_first_of_similar_columns_is_the_text(tmp_path: Path, first: str, second: str, expected: str) -> None:
    rows = [f"{first.format(i)},{second.format(i)},{'yes' if i % 2 else 'no'}" for i in range(20)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,entails", *rows]))
    files = files_in(tmp_path)
    columns = guess_columns(OwnFiles(*files), [])
    assert (columns.text, columns.pair) == (expected, None)
    columns = guess_columns(OwnFiles(*files, pair="b"), ["pair"])
    assert (columns.text, columns.pair) == ("a", "b")


def test_a_column_of_few_names_is_not_the_text(tmp_path: Path) -> None:
    rows = [f"Acme Phone {'XYZ'[i % 3]},the battery {i} is poor,{'yes' if i % 2 else 'no'}" for i in range(30)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["product,opinion,buy", *rows]))
    assert guess_columns(OwnFiles(*files_in(tmp_path)), []).text == "opinion"


def test_columns_of_0_and_1_are_labels_together(tmp_path: Path) -> None:
    rows = [f"{i},text {i},{i % 2},{(i + 1) // 2 % 2},0" for i in range(20)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,comment_text,toxic,insult,test", *rows]))
    files = files_in(tmp_path)
    columns = guess_columns(OwnFiles(*files), [])
    assert (columns.text, columns.label) == ("comment_text", "toxic,insult")
    assert own_task(columns)[0].kind == "multilabel"
    assert guess_columns(OwnFiles(*files, kind="classification"), []).label == "insult"
    assert guess_columns(OwnFiles(*files, label="toxic"), ["label"]).label == "toxic"
    for path in files:  # names with commas cannot be listed
        path.write_text(path.read_text().replace("toxic", '"rude, toxic"'))
    assert guess_columns(OwnFiles(*files), []).label == "insult"


def test_what_cannot_be_guessed_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"--train: expected .* such as train\.csv, found none here; name it"):
        files_in(tmp_path)
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b", *(f"{i},text {i}" for i in range(9))]))
    with pytest.raises(CompressError, match="no column looks like labels; name one of 'a', 'b' with --label"):
        guess_columns(OwnFiles(*files_in(tmp_path)), [])


def headless(folder: Path, header: str = "so very fine,good") -> OwnFiles:
    rows = [header, *(f"so fine {i},{('good', 'bad')[i % 2]}" for i in range(9))]
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text("\n".join(rows))
    return OwnFiles(*files_in(folder))


def test_a_file_that_begins_with_an_example_is_told(tmp_path: Path) -> None:
    own = headless(tmp_path)
    with pytest.raises(
        CompressError, match=r"its first line is read as the names .* 'good' is a value, too; put a line"
    ):
        guess_columns(own, [])
    with pytest.raises(
        CompressError, match=r"no column 'text'; .*; or put a line of names above, if 'good' is a value$"
    ):
        own_task(own)


@pytest.mark.parametrize(
    "header", ["comment,good", "what,rating", "what,good", "so very fine,other", "so fine 0,other"]
)
def test_a_line_of_names_may_hold_a_value(tmp_path: Path, header: str) -> None:
    own = headless(tmp_path, header)
    columns = guess_columns(own, [])
    assert [columns.text, columns.label] == header.split(",")


def test_named_columns_may_be_values(tmp_path: Path) -> None:
    columns = guess_columns(headless(tmp_path, "what,good"), ["label"])
    assert columns.text == "what"


@pytest.mark.parametrize(("suffix", "mark"), [(".tsv", "\t"), (".csv", ",")])
def test_one_word_per_line_is_no_table(tmp_path: Path, suffix: str, mark: str) -> None:
    """Sets of named entities are often called train.tsv; blank lines are between their texts."""
    for name in ("a", "b"):
        lines = "".join(f"Ada{mark}B-PER\nlives{n}{mark}O\n\n" for n in range(8))
        (tmp_path / f"{name}{suffix}").write_text(lines)
    own = OwnFiles(tmp_path / f"a{suffix}", tmp_path / f"b{suffix}")
    for call in (lambda: own_task(own), lambda: guess_columns(own, ())):
        with pytest.raises(
            CompressError, match=rf"a\{suffix}: expected a table .* blank lines between texts; rename the file"
        ):
            call()


def test_blank_lines_between_rows_of_a_table_do_not_matter(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("id,words\n1,so fine\n\n2,so dull\n")
    with pytest.raises(CompressError, match=r"a\.csv: no column 'text'; name one of 'id', 'words'"):
        own_task(OwnFiles(tmp_path / "a.csv", tmp_path / "b.csv"))


_PLACES = {"billing": "invoice", "network": "router", "hardware": "screen"}


def tickets(folder: Path, header: str) -> OwnFiles:
    """Return files in which the team follows from the text; `vip` and `channel` do not, `spam` does."""
    names, rows = header.split(","), [header]
    for i in range(90):
        team = [*_PLACES][i // 2 % 3]
        values = {name: str(int(name == team)) for name in _PLACES} | {
            "note": f"please look at my {_PLACES[team]} number {i}",
            "team": team,
            "spam": str(int(team == "billing")),
            "vip": str(i % 7 % 2),
            "channel": ("mail", "web")[i % 5 % 2],
            "created": f"2024-01-{10 + i % 11}",
        }
        rows.append(",".join(values[name] for name in names))
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text("\n".join(rows))
    return OwnFiles(*files_in(folder))


@pytest.mark.parametrize(
    ("header", "label"),
    [
        ("note,team,vip", "team"),
        ("note,team,channel,created", "team"),
        ("note,channel,spam", "spam"),
        ("note,team,billing,network,hardware", "team"),
        ("note,billing,network,hardware", "billing,network,hardware"),
        ("note,vip,channel", "channel"),
        ("note,channel,vip", "vip"),
    ],
)
def test_labels_are_the_classes_that_the_texts_predict(tmp_path: Path, header: str, label: str) -> None:
    columns = guess_columns(tickets(tmp_path, header), [])
    assert (columns.text, columns.label) == ("note", label)


@pytest.mark.parametrize(
    "of_class", [lambda i, count: i % 2, lambda i, count: 2 * i // count], ids=["in turn", "sorted"]
)
def test_the_order_of_the_rows_does_not_matter(of_class: Callable[[int, int], int], tmp_path: Path) -> None:
    count, words = 2400, ("a dull and boring story", "a fine and lovely story")
    rows = [f"{words[of_class(i, count)]} {i},{('bad', 'good')[of_class(i, count)]},{i % 7 % 2}" for i in range(count)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["note,mood,vip", *rows]))
    assert guess_columns(OwnFiles(*files_in(tmp_path)), []).label == "mood"


def few_rows(folder: Path, header: str, remark: Callable[[int], str]) -> OwnFiles:
    """Return files of 20 rows; the mood alternates, five authors and three channels do not follow from it."""
    names, rows = header.split(","), [header]
    for i in range(20):
        values = {
            "remark": remark(i),
            "mood": ("angry", "happy")[i % 2],
            "author": "ABCDE"[i // 2 % 5],
            "channel": "xyz"[i // 3 % 3],
        }
        rows.append(",".join(values[name] for name in names))
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text("\n".join(rows))
    return OwnFiles(*files_in(folder))


@pytest.mark.parametrize("header", ["mood,remark,author", "remark,mood,channel", "author,mood,remark,channel"])
def test_of_few_rows_the_words_tell_the_label_too(tmp_path: Path, header: str) -> None:
    words = (("awful", "dull", "grim"), ("great", "fine", "superb"))
    columns = guess_columns(few_rows(tmp_path, header, lambda i: f"the {i} trip was {words[i % 2][i // 2 % 3]}"), [])
    assert (columns.text, columns.label) == ("remark", "mood")


@pytest.mark.parametrize(
    ("header", "label"),
    [("mood,remark,author", "mood"), ("remark,mood,channel,author", "mood"), ("mood,remark,channel", "channel")],
)
def test_without_a_sign_in_the_words_a_column_of_many_values_is_no_label(
    tmp_path: Path, header: str, label: str
) -> None:
    columns = guess_columns(few_rows(tmp_path, header, lambda i: f"this is remark number {i}"), [])
    assert (columns.text, columns.label) == ("remark", label)


@pytest.mark.parametrize(
    ("kind", "label"), [("regression", "author"), ("multilabel", "author"), ("classification", "mood"), (None, "mood")]
)
def test_scores_and_sets_of_labels_may_have_more_values_than_a_column_before_them(
    tmp_path: Path, kind: KindName | None, label: str
) -> None:
    own = few_rows(tmp_path, "remark,mood,author", lambda i: f"this is remark number {i}")
    assert guess_columns(replace(own, kind=kind), []).label == label


@pytest.mark.parametrize("names", [("sentence1", "sentence2"), ("first", "second")])
def test_labels_of_related_texts_are_not_what_the_words_of_one_predict(names: tuple[str, str], tmp_path: Path) -> None:
    """As in MNLI, where the genre stands before the label."""
    words = {"fiction": "the dragon flew over the castle", "letters": "please donate to our school"}
    rows = [
        f"{words[genre]} {i},{words[genre]} again {i},{genre},{('entailment', 'neutral')[i % 2]}"
        for i in range(200)
        for genre in [("fiction", "letters")[i // 2 % 2]]
    ]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join([f"{names[0]},{names[1]},genre,gold_label", *rows]))
    files = files_in(tmp_path)
    own = OwnFiles(*files) if names[0] == "sentence1" else OwnFiles(*files, *names)
    columns = guess_columns(own, [] if names[0] == "sentence1" else ["text"])
    assert (columns.text, columns.pair, columns.label) == (*names, "gold_label")


def test_a_flag_that_does_not_follow_from_a_class_is_as_good_a_label(tmp_path: Path) -> None:
    words = {("en", 0): "the film is good", ("en", 1): "the film is an insult",
             ("de", 0): "der Streifen war gut", ("de", 1): "der Streifen war mies"}  # fmt: skip
    rows = [f"{words[key]} {i},{key[0]},{key[1]}" for i in range(200) for key in [[*words][i // 3 % 4]]]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["note,lang,toxic", *rows]))
    assert guess_columns(OwnFiles(*files_in(tmp_path)), []).label == "toxic"


def test_columns_that_exclude_each_other_are_named(tmp_path: Path) -> None:
    own = guess_columns(tickets(tmp_path, "note,billing,network,hardware"), [])
    assert "each text of train has exactly one" in task_yaml(own, tmp_path / "a.yaml")[0]
    own = guess_columns(tickets(tmp_path, "note,billing,vip"), [])
    text, *_ = task_yaml(own, tmp_path / "a.yaml")
    assert "label: [billing, vip]" in text and "exactly one" not in text


@pytest.mark.parametrize(
    ("names", "kind"), [(("query", "document", "score"), "ranking"), (("query", "doc", "clicked"), "ranking"),
                        (("subject", "body", "clicked"), "classification")]
)  # fmt: skip
def test_usual_pairs_are_read_together(tmp_path: Path, names: tuple[str, ...], kind: str) -> None:
    rows = [f"question {i // 3},an answer of some words {i},{i % 2}" for i in range(30)]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(names), *rows]))
    columns = guess_columns(OwnFiles(*files_in(tmp_path)), [])
    assert (columns.text, columns.pair, columns.label) == names
    assert own_task(columns)[0].kind == kind
