"""A process with the commands' imports done, shared by the tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from command_runs import Commands, commands_in
from fault_runs import Forks


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    folder = tmp_path_factory.mktemp("commands")
    forks = Forks(folder, "command_child.py")
    yield commands_in(forks, folder)
    forks.close()
