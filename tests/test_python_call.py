"""`compress.run` and `compress.plan` say what is wrong with their arguments."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import compress
from compress import Options
from compress.errors import CompressError
from compress.pipeline import Listener, Request
from compress.tasks import OwnFiles


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


def test_progress_is_shown_or_heard_by_a_listener() -> None:
    with pytest.raises(CompressError, match="progress and listener: expected one of the two"):
        compress.run("distilbert", tasks="toy-sentiment", progress=True, listener=Listener())


def test_its_options_are_those_of_a_request() -> None:
    """`own` is put together from the options that say what is in the user's files; its task is named after them."""
    request, own = ({field.name for field in fields(kind)} for kind in (Request, OwnFiles))
    assert set(Options.__annotations__) == (request - {"recipes", "tasks", "own"}) | (own - {"name"})
