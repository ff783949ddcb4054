"""Commands that take records: every field is an option in its place, with its default."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import pytest
import typer

from compress.cli.signatures import call, takes_records


@dataclass(frozen=True, kw_only=True)
class Inner:
    depth: Annotated[int, typer.Option(min=1)] = 2


@dataclass(frozen=True, kw_only=True)
class Outer:
    inner: Inner
    width: Annotated[int, typer.Option()] = 3


@takes_records
def command(name: Annotated[str, typer.Argument()], outer: Outer, last: bool = False) -> tuple[str, Outer, bool]:
    return name, outer, last


def test_fields_take_the_place_of_their_record() -> None:
    assert [*signature(command).parameters] == ["name", "depth", "width", "last"]


def test_records_are_made_of_what_is_given_and_of_defaults() -> None:
    assert command("a") == ("a", Outer(inner=Inner()), False)
    assert command("a", width=5, depth=1, last=True) == ("a", Outer(inner=Inner(depth=1), width=5), True)


def test_the_parser_reads_them() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    parser = typer.main.get_command(app)
    assert parser.main(["b", "--depth", "4"], standalone_mode=False) == ("b", Outer(inner=Inner(depth=4)), False)
    with pytest.raises(typer.BadParameter, match="greater than or equal to 1"):
        parser.main(["b", "--depth", "0"], standalone_mode=False)


def test_a_record_is_made_of_a_mapping_that_holds_more() -> None:
    assert call(Outer, {"depth": 7, "width": 8, "other": 9}) == Outer(inner=Inner(depth=7), width=8)
