"""Lines of word files that start with a hash: comments or words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tagged_files import conll, dev_words, others, read, written

from compress.spec.task import Files


def conll_u(texts: list[tuple[list[str], list[str]]], *before: str) -> str:
    """Return ten columns, with comment lines `before` each text."""
    blocks = []
    for words, tags in texts:
        rows = (f"{n}\t{word}\t_\t{tag}" + "\t_" * 6 for n, (word, tag) in enumerate(zip(words, tags, strict=True), 1))
        blocks.append("\n".join([*before, *rows]) + "\n")
    return "\n".join(blocks)


@pytest.mark.parametrize("suffix", [".conllu", ".conll"])
@pytest.mark.parametrize(
    "before",
    [("# newdoc", "# newpar"), ("# newdoc id = x", "# sent_id = 1"), ("# text = a\tb", "# newpar"), ("#", "# a note")],
)
def test_all_comments_of_conll_u_are_of_no_word(tmp_path: Path, suffix: str, before: tuple[str, ...]) -> None:
    """Universal Dependencies' own files start with comments."""
    texts = others("NOUN", "VERB")
    train, dev = written(tmp_path, conll_u(texts[3:], *before), conll_u(texts[:3], *before), suffix)
    data, reported = read(tmp_path, files=Files(train=train.name, dev=dev.name), metrics=("accuracy",))
    assert data.labels == ("NOUN", "VERB")
    assert dev_words(reported) == [list(zip(*text, strict=True)) for text in texts[:3]]


@pytest.mark.parametrize("mark", ["\t", " "])
def test_words_that_begin_with_a_hash_are_words(tmp_path: Path, mark: str) -> None:
    texts = [(["#", f"#tag{n}", f"a{n}"], ["O", "X", "O"]) for n in range(20)]
    written(tmp_path, conll(texts[2:], mark), conll(texts[:2], mark))
    reported = read(tmp_path, metrics=("accuracy",))[1]
    assert dev_words(reported) == [list(zip(*text, strict=True)) for text in texts[:2]]


def test_columns_are_parted_as_the_first_line_without_a_hash(tmp_path: Path) -> None:
    texts = [(["New York", f"a{n}"], ["X", "O"]) for n in range(20)]
    written(tmp_path, "# newdoc\n" + conll(texts[1:]), "# newdoc\n" + conll(texts[:1]))
    assert dev_words(read(tmp_path, metrics=("accuracy",))[1]) == [[("New York", "X"), ("a0", "O")]]
