"""Messages shorten the input that they quote, but keep the words that help."""

from __future__ import annotations

import pytest

from compress.errors import CheckFailed, CompressError, readable

LONG = "k" * 100_000


@pytest.mark.parametrize("long", [LONG, "k " * 50_000, "🙂" * 100_000, "/tmp/" + "folder/" * 20_000])
def test_what_is_long_is_cut_and_the_advice_stays(long: str) -> None:
    for message in (f"mine.yaml:3: {long}: unknown key; did you mean `title`?", f"mine.yaml:3: title: found {long}"):
        said = str(CompressError(message))
        assert len(said) < 2100
        assert said.startswith(message[:40])
        assert said.endswith(message[-40:])
    between = str(CheckFailed(f"--set {LONG}: {LONG!r} is not a YAML value: {LONG}"))
    assert "is not a YAML value" in between
    assert len(between) < 1000


def test_what_is_readable_stays_as_it_is() -> None:
    message = "mine.yaml:7: titel: unknown key; did you mean `title`?\nmine.yaml:8: `é` — 漢字: expected a list"
    assert readable(message) == message
    assert readable("/a" * 150) == "/a" * 150


def test_many_mistakes_are_told_by_the_first_ones() -> None:
    lines = readable("\n".join(f"line {number}" for number in range(5000))).splitlines()
    assert lines[:50] == [f"line {number}" for number in range(50)]
    assert lines[50:] == ["… and 4,950 more lines"]


def test_a_terminal_obeys_nothing_of_it() -> None:
    assert readable("a\x1b[2Jb\rc\u202ed\x85e\ud800") == r"a\x1b[2Jb\rc\u202ed\x85e\ud800"
