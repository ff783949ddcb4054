"""The mistakes in a document, one per line."""

from __future__ import annotations

import pytest

from compress.errors import CompressError
from compress.spec.document import parse
from compress.spec.recipe import Recipe
from compress.spec.source import validate

HEAD = "name: mine\ntitle: Mine\n"


def mistakes(text: str, model: type = Recipe) -> list[str]:
    with pytest.raises(CompressError) as caught:
        validate(parse(text, "mine.yaml"), model)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()
