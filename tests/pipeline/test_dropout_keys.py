"""Keys of stages that train with a dropout rate, for models whose class leaves dropouts out where their config has a rate of 0."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compress.pipeline.plan.fields import seeded_fields
from compress.spec.stages import Finetune

MODERNBERT = {"model_type": "modernbert"}  # attention_dropout is 0 by default
XLNET = {"model_type": "xlnet"}  # summary_last_dropout is 0.1


@pytest.mark.parametrize(
    ("config", "dropout", "is_new"),
    [
        (MODERNBERT, 0.3, True),
        (MODERNBERT, 0.0, False),
        (MODERNBERT, None, False),
        (MODERNBERT | {"attention_dropout": 0.1}, 0.3, False),
        (XLNET, 0.3, False),
        (XLNET | {"summary_last_dropout": 0}, 0.3, True),
        ({"model_type": "bert", "attention_dropout": 0.0}, 0.3, False),
    ],
)
def test_work_of_versions_that_left_dropouts_off_is_not_taken(
    config: dict[str, Any], dropout: float | None, is_new: bool
) -> None:
    bert, source = SimpleNamespace(config={"model_type": "bert"}), SimpleNamespace(config=config)
    teacher: Any = SimpleNamespace(teachers={"teacher": source}, pretrained=None, precision="fp32")
    student: Any = SimpleNamespace(teachers={"teacher": bert}, pretrained=source, precision="fp32")
    spec = Finetune(dropout=dropout)
    fields = spec.model_dump(mode="json", exclude={"per_task"}) | {"seed": 0, "precision": "fp32"}
    for draft in (teacher, student):
        assert (seeded_fields(draft, spec, 0) != fields) is is_new
