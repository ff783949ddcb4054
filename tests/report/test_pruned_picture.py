"""The picture of a pruned model: large and small models, layers without a part, several stages, older results."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from compress.report.pictures.drawing import specification, svg
from compress.report.sections import pruned_picture
from compress.results.fidelity import Delta
from compress.results.pruning import PrunedPoint, PruningRecord

Heads = tuple[tuple[int, ...], ...]


def point(heads: Heads, neurons: tuple[int, ...], *, reached: float = 0.5, repaired: float | None = 88) -> PrunedPoint:
    return PrunedPoint(
        budget=0.5,
        reached=reached,
        heads=heads,
        neurons=neurons,
        flops=0.5,
        pruned=80,
        repaired=repaired,
        delta=Delta(points=-2, low=-3, high=-1, mcnemar_p=None),
    )


def record(
    *points: PrunedPoint, heads: int | None = 4, neurons: int | None = 64, stage: str = "prune"
) -> PruningRecord:
    return PruningRecord(
        stage=stage,
        model="student",
        budget="flops",
        score="fisher",
        repair="least_squares",
        examples=24,
        mean_length=9.5,
        layer_heads=heads,
        layer_neurons=neurons,
        whole=90,
        points=points,
        recovered=None,
    )


def tasks(*records: PruningRecord) -> Any:
    task = SimpleNamespace(marked_title="SST-2")
    result = SimpleNamespace(pruning=records, recipe={"name": "r", "title": "R"}, seed=3, task=task)
    return [SimpleNamespace(results=[result])]


def drawn(*records: PruningRecord) -> str:
    return svg(pruned_picture.charts(tasks(*records)), columns=1)


def cells(picture: str) -> dict[tuple[int, int], bool]:
    """Return (layer, head) -> whether it is kept."""
    heads = re.findall(r'aria-label="Layer (\d+), head (\d+): (stays|taken out)"', picture)
    return {(int(layer), int(head)): state == "stays" for layer, head, state in heads}


@pytest.mark.parametrize(("layers", "heads"), [(12, 12), (2, 4), (1, 1)])
def test_every_head_of_every_layer_is_a_cell_with_its_numbers(layers: int, heads: int) -> None:
    kept = tuple(tuple(range(layer % heads, heads, 2)) for layer in range(layers))
    picture = drawn(record(point(kept, (16,) * layers), heads=heads))
    assert cells(picture) == {
        (layer, head): head in kept[layer - 1] for layer in range(1, layers + 1) for head in range(heads)
    }
    numbers = re.findall(r">(\d+)</text>", picture)
    assert {*map(str, map(len, kept)), *map(str, range(heads)), *map(str, range(1, layers + 1))} <= set(numbers)
    assert picture.count(">16 (25%)</text>") == layers


def test_a_layer_without_heads_or_neurons_says_none() -> None:
    one = record(point(((), (1, 2)), (64, 0)))
    picture = drawn(one)
    assert [head for head, stays in cells(picture).items() if stays] == [(2, 1), (2, 2)]
    assert picture.count(">none</text>") == 2 and ">64 (100%)</text>" in picture
    assert "of 4 and 64 in each layer: layer 1 none and 64; layer 2 2 and none." in pruned_picture.describe(tasks(one))


def test_of_several_stages_the_last_is_drawn_against_the_whole_model() -> None:
    first = record(point(((0, 1, 2, 3),) * 2, (48, 48)))
    picture = drawn(first, record(point(((0, 1, 2, 3), (1,)), (32, 16)), neurons=48, stage="more"))
    assert sum(cells(picture).values()) == 5
    assert ">32 (50%)</text>" in picture and ">16 (25%)</text>" in picture


def test_several_budgets_are_a_curve_with_the_whole_models_score() -> None:
    shape = ((0,), (1,)), (16, 16)
    curve = record(point(*shape, reached=0.75), point(*shape, repaired=86), stage="first")
    picture = drawn(curve)
    assert "Stage first." in picture and "Share of the layers' FLOPs" in picture.replace("&#39;", "'")
    assert picture.count("Tuning score, pruned: 80.00") == 2
    assert "Tuning score, repaired: 88.00; Share" in picture and "Tuning score, repaired: 86.00; Share" in picture
    (chart,) = pruned_picture.charts(tasks(curve))[1:]
    dataset = specification(chart)["layer"]
    assert dataset[0]["data"]["values"] == [{"y": 90}]
    intervals = [(row["y"], row["low"], row["high"]) for row in dataset[1]["data"]["values"] if "low" in row]
    assert intervals == [(88, 87, 89), (86, 87, 89)]
    description = pruned_picture.describe(tasks(curve))
    assert (
        "Stage first, tuning score by share of the layers' FLOPs: 88.00 at 0.75; 86.00 at 0.5; whole 90.00."
        in description
    )


def test_without_a_repair_the_interval_is_at_the_pruned_models_score() -> None:
    shape = ((0,), (1,)), (16, 16)
    bare = record(point(*shape, reached=0.75, repaired=None), point(*shape, repaired=None))
    (chart,) = pruned_picture.charts(tasks(bare))[1:]
    assert [row["low"] for row in specification(chart)["layer"][1]["data"]["values"]] == [87, 87]
    assert "repaired" not in drawn(bare)


def test_a_result_of_before_is_not_drawn() -> None:
    old = tasks(record(point(((0,),), (16,)), heads=None, neurons=None))
    assert pruned_picture.charts(old) == [] and pruned_picture.describe(old) == ""
    assert not pruned_picture.is_drawn(old[0].results[0])
