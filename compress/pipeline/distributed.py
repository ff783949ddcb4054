"""A run on several processes: the first one leads; the others help to train and otherwise wait.

The first process plans, builds, measures and writes as it would alone. Before each training stage it sends the stage's name to the others,
which call the same function on the same inputs, read from the store, until the training ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import CompressError, Interrupted
from ..fields import Spec
from ..processes import ranks, signals
from ..processes.shared_settings import use_threads
from ..results import Result
from ..store import Artifact, Store
from .plan import Context, Job, Node, Plan
from .stages.registry import kind_of


class HelperDone(Exception):
    """Ends a stage in a process that only helped to train; the first process does the rest alone."""


class Peers:
    """What a stage requires of the other processes. `listening`: whether they wait for a message."""

    def __init__(self) -> None:
        self.listening = True

    def start_planning(self, plans: list[Plan]) -> None:
        """Make the others plan too, once the first process has found no mistake."""
        ranks.broadcast({"keys": _keys(plans)})

    def start_training(self, plan: str, node: str, out: Path, work: Path) -> None:
        """Make the others take part in the training of `node`."""
        ranks.broadcast({"turn": [plan, node, str(out.absolute()), str(work.absolute())]})
        self.listening = False

    def end_training(self) -> None:
        """Mark the end of training. Raises `HelperDone` in all processes but the first."""
        if not ranks.is_first():
            raise HelperDone
        self.listening = True

    def send(self, message: dict[str, Any]) -> None:
        if self.listening:
            with suppress(ranks.ProcessLost), signals.deferred():
                ranks.broadcast(message)

    def send_failure(self, message: str, exit_code: int) -> None:
        """Send the others the reason why the first process failed. An interrupt meanwhile is suppressed, so that the original error is
        raised."""
        with suppress(Interrupted):
            self.send({"failed": message, "exit_code": exit_code})


def run_job(job: Job[Any]) -> dict[str, Any]:
    """Run the stage and return its info on the artefact in `out`; if it trains, the other processes help, each on its share of the
    cores."""
    peers = job.context.peers if job.node.kind.trains else None
    threads = job.context.threads
    use_threads(threads if peers is None else max(1, threads // ranks.local_count()))
    if peers is not None and ranks.is_first():
        peers.start_training(job.plan.name, job.node.id, job.out, job.work)
    return dict(kind_of(job.node).run(job))


def lead(work: Callable[[Peers], list[Result]]) -> list[Result]:
    """Run `work` and send its outcome to the other processes. Raises what `work` raises."""
    peers = Peers()
    try:
        results = work(peers)
    except (CompressError, Interrupted) as error:
        peers.send_failure(str(error), error.exit_code)
        raise
    except BaseException as error:
        peers.send_failure(f"the first process ended with {type(error).__name__}", 1)
        raise
    peers.send({"results": [result.model_dump(mode="json") for result in results]})
    return results


def follow(make_plans: Callable[[], list[Plan]], context: Callable[[Plan, Peers], Context], cache: Store) -> Any:
    """Run the part of a process that is not the first; return the results of the run.

    Raises `CompressError`, also if the first process failed, with its message and exit code.
    """
    first_keys = _receive_message()["keys"]
    plans = {plan.name: plan for plan in make_plans()}
    if _keys(plans.values()) != first_keys:
        raise CompressError(
            "this process plans different stages than the first one; all nodes need the same files and packages"
        )
    peers = Peers()
    while "turn" in (message := _receive_message()):
        name, node, *folders = message["turn"]
        _take_part(plans[name], node, context(plans[name], peers), cache, *map(Path, folders))
    return [Result.model_validate(result) for result in message["results"]]


def _keys(plans: Iterable[Plan]) -> list[list[str]]:
    return [[node.key for node in plan.nodes] for plan in plans]


def _receive_message() -> dict[str, Any]:
    with signals.deferred():  # a message cut off halfway would keep the first process waiting
        message: dict[str, Any] = ranks.broadcast({})
    if "failed" in message:
        error = CompressError(message["failed"])
        error.exit_code = message["exit_code"]
        raise error
    return message


def _take_part(plan: Plan, name: str, context: Context, cache: Store, out: Path, work: Path) -> None:
    """Help to train in the stage `name`, with the folders of the first process."""
    nodes = {node.id: node for node in plan.nodes}
    node = nodes[name]
    inputs = {role: _find_shared(nodes[name], cache) for role, name in node.inputs.items()}
    with suppress(HelperDone):
        run_job(Job(plan, node, inputs, context, out, work))


def _find_shared(node: Node[Spec], cache: Store) -> Artifact:
    artifact = cache.find(node.key)
    if artifact is None:
        raise CompressError(
            f"{cache.path(node.key)}: not found by this process ({node.label}); all nodes must see the same folder --out"
        )
    return artifact
