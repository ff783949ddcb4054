"""Layer costs from measured models: planted times, and those of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from transformers import BertConfig
from worlds import TASK

from compress.models.dimensions import dimensions
from compress.models.pruned.shape import PrunedShape
from compress.pipeline import Listener, Request
from compress.pipeline.run import build_stage
from compress.pipeline.stages.prune import layer_costs
from compress.pipeline.stages.prune.layer_costs import (
    _FEWEST_TOKENS,
    Shape,
    _cpu_times,
    _measure,
    _model_of_shape,
    measured_costs,
    timed_tokens,
)

RECIPE = """
name: timed
title: Pruned by time
stages:
  - finetune: {max_steps: 1}
  - prune: {examples: 8, repair: false}
  - export:
  - quantize: {method: static}
"""
LARGER = """
name: larger
title: Larger
licence: Apache-2.0
random: {hidden: 256, layers: 6, heads: 8, intermediate: 1024, vocabulary: 300, max_positions: 128}
"""
LONGER = TASK.replace("max_length: 16", "max_length: 64").replace("train: 40", "train: 100")


def planted(shapes: Sequence[Shape]) -> list[float]:
    """Return 7, plus for each layer 2, 1 per head and 5 if any, 3 per 16 neurons and 4 if any; the last layer counts a tenth."""

    def layer(heads: int, neurons: int) -> float:
        return 2 + heads + 5 * (heads > 0) + 3 * neurons / 16 + 4 * (neurons > 0)

    return [
        7 + (each.layers - 1) * layer(each.heads, each.neurons) + layer(each.last_heads, each.last_neurons) / 10
        for each in shapes
    ]


@pytest.mark.parametrize("layers", [1, 2, 4, 6, 12])
@pytest.mark.parametrize("timed", [True, False])
def test_a_planted_cost_is_told_exactly_at_any_depth(layers: int, timed: bool) -> None:
    config = BertConfig(hidden_size=48, num_hidden_layers=layers, num_attention_heads=6, intermediate_size=128)
    costs = _measure(planted, config, timed=timed).costs(dimensions(config.to_dict(), classes=2))
    for heads, neurons, last_heads, last_neurons in (
        (1, 16, 1, 16), (6, 128, 6, 128), (2, 48, 5, 112), (5, 96, 1, 16), (0, 48, 1, 0), (3, 0, 0, 64), (0, 0, 1, 0)
    ):  # fmt: skip
        inner = layers - 1
        parts = [*[range(heads)] * inner, range(last_heads)], [*[neurons] * inner, last_neurons]
        shape = PrunedShape(tuple(map(tuple, parts[0])), tuple(parts[1]))
        (expected,) = planted([Shape(layers, heads, neurons, last_heads, last_neurons)])
        assert costs.of(shape) == pytest.approx(expected)


def test_layers_of_one_head_and_16_neurons_can_lose_them() -> None:
    config = BertConfig(hidden_size=48, num_hidden_layers=3, num_attention_heads=1, intermediate_size=16)
    costs = _measure(planted, config, timed=True).costs(dimensions(config.to_dict(), classes=2))
    assert costs.whole == pytest.approx(planted([Shape(3, 1, 16, 1, 16)])[0])
    assert costs.least == pytest.approx(planted([Shape(3, 0, 0, 1, 0)])[0])


def test_a_table_of_words_to_time_has_its_padding_token() -> None:
    config = BertConfig(
        vocab_size=8000, pad_token_id=7000, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )  # fmt: skip
    job: Any = SimpleNamespace(context=SimpleNamespace(kind="classification"))
    tokens = timed_tokens(config)
    model = _model_of_shape(job, config, Shape(2, 1, 16, 1, 16), tokens)
    assert model.get_input_embeddings().num_embeddings == tokens == 7001
    config.vocab_size, config.pad_token_id = 20, 0
    assert timed_tokens(config) == _FEWEST_TOKENS


def test_progress_says_how_far_measuring_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both passes report up to their total, even if a few rounds are enough."""
    monkeypatch.setattr(layer_costs, "_mean_time", lambda session, feed: 1.0)
    passes: dict[str, list[tuple[int, int | None]]] = {}

    class Recorder(Listener):
        def progress(self, what: str, done: int, total: int | None) -> None:
            passes.setdefault(what, []).append((done, total))

    config = BertConfig(vocab_size=80, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    job: Any = SimpleNamespace(work=tmp_path, context=SimpleNamespace(listener=Recorder()))
    monkeypatch.setattr(layer_costs, "_model_of_shape", lambda *words: None)
    monkeypatch.setattr(layer_costs, "_file", lambda job, model, folder, timed: folder)
    monkeypatch.setattr(layer_costs, "open_session", lambda file, threads: SimpleNamespace(get_inputs=list))
    measured_costs(job, config, length=8)
    assert list(passes) == ["exporting models to measure", "timing models, seconds"]
    assert all(counts == sorted(counts) and counts[-1][0] == counts[-1][1] for counts in passes.values())


@pytest.mark.slow
def test_the_pruned_model_takes_the_time_that_the_budget_says(tmp_path: Path) -> None:
    """Its CPU time relative to the whole model's, measured alternately, is within 10% of the budget."""
    for name, text in (("timed", RECIPE), ("larger", LARGER), ("task", LONGER)):
        (tmp_path / f"{name}.yaml").write_text(text)
    files, points = [], []
    for setting in ("prune.enabled=false", "prune.latency=0.6"):
        recipe, task, teacher = (str(tmp_path / f"{name}.yaml") for name in ("timed", "task", "larger"))
        words = Request(
            (recipe,), (task,), teacher=teacher, root=tmp_path / "runs", overrides=(setting,), threads=1, bench=None
        )
        pruned = setting != "prune.enabled=false"
        artifact = build_stage(words, "teacher-pruned-int8" if pruned else "teacher-int8")
        files.append(artifact.path / "model_quantized.onnx")
        points += build_stage(words, "teacher-pruned").info["points"] if pruned else []
    length = round(build_stage(words, "teacher-pruned").info["mean_length"])
    times = _cpu_times(files * 3, length, lambda *_: None)  # other load on the machine only makes a time longer
    share = min(times[1::2]) / min(times[::2])
    assert share == pytest.approx(points[0]["reached"], rel=0.1)
    assert 0.54 < share < 0.66
