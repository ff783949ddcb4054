"""The lines that `predict` prints: an answer, and how many texts were cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from .answers import Model


def plain_line(model: Model) -> Callable[[Any, Any], str]:
    """Return a function that formats an answer, given its text, as a line."""
    return lambda _, answer: model.settings.kind.line(answer)


def json_line(model: Model) -> Callable[[Any, Any], str]:
    """As `plain_line`, in JSON. Every line records what computed it, so that answers of several runs can be combined."""
    import json

    by = {"runtime": model.runtime, "precision": model.precision}
    by |= {"precision_hint": model.precision_hint} if model.precision_hint else {}

    def line(text: Any, answer: Any) -> str:
        return json.dumps({"text": text, **model.settings.kind.fields(answer), **by}, ensure_ascii=False)

    return line


def report_cut(model: Model) -> None:
    """Say on stderr how many of the texts that were answered are longer than the model reads, if any is."""
    count, most = model.examples_cut, model.settings.max_length
    if not count:
        return
    unit = model.settings.kind.unit
    what = "question" if unit == "choice" else "example" if unit == "pair" else "pair" if model.columns == 2 else "text"
    has, of_each = ("has", "") if count == 1 else ("have", " of each")
    noun = what if model.examples_read == 1 else f"{what}s"
    line = (
        f"{count:,} of {model.examples_read:,} {noun} {has} more than {most:,} tokens; the rest{of_each} was not read"
    )
    typer.echo(line, err=True)
