"""The table of scores by type of entity."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compress.report.sections.entity_types import type_tables


@pytest.mark.parametrize(("metric", "expected"), [("entity_f1", "F1 ("), ("entity_f1_strict", "strict F1 (")])
def test_it_says_which_rule_counts(metric: str, expected: str) -> None:
    score = SimpleNamespace(precision=50.0, recall=100.0, f1=66.67, entities=7, given=14)
    model = SimpleNamespace(name="teacher", precision="fp32", types={"PER": score})
    run = SimpleNamespace(models=[model], task=SimpleNamespace(metrics=(metric,), splits=("dev",)))
    variant: Any = SimpleNamespace(first=run, runs=[run])
    (table,) = type_tables(variant)
    assert table.columns[2].unit.startswith(expected)
    assert [cell.text for cell in table.lines[0].cells] == ["PER", "7", "66.67"]
