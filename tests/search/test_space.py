"""The values of `--try`: as `--set` reads them."""

from __future__ import annotations

import pytest

from compress.errors import CompressError
from compress.pipeline.request import load_recipe
from compress.search.space import axis_of, overrides_of


def test_rates_may_be_written_as_for_set() -> None:
    axis = axis_of("distill.learning_rate=[1e-4, 3e-5, 2.0e-4]")
    assert axis.values == (1e-4, 3e-5, 2e-4)
    for value in axis.values:
        recipe = load_recipe("distilbert", overrides_of({axis.name: value}))
        (distill,) = (stage.spec for stage in recipe.stages if stage.kind == "distill")
        assert distill.learning_rate == value


@pytest.mark.parametrize("value", ["2020-99-99", "!!int ''", "99999999999999999999", "'", "{"])
def test_what_is_no_value_is_refused_in_one_line(value: str) -> None:
    with pytest.raises(CompressError, match=r"^--try distill.epochs: .* is not a YAML value") as caught:
        axis_of(f"distill.epochs=[{value}]")
    assert "\n" not in str(caught.value)
