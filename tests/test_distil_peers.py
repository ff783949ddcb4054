"""benchmarks/peers/distil_*.py: what each library's user minimises is the same, padding is counted, and the page says what was measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from compress.objective import Objective
from compress.spec.recipe import read_recipe

PEERS = Path(__file__).parents[1] / "benchmarks/peers"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PEERS)
    return importlib.import_module
