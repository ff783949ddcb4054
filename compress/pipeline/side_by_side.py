"""Several processes build the stages of several runs: each takes the next stage whose inputs exist and that no other process is
building."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import CompressError, Interrupted
from ..fields import Spec
from ..store import Store
from .building import build_nodes
from .plan import Context, Listener, Node, Plan

_PAUSE = 0.2  # seconds between checks whether another process has finished


@dataclass(frozen=True)
class Stage:
    """A missing stage, in the first run that has it."""

    plan: Plan
    context: Context
    node: Node[Spec]

    def inputs(self) -> Iterator[str]:
        """Keys of its inputs."""
        keys = self.plan.keys
        return (keys[name] for name in self.node.inputs.values())


class Turns:
    """The current run among several: a change is reported to the listener, and an error's message begins with the run's name."""

    def __init__(self, plans: Sequence[Plan], listener: Listener) -> None:
        self._numbers = {plan.name: number for number, plan in enumerate(plans, 1)}
        self._listener = listener
        self._last: str | None = None

    @contextmanager
    def of(self, plan: Plan) -> Iterator[None]:
        """Make `plan` the current run within the block; nothing is reported for a single run."""
        if len(self._numbers) == 1:
            yield
            return
        if plan.name != self._last:
            self._listener.run(plan.name, self._numbers[plan.name], len(self._numbers))
        self._last = plan.name
        try:
            yield
        except (CompressError, Interrupted) as error:
            error.args = (f"{plan.name}: {error}", *error.args[1:])
            raise


def missing_stages(plans: Sequence[Plan], contexts: Sequence[Context], cache: Store) -> dict[str, Stage]:
    """Return key -> stage for the stages that the store lacks, each once, in the order of the plans."""
    missing: dict[str, Stage] = {}
    for plan, context in zip(plans, contexts, strict=True):
        for node in plan.nodes:
            if not cache.has(node.key):
                missing.setdefault(node.key, Stage(plan, context, node))
    return missing


def max_parallel_stages(plans: Sequence[Plan], cache: Store | None) -> int:
    """Return how many processes the stages that the store lacks, or all stages without a store, can keep busy: the largest number of stages
    at the same depth from what exists."""
    depths: dict[str, int] = {}
    for plan in plans:
        keys = plan.keys
        for node in plan.nodes:
            before = [depths.get(keys[name], 0) for name in node.inputs.values()]
            if cache is None or not cache.has(node.key):
                depths[node.key] = 1 + max(before, default=0)
    return max(Counter(depths.values()).values(), default=1)


def build_missing(
    missing: Mapping[str, Stage], cache: Store, turns: Turns, *, on_look: Callable[[], None] = lambda: None
) -> None:
    """Build these stages, while other processes do the same; return when all exist.

    A stage in which another process fails is built here, and raises its error here. `on_look` is called before each search for the next
    stage. Raises as `run_all`.
    """
    left = dict(missing)
    while left:
        on_look()
        for key, stage in left.items():
            if any(needed in left for needed in stage.inputs()):
                continue
            with cache.claimed(key) as is_ours:
                if cache.has(key):
                    stage.context.seen[key] = False  # it did not exist before this run
                    stage.context.listener.built_elsewhere(stage.node.label, stage.plan.name)
                elif is_ours:
                    with turns.of(stage.plan):
                        build_nodes(stage.plan, stage.plan.needed_for(stage.node.id), stage.context, cache)
                else:
                    continue
            del left[key]
            break
        else:
            time.sleep(_PAUSE)
