"""The masked language model named by `augment.masked_lm` must be the one in the plan."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.stages import augment


def test_one_that_moved_since_the_plan_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SimpleNamespace(folder=tmp_path, identity="planned with")
    monkeypatch.setattr(augment, "resolve_teacher", lambda word: source)
    job: Any = SimpleNamespace(node=SimpleNamespace(outside={"masked_lm": "planned with"}))
    assert augment._planned_checkpoint(job, "acme/lm") == tmp_path
    source.identity = "another commit"
    with pytest.raises(CompressError, match=r"^augment\.masked_lm: acme/lm: it changed since this command started"):
        augment._planned_checkpoint(job, "acme/lm")


def test_one_that_is_not_there_is_refused_by_the_name_of_its_field() -> None:
    overrides = ("augment.masked_lm=nowhere",)
    request = Request(("tinybert-small",), ("toy-sentiment",), teacher="bert-mini", overrides=overrides)
    with pytest.raises(CompressError, match=r"stage augment: masked_lm: teacher `nowhere` is not in the catalogue"):
        plan_all(request)
