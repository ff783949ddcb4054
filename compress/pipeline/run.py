"""Run the plans of a request: check, build what is missing, measure, write results."""

from __future__ import annotations

from dataclasses import replace

from filelock import FileLock

from ..errors import CompressError, did_you_mean
from ..processes import ranks
from ..processes.helpers import Helpers
from ..processes.shared_settings import exclusive
from ..results import Result
from ..store import Artifact, Store, as_user_error
from .building import build_nodes, check_texts
from .data_notes import notes_before_training
from .distributed import Peers, follow, lead
from .estimate import data_line, estimate
from .lengths import mean_length
from .plan import Context, Listener, Plan
from .preflight import preflight
from .request import Request, command_line, threads_of
from .requested_plans import plan_all
from .results.assemble import BENCH, RunOutputs, build_result, result_key
from .results.ensemble import teacher_predictions
from .results.measure import benchmark, models_of, predictions
from .results.reported import ReportedSource
from .results.run_folder import stored_result, write_run
from .results.similarity import measured_similarity
from .side_by_side import Turns, build_missing, max_parallel_stages, missing_stages
from .stages.adopt import ADOPT


def run_all(request: Request, listener: Listener | None = None) -> list[Result]:
    """Run the request and return the result of each run; runs that are finished already are read.

    Under torchrun all processes call this: the first one runs, and the others help it to train.

    Raises `CompressError` for wrong input before anything is computed, `CheckFailed` for an outcome that fails a check, `Interrupted` after
    a signal; finished stages are kept. Calls in several threads of a process run one after the other; torch's random state and threads
    are then as before.
    """
    with exclusive():
        return _run_in_turn(request, listener or Listener())


def _run_in_turn(request: Request, listener: Listener) -> list[Result]:
    if ranks.count() == 1:
        return _run_all(request, listener)
    if ranks.is_first():
        return lead(lambda peers: _run_all(request, listener, peers))
    cache = Store.of_runs(request.root)
    return follow(lambda: plan_all(request), lambda plan, peers: _context(plan, request, Listener(), peers), cache)


def _run_all(request: Request, listener: Listener, peers: Peers | None = None) -> list[Result]:
    plans, cache = plan_all(request), Store.of_runs(request.root, listener.notice)
    # Thread counts follow from the plans alone: an interrupted run resumes with as many threads as before, however few stages are left.
    request = replace(request, jobs=min(request.jobs, max_parallel_stages(plans, None)))
    request = replace(request, threads=threads_of(request), jobs=min(request.jobs, max_parallel_stages(plans, cache)))
    preflight(plans, request.root)
    if peers is not None:
        peers.start_planning(plans)
    reported = {plan.task.fingerprint: ReportedSource.of(plan.task) for plan in plans}
    _report_outlook(plans, request, listener, reported, cache)
    for note in dict.fromkeys(note for plan in plans for note in plan.notes):
        listener.notice(note)
    contexts = [_context(plan, request, listener, peers) for plan in plans]
    for plan, context in zip(plans, contexts, strict=True):
        adopted = tuple(node for node in plan.nodes if node.kind is ADOPT and not node.inputs)
        # Checks that every teacher is fit for every task before any training.
        build_nodes(plan, adopted, context, cache)
    for plan, context in zip(plans, contexts, strict=True):
        check_texts(plan, context, cache)
    turns = Turns(plans, listener)
    if request.jobs > 1:
        alone = replace(request, jobs=1)
        with Helpers(_help, (alone,), request.jobs - 1) as helpers:
            missing = missing_stages(plans, contexts, cache)
            build_missing(missing, cache, turns, on_look=lambda: helpers.report_lost_helpers(listener.notice))
    results = []
    for plan, context in zip(plans, contexts, strict=True):
        with turns.of(plan):
            results.append(_run(plan, request, context, reported[plan.task.fingerprint], cache))
    return results


def _help(request: Request) -> None:
    """Build stages in a process beside the main one."""
    plans = plan_all(request)
    contexts = [_context(plan, request, Listener(), None) for plan in plans]
    cache = Store.of_runs(request.root)
    build_missing(missing_stages(plans, contexts, cache), cache, Turns(plans, Listener()))


def _report_outlook(
    plans: list[Plan], request: Request, listener: Listener, reported: dict[str, ReportedSource], cache: Store
) -> None:
    """Report the data, and how long the training takes, if anything is left to do."""
    left = [plan for plan in plans if any(not cache.has(node.key) for node in plan.nodes)]
    for line in dict.fromkeys(data_line(plan.task) for plan in left):
        listener.outlook(line)
    for line in notes_before_training(left, reported):
        listener.notice(line)
    outlook = estimate(left, request.root)
    if outlook.work and outlook.seconds is None and any(work.steps is not None for work in outlook.work):
        listener.outlook("measuring how fast this machine trains, by a probe of a few steps")
        from .training.throughput import probe

        plan = left[0]
        kind, length = plan.task.spec.kind, round(max(1.0, mean_length(plan)))
        threads = threads_of(request)
        rate = probe(plan.teacher.config, kind=kind, length=length, precision=plan.precision, threads=threads)
        rates = {work.key: rate for work in outlook.work} | outlook.rates
        outlook = replace(outlook, rates=rates, by="a probe of a few steps")
    if outlook.work:
        listener.outlook(f"{outlook}; {request.jobs} processes share it" if request.jobs > 1 else str(outlook))
    if not outlook.fits(request.jobs):
        listener.notice(str(outlook.memory_line(request.jobs)))


def build_stage(request: Request, name: str, listener: Listener | None = None) -> Artifact:
    """Return the artefact of the stage `name` (as `compress plan` shows it) of the request's only run, building it and what it needs;
    nothing is measured and no result is written.

    Raises as `run_all`, and `CompressError` for several runs and for a stage that is not in the plan.
    """
    if ranks.count() > 1:
        raise CompressError("build_stage: works in one process; start it without torchrun")
    plans = plan_all(request)
    if len(plans) != 1:
        raise CompressError(f"build_stage: expected a request of one run, found {len(plans)}")
    (plan,) = plans
    if name not in (known := [node.id for node in plan.nodes]):
        raise CompressError(f"{plan.name}: no stage `{name}`{did_you_mean(name, known)}")
    preflight(plans, request.root)
    listener = listener or Listener()
    cache = Store.of_runs(request.root, listener.notice)
    with exclusive():
        artifacts, _ = build_nodes(plan, plan.needed_for(name), _context(plan, request, listener, None), cache)
    return artifacts[name]


def _context(plan: Plan, request: Request, listener: Listener, peers: Peers | None) -> Context:
    return Context(
        plan.task,
        plan.precision,
        threads_of(request),
        listener,
        request.checkpoint_seconds,
        list(plan.notes),
        peers=peers,
        fsdp=request.fsdp,
    )


def _run(plan: Plan, request: Request, context: Context, reported: ReportedSource, cache: Store) -> Result:
    artifacts, cached = build_nodes(plan, plan.nodes, context, cache)
    models = models_of(plan, artifacts)
    scored = {model.label: predictions(model, reported, context, cache) for model in models}
    teacher_outputs = teacher_predictions(plan, artifacts, reported, context, cache)
    similarity, compared = measured_similarity(plan, models, context, cache)
    measured = benchmark(models, context, request.bench, cache, anew=request.rebench) if request.bench else None
    measurements = [
        result_key(plan),
        *(artifact.key for artifact, _ in (scored | teacher_outputs).values()),
        *([compared.key] if compared else []),
        *([measured.name] if measured else []),
    ]
    folder = request.root / plan.name
    with as_user_error(request.root, "the folder of the runs"):
        cache.sweep()
        # Two processes that finish together write one after the other.
        with FileLock(cache.root / ".locks" / plan.name):
            before = stored_result(folder, measurements)
            if before is not None:
                return before
            logits = {label: arrays for label, (_, arrays) in (scored | teacher_outputs).items()}
            done = {label: artifact for label, (artifact, _) in scored.items()}
            done |= {BENCH: measured.artifact} if measured else {}
            outputs = RunOutputs(
                reported,
                artifacts,
                cached,
                models,
                logits,
                measured.runtimes if measured else {},
                done,
                measurements,
                similarity,
            )
            result = build_result(plan, context, outputs, request.bench, request.command or command_line(request, plan))
            write_run(folder, result, plan, outputs, cache.root)
    return result
