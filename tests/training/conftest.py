from __future__ import annotations

from collections.abc import Iterator

import pytest
from parallel_processes import Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    groups = Processes()
    yield groups
    groups.close()
