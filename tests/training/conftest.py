from __future__ import annotations

from collections.abc import Iterator

import pytest
from parallel_processes import Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    found = Processes()
    yield found
    found.close()
