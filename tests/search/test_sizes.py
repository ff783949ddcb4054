"""What is known about sizes if stages shrink the model, and which trials are refused for it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_suite import keeping
from recipe_runs import TASK, TEACHER, compress

from compress.model_choice import Limits
from compress.models.dimensions import Dimensions, dimensions
from compress.models.pruned.shape import PrunedShape
from compress.models.word_table import named_tokens
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.random_model import random_model
from compress.pipeline.stages.prune.budget import least_mb
from compress.pipeline.stages.prune.widths import widths_of
from compress.pruning.budget import flops_costs, unit_counts
from compress.pruning.unit_choice import head_counts, neuron_counts
from compress.search import run as search_run
from compress.search.latency import Latencies, shape_of
from compress.search.sizes import known_sizes
from compress.spec.stages import Prune, Vocabulary
from compress.vocabulary import count_tokens, kept_tokens, permanent_tokens


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "tiny-task.yaml").write_text(TASK)
    return folder


def _plan(place: Path, recipe: str, *overrides: str, teacher: str = "tiny") -> Plan:
    names = [str(place / name) for name in ("tiny-task.yaml", f"{teacher}.yaml")]
    (plan,) = plan_all(Request((recipe,), (names[0],), teacher=names[1], overrides=overrides, bench=None))
    return plan


def _shapes(sizes: Dimensions) -> list[Dimensions]:
    """Return all shapes that pruning may leave."""
    options = [
        [*itertools.product(head_counts(heads).tolist(), neuron_counts(neurons).tolist())]
        for heads, neurons in unit_counts(sizes)
    ]
    shapes = itertools.product(*options)
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


TOKENS = "  - vocabulary: {most: 140}\n"
PLANS = {
    "share": "  - prune: {flops: 0.5}\n",
    "file": "  - prune: {size_mb: 0.15}\n",
    "widths": "  - prune: {heads: [1, 0], neurons: [48, 16]}\n",
    "again": "  - prune: {heads: [2, 0], neurons: 32}\n  - prune: {name: second, flops: 0.8}\n",
    "tokens": TOKENS,
    "both": "  - prune: {flops: 0.5}\n" + TOKENS,
}


def _left(plan: Plan) -> list[Dimensions]:
    """Return every size of the last model that the plan's stages may leave one after the other, found by trying all."""
    sizes = [plan.sizes[plan.models[-1].rpartition("-")[0]]]
    for node in plan.nodes:
        spec = node.spec
        if isinstance(spec, Vocabulary):
            sizes = [replace(each, vocabulary=tokens) for each in sizes for tokens in _tokens_left(plan, spec)]
        elif isinstance(spec, Prune):
            sizes = [shape for each in sizes for shape in _shapes(each) if _is_allowed(plan, spec, each, shape)]
    return sizes


def _tokens_left(plan: Plan, spec: Vocabulary) -> set[int]:
    """Return the possible numbers of kept tokens: the run ranks the token with the largest weights first, which may be any
    token."""
    source = plan.teacher
    permanent = permanent_tokens(source.tokenizer, named_tokens(source.config))
    counts = count_tokens(source.tokenizer, plan.task.data.train)
    ranked = np.tile(counts, (len(counts), 1))
    np.fill_diagonal(ranked, counts.max() + 1)
    return {len(kept_tokens(source.tokenizer, permanent, each, most=spec.most)) for each in ranked[::9]}


class _Table(Latencies):
    """A latency table in memory."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}

    def get(self, described: Mapping[str, Any], measure: Callable[[], float]) -> float:
        key = json.dumps(described, sort_keys=True)
        if key not in self._times:
            self._times[key] = measure()
        return self._times[key]


def _is_allowed(plan: Plan, spec: Prune, before: Dimensions, after: Dimensions) -> bool:
    """Whether the stage allows this shape."""
    if spec.budget == "widths":
        return unit_counts(after) == widths_of(spec, before)
    if spec.budget == "size_mb":
        return least_mb(plan, after) <= spec.budgets[-1]
    return after.layers_flops(12) <= spec.budgets[-1] * before.layers_flops(12)


@pytest.mark.parametrize("end", ["", "  - quantize: {word_bits: 4}\n"], ids=["fp32", "int8"])
@pytest.mark.parametrize("name", keeping(PLANS, {*PLANS} - {"both"}))
def test_no_trial_that_could_meet_the_limits_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, end: str
) -> None:
    text = f"name: tried\ntitle: Tried\nstages:\n  - finetune:\n{PLANS[name]}  - export:\n{end}"
    (place / "tried.yaml").write_text(text)
    (place / "shallow.yaml").write_text(TEACHER.replace("layers: 4", "layers: 2").replace("tiny", "shallow"))
    plan = _plan(place, str(place / "tried.yaml"), teacher="shallow")
    sizes, left = known_sizes(plan), _left(plan)
    assert sizes.exact == (len(left) == 1)
    noise = np.random.default_rng(0)

    def milliseconds(_plan: Plan, sizes: Dimensions) -> float:
        return sizes.layers_flops(12) * noise.uniform(0.95, 1.05)

    monkeypatch.setattr(search_run, "untrained_latency", milliseconds)
    table = _Table()
    random_model(plan, plan.models[-1].rpartition("-")[0], sizes.least, plan.task.data.labels)
    for shape in left:
        assert search_run._too_large(plan, sizes, Limits(max_size_mb=least_mb(plan, shape))) is None
        known = table.get(shape_of(plan, shape) or {}, lambda shape=shape: milliseconds(plan, shape))
        time = known if sizes.exact else milliseconds(plan, shape)  # a finished model is timed once more
        assert search_run._too_slow(plan, sizes, Limits(max_latency_ms=time), table) is None
    smallest = min(least_mb(plan, shape) for shape in left)
    assert search_run._too_large(plan, sizes, Limits(max_size_mb=0.9 * smallest)) is not None
    quickest = min(shape.layers_flops(12) for shape in left)
    assert search_run._too_slow(plan, sizes, Limits(max_latency_ms=0.7 * quickest), table) is not None


@pytest.mark.parametrize("widths", [("prune.heads=1", "prune.neurons=32"), ("prune.neurons=48",), ("prune.heads=1",)])
def test_widths_tell_the_sizes_and_the_untrained_model_has_them(place: Path, widths: tuple[str, ...]) -> None:
    plan = _plan(place, "prune-int8", *widths)
    name, known = plan.models[-1].rpartition("-")[0], known_sizes(plan)
    assert known.exact
    assert known.least.parameters < plan.sizes[name].parameters
    model = random_model(plan, name, known.least, plan.task.data.labels)
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
    assert known_sizes(few).exact  # WordPiece always uses the whole limit
    assert known_sizes(few).least.vocabulary == known.least.vocabulary - 1


def test_a_budget_is_refused_by_the_narrowest_shape_with_room_for_noise_and_widths_by_their_own(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_run, "untrained_latency", lambda plan, sizes: float(sizes.layer_parameters))
    (tmp_path / "locks").mkdir()
    table = Latencies(tmp_path)

    def why(overrides: tuple[str, ...], share: float) -> str | None:
        """`share`: of the time of the smallest possible shape."""
        plan = _plan(place, "prune-int8", *overrides)
        sizes = known_sizes(plan)
        limits = Limits(max_latency_ms=share * sizes.least.layer_parameters)
        return search_run._too_slow(plan, sizes, limits, table)

    budget, widths = ("prune.flops=0.5",), ("prune.neurons=32",)
    assert why(budget, 0.9) is None  # may be noise
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
    done = compress("search", recipe, "--max-size-mb", f"{limit:.6f}", "--trials", "1", *own, cwd=place)
    assert done.returncode == 2
    assert "trial 0 was refused: --max-size-mb" in done.stderr
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
    done = compress("search", recipe, "--max-size-mb", "9", "--max-latency-ms", "9", "--trials", "1", *own, cwd=place)
    assert done.returncode == 0, done.stderr
    (trial,) = json.loads((tmp_path / "search" / "search.json").read_text())["trials"]
    least = least_mb(plan, known_sizes(plan).least)
    assert 0.95 * least <= trial["size_mb"]
    assert trial["latency_ms"] > 0
