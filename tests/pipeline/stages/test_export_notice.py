"""A run reports that its model amplifies rounding, even if another run exported it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from listeners import Notices
from tokenizers import Tokenizer
from worlds import encoder_world

from compress import export
from compress.pipeline import Request, run_all
from compress.results import RESULT, Result


def test_every_run_that_has_the_graph_says_so(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = export.export_onnx
    monkeypatch.setattr(
        export,
        "export_onnx",
        lambda *arguments, **named: own(*arguments, **named) | {"moved_by_rounding": {"8x24": 0.00012}},
    )
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="")
    request = Request(
        ("int8",), (str(tmp_path / "task.yaml"),), teacher=str(teacher), root=tmp_path / "runs", threads=1, bench=None,
        overrides=("finetune.max_steps=1", "quantize.method=dynamic"),
    )  # fmt: skip

    def ran() -> tuple[Result, list[str]]:
        listener = Notices()
        (result,) = run_all(request, listener)
        return result, [line for line in listener.notices if "amplifies rounding" in line]

    result, (said,) = ran()
    assert said.startswith("teacher-fp32: ") and "8x24 random tokens by up to 1.2e-04" in said
    (request.root / result.run / RESULT).unlink()
    again, repeated = ran()
    assert all(stage.cached for stage in again.stages) and repeated == [said]
    notices: Any = again.settings["notices"]
    assert said in notices  # shown in the report
