"""`compress.run` and `compress.plan` say what is wrong with their arguments."""

from __future__ import annotations

from typing import Any

import pytest

import compress
from compress.errors import CompressError


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"out": "runs"}, "no option `out`.*root"),
        ({"sedes": (0,)}, "no option `sedes`; did you mean `seeds`"),
        ({"overrides": {"distill.epochs": 1}}, r'overrides: expected a list like \["distill.epochs=1"\], found'),
        ({"overrides": "distill.epochs=1"}, "overrides: expected a list"),
    ],
)
def test_a_wrong_argument_is_named(options: dict[str, Any], expected: str) -> None:
    with pytest.raises(CompressError, match=expected):
        compress.plan("distilbert", tasks=["toy-sentiment"], teacher="bert-mini", **options)
