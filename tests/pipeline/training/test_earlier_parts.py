"""A training resumed with another number of threads records both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from listeners import StopError, Stopping
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Request, run_all
from compress.provenance import running_code
from compress.reproduction.conditions import are_exact, conditions_of
from compress.results import Result

pytestmark = pytest.mark.end_to_end


def earlier(result: Result) -> list[Any]:
    return [stage.info["earlier_parts"] for stage in result.stages if "earlier_parts" in stage.info]


def test_the_record_of_a_stage_has_its_earlier_parts(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    request = Request(
        ("int8",), (str(tmp_path / "task.yaml"),), teacher=str(teacher), root=tmp_path / "runs", threads=2, bench=None,
        overrides=("finetune.max_steps=4", "quantize.method=dynamic"), checkpoint_seconds=-1, precision="fp32",
    )  # fmt: skip
    with pytest.raises(StopError):
        run_all(request, Stopping(3))
    (resumed,) = run_all(replace(request, threads=1))
    code = running_code().model_dump(mode="json")
    device = next(stage.info["device"] for stage in resumed.stages if "steps" in stage.info)
    assert earlier(resumed) == [[{"threads": 2, "processes": 1, "device": device, "code": code}]]
    assert not are_exact(conditions_of(resumed, resumed))

    with pytest.raises(StopError):
        run_all(replace(request, root=tmp_path / "others"), Stopping(3))
    (alike,) = run_all(replace(request, root=tmp_path / "others"))
    assert earlier(alike) == []
