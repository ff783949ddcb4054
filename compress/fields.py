"""The base of every spec: frozen, no unknown keys, strict about types."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Spec(BaseModel):
    """A validated, immutable piece of configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


NOT_UNICODE = "expected Unicode text, found half of a surrogate pair"


def is_unicode(text: str) -> bool:
    """Whether the text has no half of a surrogate pair, which cannot be written to a file: a run would fail there."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, lt=1)]
PositiveFraction = Annotated[float, Field(gt=0, lt=1)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
