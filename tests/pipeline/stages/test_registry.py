"""The registry of stage kinds and the specs in recipes list the same stages."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from compress.pipeline.stages.registry import STAGES
from compress.spec.stages import STAGE_SPECS


def test_kinds_that_recipes_name_stand_in_their_order_with_their_specs() -> None:
    named = {name: kind.spec for name, kind in STAGES.items() if name in STAGE_SPECS}
    assert [*named.items()] == [*STAGE_SPECS.items()]
    assert all(STAGES[name].plan is not None for name in STAGE_SPECS)


@pytest.mark.parametrize("name", STAGES)
def test_a_kind_is_a_file_of_its_name(name: str) -> None:
    file = inspect.getsourcefile(STAGES[name].run)
    assert file is not None
    assert Path(file).name == f"{name}.py"
