"""Tasks on a user's own files, and the one-line error for a bad file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from whole import load_task

from compress.errors import CompressError
from compress.spec.task import Files, TaskSpec


def task(train: str = "train.csv", dev: str | dict[str, str] = "dev.csv", **fields: Any) -> TaskSpec:
    options = {key: fields.pop(key) for key in ("header", "columns", "quoting") if key in fields}
    values: dict[str, Any] = {"name": "mine", "text": ("text",), "label": "label", "metrics": ("accuracy",)}
    return TaskSpec(**(values | fields), files=Files(train=train, dev=dev, **options))


def scores(**fields: Any) -> TaskSpec:
    return task(kind="regression", metrics=("pearson",), **fields)


def refused(spec: TaskSpec, folder: Path, message: str) -> None:
    with pytest.raises(CompressError) as caught:
        load_task(spec, folder, None)
    assert re.search(message, str(caught.value)), str(caught.value)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
