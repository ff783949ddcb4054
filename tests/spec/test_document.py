from __future__ import annotations

import time

import pytest

from compress.errors import CompressError
from compress.spec.document import format_location, parse


def problem(text: str) -> str:
    with pytest.raises(CompressError) as caught:
        parse(text, "f.yaml")
    return str(caught.value)


def test_data_lines_and_spellings():
    document = parse("a: 1.50\nb:\n  - x\n  - {12: no}\n", "f.yaml")
    assert document.data == {"a": 1.5, "b": ("x", {12: False})}
    assert document.lines["b",] == 2
    assert document.lines["b", 1, 12] == 4
    assert document.spellings["a",] == "1.50"
    assert document.spellings["b", 1, 12] == "no"
    assert document.place(("b", 0)) == "f.yaml:3"
    assert document.place(("b", 7, "absent")) == "f.yaml:2"


def test_spelling_of_paths():
    assert format_location(("stages", 1, "distill", "epochs")) == "stages[1].distill.epochs"
    assert format_location(()) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\na: 2", "f.yaml:2: a: written twice; first on line 1"),
        ("b: {c: 1, c: 2}", "f.yaml:1: b.c: written twice; first on line 1"),
        ("yes: 1", "f.yaml:1: expected text or a whole number as a key, found `yes`; quote it if it is text"),
        ("a: {1.5: 1}", "f.yaml:1: a: expected text or a whole number as a key, found `1.5`; quote it if it is text"),
        ("? [x]\n: 1", "f.yaml:1: expected text or a whole number as a key, found a list or mapping"),
        ("a: &a {b: 1}\nc: {<<: *a}", "f.yaml:2: c: merge keys (`<<`) are not supported; write the fields out"),
        ("a: 1\n---\nb: 2", "f.yaml:2: not valid YAML: expected one document, found a second (`---`)"),
        ("a: 2020-13-45", "f.yaml:1: a: cannot be read as a value (month must be in 1..12); quote it if it is text"),
        (
            "a: !!set {b}",
            "f.yaml:1: a: the tag `tag:yaml.org,2002:set` is not supported; expected a plain list or mapping",
        ),
        ("a: *b", "f.yaml:1: not valid YAML: found undefined alias 'b'"),
        (
            "a: [1",
            "f.yaml:1: not valid YAML: expected ',' or ']', but got '<stream end>' while parsing a flow sequence",
        ),
        (
            "\tname: x",
            "f.yaml:1: not valid YAML: found character '\\t' that cannot start any token while scanning for the next token",
        ),
        ("a: \x00", "f.yaml: not valid YAML: special characters are not allowed"),
    ],
)
def test_what_is_refused(text, expected):
    assert problem(text) == expected


def test_python_objects_are_never_made():
    assert "is not supported" in problem("a: !!python/object/apply:os.getcwd []")
    assert "could not determine a constructor" in problem("a: !!python/name:os.getcwd x")


def test_several_mistakes_of_form_are_reported_together():
    assert len(problem("a: 1\na: 2\nno: 3\n").splitlines()) == 2


def test_aliases_are_read_within_bounds():
    assert parse("a: &x [1, 2]\nb: *x", "f.yaml").data == {"a": (1, 2), "b": (1, 2)}
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert "too large or too deep once aliases are read" in problem(bomb)
    assert "too large or too deep" in problem("a: &a [*a]")
    assert "too deep" in problem("[" * 1000)


@pytest.mark.parametrize(
    "number", ["0x" + "f" * 5000, "0b1" + "0" * 63, "07" + "7" * 5000, "9" * 20, "1" + ":59" * 2000]
)
def test_numbers_beyond_what_anything_takes_are_placed_and_not_repeated(number):
    with pytest.raises(CompressError) as caught:
        parse(f"a: 1\nb:\n  - {number}\n? {number}\n: x\n", "x.yaml")
    first, second = str(caught.value).splitlines()
    reason = "cannot be read as a value (a whole number beyond 9223372036854775807); quote it if it is text"
    assert first == f"x.yaml:3: b[0]: {reason}"
    assert second == f"x.yaml:4: {reason}"


def test_whole_numbers_keep_their_bases():
    assert parse("[0x7fffffffffffffff, -0x10, 0b11, 010, 1:30, -9223372036854775807]", "x.yaml").data == (
        2**63 - 1, -16, 3, 8, 90, 1 - 2**63,
    )  # fmt: skip


@pytest.mark.parametrize("text", ["[" + ("[" * 200 + "]" * 200 + ",") * 1000 + "]", "- - x\n" * 100_000])
def test_what_is_too_large_is_refused_before_it_is_parsed(text):
    """Parsing a megabyte takes most of a minute."""
    start = time.process_time()
    assert "too large or too deep" in problem(text)
    assert time.process_time() - start < 5
