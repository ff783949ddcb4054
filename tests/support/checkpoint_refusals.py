"""The one line in which a checkpoint is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compress.errors import CompressError


def refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CompressError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
