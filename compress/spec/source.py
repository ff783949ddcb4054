"""YAML file -> validated model; all mistakes at once, each with its file, line and path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import CompressError
from .document import Document, read_document
from .overrides import apply_overrides
from .problems import explain

Model = TypeVar("Model", bound=BaseModel)


def load(
    path: Path, model: type[Model], *, overrides: Sequence[str] = (), context: Mapping[str, Any] | None = None
) -> Model:
    """Read `path`, apply `overrides` (`path=value`), validate; `context` is for the model's validators.

    Raises `CompressError` with one line per mistake: `file:line: path: what is wrong; what to do`, where the place of an overridden value
    is `--set`.
    """
    document = read_document(path)
    apply_overrides(document, overrides, model.model_fields)
    return validate(document, model, context)


def validate(document: Document, model: type[Model], context: Mapping[str, Any] | None = None) -> Model:
    """Validate strictly: text is not a number, `true` is not 1; but whole numbers are accepted as numbers, and lists as tuples."""
    try:
        return model.model_validate(document.data, strict=True, context=context)
    except ValidationError as error:
        problems = explain(error, document, model)
    lines = [f"{document.label(where)}: {problem}" for where, problem in problems]
    raise CompressError("\n".join(dict.fromkeys(lines)))
