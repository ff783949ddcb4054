"""What is known of a model's sizes where stages make it smaller, and which trials that refuses."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER, compress

from compress.candidates import Limits
from compress.models.dimensions import Dimensions, dimensions
from compress.models.pruned_shape import PrunedShape
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.stages.prune_budget import least_mb
from compress.pruning.budget import flops_costs
from compress.pruning.search import head_counts, neuron_counts
from compress.search import run as search_run
from compress.search.latency import Latencies, _random_model, shape_of
from compress.search.sizes import known_sizes
from compress.vocabulary import count_tokens


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "tiny-task.yaml").write_text(TASK)
    return folder


def _plan(place: Path, recipe: str, *overrides: str) -> Plan:
    names = [str(place / name) for name in ("tiny-task.yaml", "tiny.yaml")]
    (plan,) = plan_all(Request((recipe,), (names[0],), teacher=names[1], overrides=overrides, bench=None))
    return plan


def _shapes(sizes: Dimensions) -> list[Dimensions]:
    """All that pruning may leave."""
    options = [*itertools.product(head_counts(sizes.heads).tolist(), neuron_counts(sizes.intermediate).tolist())]
    shapes = itertools.product(options, repeat=sizes.layers)
    return [
        replace(sizes, pruned=PrunedShape(tuple(tuple(range(heads)) for heads, _ in each), tuple(n for _, n in each)))
        for each in shapes
        if any(heads for heads, _ in each)
    ]


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_no_shape_within_a_budget_has_less_than_the_least_size(place: Path, share: float) -> None:
    plan = _plan(place, "prune-int8", f"prune.flops={share}")
    plan = replace(plan, sizes={name: replace(sizes, layers=2, blocks=2) for name, sizes in plan.sizes.items()})
    name, known = plan.models[-1].rpartition("-")[0], known_sizes(plan)
    whole = plan.sizes[name]
    costs = flops_costs(whole, 12.0)
    within = [each for each in _shapes(whole) if each.pruned and costs.of(each.pruned) <= share * costs.whole]
    assert len(within) > 5
    assert not known.exact
    assert least_mb(plan, known.least) == min(least_mb(plan, each) for each in within)


@pytest.mark.parametrize("widths", [("prune.heads=1", "prune.neurons=32"), ("prune.neurons=48",), ("prune.heads=1",)])
def test_widths_tell_the_sizes_and_the_untrained_model_has_them(place: Path, widths: tuple[str, ...]) -> None:
    plan = _plan(place, "prune-int8", *widths)
    name, known = plan.models[-1].rpartition("-")[0], known_sizes(plan)
    assert known.exact
    assert known.least.parameters < plan.sizes[name].parameters
    model = _random_model(plan, name, known.least, plan.task.data.labels)
    assert dimensions(model.config.to_dict(), classes=2) == known.least
    assert sum(each.numel() for each in model.parameters()) == known.least.parameters
    other = _plan(place, "prune-int8", "prune.heads=2", "prune.neurons=16")
    assert shape_of(plan, known.least) not in (None, shape_of(other, known_sizes(other).least))


def test_the_tokens_of_train_are_the_fewest_that_a_cut_vocabulary_has(place: Path) -> None:
    plan = _plan(place, "vocabulary-int8")
    known, whole = known_sizes(plan), plan.sizes["teacher"]
    used = int((count_tokens(plan.teacher.tokenizer, plan.task.data.train) > 0).sum())
    assert used <= known.least.vocabulary < whole.vocabulary
    assert not known.exact
    few = _plan(place, "vocabulary-int8", f"vocabulary.most={known.least.vocabulary - 1}")
    assert known_sizes(few).exact  # WordPiece fills all the room that there is
    assert known_sizes(few).least.vocabulary == known.least.vocabulary - 1


def test_a_budget_is_refused_by_the_narrowest_shape_with_room_for_noise_and_widths_by_their_own(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_run, "untrained_latency", lambda plan, sizes: float(sizes.layer_parameters))
    (tmp_path / "locks").mkdir()
    table = Latencies(tmp_path)

    def why(overrides: tuple[str, ...], share: float) -> str | None:
        """`share`: of the time of the least shape that there can be."""
        plan = _plan(place, "prune-int8", *overrides)
        sizes = known_sizes(plan)
        limits = Limits(max_latency_ms=share * sizes.least.layer_parameters)
        return search_run._too_slow(plan, sizes, limits, table)

    budget, widths = ("prune.flops=0.5",), ("prune.neurons=32",)
    assert why(budget, 0.9) is None  # noise may make that of it
    assert "by the narrowest shape it can have" in str(why(budget, 0.7))
    assert why(widths, 1.0) is None
    assert "by its shape" in str(why(widths, 0.9))


@pytest.mark.parametrize(
    ("recipe", "setting"),
    [("prune-int8", "prune.flops=0.5"), ("prune-int8", "prune.neurons=16"), ("vocabulary-int8", "vocabulary.most=200")],
)
def test_a_file_that_is_too_large_at_its_smallest_is_refused_before_any_training(
    place: Path, tmp_path: Path, recipe: str, setting: str
) -> None:
    limit = 0.9 * least_mb(plan := _plan(place, recipe, setting), known_sizes(plan).least)
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--set", setting, "-o", str(tmp_path))
    found = compress("search", recipe, "--max-size-mb", f"{limit:.6f}", "--trials", "1", *own, cwd=place)
    assert found.returncode == 2
    assert "trial 0 was refused: --max-size-mb" in found.stderr
    assert not (tmp_path / ".store").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "setting"),
    [
        ("prune-int8", "prune.flops=0.3"),
        ("prune-int8", "prune.size_mb=0.06"),
        ("prune-int8", "prune.neurons=16"),
        ("vocabulary-int8", "vocabulary.most=200"),
        ("vocabulary-int8", "vocabulary.most=100000"),
    ],
)
def test_what_a_run_leaves_is_not_below_what_was_foreseen(
    place: Path, tmp_path: Path, recipe: str, setting: str
) -> None:
    plan = _plan(place, recipe, setting)
    own = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--set", setting, "-o", str(tmp_path))
    found = compress("search", recipe, "--max-size-mb", "9", "--max-latency-ms", "9", "--trials", "1", *own, cwd=place)
    assert found.returncode == 0, found.stderr
    (trial,) = json.loads((tmp_path / "search" / "search.json").read_text())["trials"]
    least = least_mb(plan, known_sizes(plan).least)
    assert 0.95 * least <= trial["size_mb"]
    assert trial["latency_ms"] > 0
