"""What is known about a model's latency and file size before it is trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recipe_runs import TASK, TEACHER

from compress.errors import CompressError
from compress.model_choice import Limits
from compress.models.dimensions import dimensions
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.random_model import config_of
from compress.search import run as search_run
from compress.search.latency import TABLE, Latencies, shape_of, untrained_latency
from compress.search.sizes import known_sizes


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("latency")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "tiny-task.yaml").write_text(TASK)
    return folder


def _plan(place: Path, recipe: str, *overrides: str) -> Plan:
    names = [str(place / name) for name in ("tiny-task.yaml", "tiny.yaml")]
    (plan,) = plan_all(Request((recipe,), (names[0],), teacher=names[1], overrides=overrides, bench=None))
    return plan


def test_a_shape_is_measured_once(tmp_path: Path) -> None:
    measurements: list[float] = []

    def measure() -> float:
        measurements.append(float(len(measurements)))
        return measurements[-1]

    for _ in range(2):
        table = Latencies(tmp_path)
        assert [table.get({"layers": layers}, measure) for layers in (2, 4, 2)] == [0.0, 1.0, 0.0]
    assert len(measurements) == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"cpu_ms": "fast"}}'])
def test_a_table_that_cannot_be_read_is_named_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / TABLE).write_text(text)
    with pytest.raises(CompressError, match=f"{TABLE}.*delete it"):
        Latencies(tmp_path).get({"layers": 2}, lambda: 1.0)


def _shape(plan: Plan) -> dict[str, Any] | None:
    return shape_of(plan, known_sizes(plan).least)


def test_a_shape_is_of_what_decides_the_time_and_of_nothing_else(place: Path) -> None:
    usual = _shape(_plan(place, "distilbert"))
    same = (
        "distill.epochs=2",
        "distill.learning_rate=0.1",
        "quantize.calibration_examples=64",
    )
    for override in same:
        assert _shape(_plan(place, "distilbert", override)) == usual, override
    for override in (
        "quantize.method=static",
        "quantize.method=dynamic",
        "quantize.embeddings=false",
        "quantize.word_bits=4",
    ):
        assert _shape(_plan(place, "distilbert", override)) not in (usual, None), override
    assert _shape(_plan(place, "int8")) != usual


def test_the_least_size_goes_by_the_bits_of_a_word(place: Path) -> None:
    def least(bits: int) -> float:
        plan = _plan(place, "int8", f"quantize.word_bits={bits}")
        large = replace(plan, sizes={name: replace(each, vocabulary=30_522) for name, each in plan.sizes.items()})
        reason = search_run._too_large(large, known_sizes(large), Limits(max_size_mb=0.001))
        assert reason is not None
        return float(reason.removesuffix(" MB by its parameters").rpartition(" ")[2])

    width = _plan(place, "int8").sizes["teacher"].embedding
    assert least(8) - least(4) == pytest.approx(0.95 * 30_522 * (width / 2 + 1 - width / 32) / 1e6, rel=0.01)


@pytest.mark.parametrize(
    ("recipe", "override"), [("int8", "quantize.method=auto"), ("int8", "quantize.exclude=[pooler]")]
)
def test_no_shape_is_claimed_where_only_the_model_tells(place: Path, recipe: str, override: str) -> None:
    assert _shape(_plan(place, recipe, override)) is None


@pytest.mark.parametrize("recipe", ["int8", "distilbert", "tinybert-small", "albert"])
def test_the_untrained_model_has_the_sizes_of_the_one_that_is_trained(place: Path, recipe: str) -> None:
    plan = _plan(place, recipe)
    name = plan.models[-1].rpartition("-")[0]
    config: Any = config_of(plan, name, plan.task.data.labels)
    assert dimensions(config.to_dict(), classes=2) == plan.sizes[name]


def test_the_untrained_model_is_measured_without_bars_of_transformers(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers.utils import logging

    logging.enable_progress_bar()
    plan = _plan(place, "distilbert")
    assert untrained_latency(plan, plan.sizes["student"]) > 0
    assert "".join(capfd.readouterr()) == ""


def test_another_instruction_set_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, extensions in enumerate([("avx2",), ("avx2", "avx512_vnni")]):
        monkeypatch.setattr("compress.search.latency.isa", lambda extensions=extensions: extensions)
        assert Latencies(tmp_path).get({"layers": 2}, lambda number=number: float(number)) == number
