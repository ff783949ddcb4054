"""The run that remakes a recorded result: one recipe on one task with one seed, planned and checked before any work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..catalog import is_path
from ..errors import CompressError
from ..files.atomic import write_text
from ..files.paths import with_display_paths
from ..pipeline import Listener, Plan, Request, plan_all, run_all
from ..pipeline.preflight import preflight
from ..pipeline.request import load_recipe, overrides_for
from ..pipeline.results.resolved import resolved_recipe, student_card
from ..processes import ranks
from ..provenance import TeacherOrigin
from ..report import find_predictions, load_answers
from ..report.grouping.conditions import fixed_architectures
from ..results import RESULT, Result
from ..spec.recipe import Recipe
from ..store import Store
from ..tasks import resolve_task

_BEGUN = ".reproduced"  # in --out: the names of the runs that `reproduce` has begun there, a line each
_FOR_READERS = ("title", "paper", "description")


@dataclass(frozen=True)
class Rerun:
    """A recorded result, and the request and plan of the run that makes it again. `changed`: settings and shapes that differ now, a line
    each. `stored`: number of stages that are in the store before any work."""

    recorded: Result
    request: Request
    plan: Plan
    changed: tuple[str, ...]
    stored: int


def rerun_of(recorded: Result, request: Request) -> Rerun:
    """Plan the rerun of a result. `request`: what the recorded command asks for, which may be several runs.

    Latency is left out, and the precision is the recorded one. Raises `CompressError` if the command does not make such a result, or if
    data, text or a checkpoint differ from those recorded. Writes nothing.
    """
    own = replace(
        narrow_request(request, recorded), precision=recorded.settings.get("precision", request.precision), bench=None
    )
    (plan,) = plan_all(own)
    _check_inputs(recorded, plan)
    now = json.loads(json.dumps(with_display_paths(resolved_recipe(plan))))
    cache = Store.of_runs(own.root)
    stored = sum(cache.has(node.key) for node in plan.nodes)
    changed = (*_changed_settings(_flat(recorded.recipe), _flat(now)), *_changed_models(recorded, plan))
    return Rerun(recorded, own, plan, changed, stored)


def check_reruns(reruns: Sequence[Rerun], source: Path) -> None:
    """Raise `CompressError` for what could not run, for recorded answers that cannot be read, and if a run would be compared with itself.
    Writes nothing."""
    if ranks.count() > 1:
        raise CompressError("reproduce: works in one process; start it without torchrun")
    root = reruns[0].request.root
    for rerun in reruns:
        for name in (rerun.plan.name, rerun.recorded.run):
            if (root / name / RESULT).is_file() and name not in _begun_in(root):
                raise CompressError(
                    f"--out {root}: holds {root / name}, the run to be made again; choose another folder"
                )
        _check_answers(rerun.recorded, source)
    preflight([rerun.plan for rerun in reruns], root)


def _begun_in(root: Path) -> list[str]:
    """Return the names of the runs that `reproduce` has begun in `root`, where it goes on with them."""
    return (root / _BEGUN).read_text(encoding="utf-8").splitlines() if (root / _BEGUN).is_file() else []


def _check_answers(recorded: Result, source: Path) -> None:
    file = find_predictions(recorded, [source])
    for split in recorded.task.splits if file else ():
        load_answers(file or source, recorded, [model.predictions for model in recorded.models], split)


def rerun_all(reruns: Sequence[Rerun], listener: Listener) -> list[Result]:
    """Return the result of each, in order. Reruns of the same run share it. Raises as `run_all`."""
    results: dict[str, Result] = {}
    for rerun in reruns:
        if rerun.plan.name not in results:
            root = rerun.request.root
            root.mkdir(parents=True, exist_ok=True)
            write_text(
                root / _BEGUN, "".join(f"{name}\n" for name in dict.fromkeys([*_begun_in(root), rerun.plan.name]))
            )
            (results[rerun.plan.name],) = run_all(rerun.request, listener)
    return [results[rerun.plan.name] for rerun in reruns]


def narrow_request(request: Request, recorded: Result) -> Request:
    """Narrow a command's request to the run of this result. Raises `CompressError` if it is not among the command's runs."""
    name, words = recorded.recipe["name"], [word for word in request.recipes if isinstance(word, str)]
    recipe = next((word for word in words if load_recipe(word, overrides_for(request, word)).name == name), None)
    if recipe is None:
        raise CompressError(f"its command makes no run of the recipe {name}")
    task = next((word for word in request.tasks if resolve_task(word)[0].name == recorded.task.name), None)
    if task is None and request.own is None:
        raise CompressError(f"its command makes no run on the task {recorded.task.name}")
    if recorded.seed not in request.seeds:
        raise CompressError(f"its command makes no run with the seed {recorded.seed}")
    return replace(
        request,
        **_adjacent_cards(load_recipe(recipe, overrides_for(request, recipe)), request, Path(recipe).parent),
        recipes=(recipe,),
        tasks=() if task is None else (task,),
        seeds=(recorded.seed,),
        overrides=tuple(overrides_for(request, recipe)),
        own=replace(request.own, name=recorded.task.name) if request.own else None,
    )


def _adjacent_cards(recipe: Recipe, request: Request, folder: Path) -> dict[str, str]:
    """Return the cards that the recipe itself names by files, if these are next to it and not in the working directory."""
    named = {"teacher": recipe.teacher, "student": recipe.student}
    return {
        role: str(folder / word)
        for role, word in named.items()
        if isinstance(word, str) and getattr(request, role) is None and is_path(word)
        and not Path(word).exists() and (folder / word).is_file()
    }  # fmt: skip


def _check_inputs(recorded: Result, plan: Plan) -> None:
    """Raise `CompressError` if the inputs differ from those recorded."""
    task, then = plan.task.spec.name, recorded.task.data.fingerprint
    if task != recorded.task.name or plan.task.fingerprint != then:
        by = f" by {recorded.code}" if recorded.code else ""
        raise CompressError(
            f"task {task}: the fingerprint of its data differs: {plan.task.fingerprint[:12]}, recorded {then[:12]} of "
            f"{recorded.task.name}{by}: other files, or read in another way by this version; give those files, or use that version"
        )
    if recorded.corpus and (plan.corpus is None or plan.corpus.fingerprint != recorded.corpus.fingerprint):
        raise CompressError("--corpus: its text differs from the recorded one; give the same files in the same order")
    for name, then, now in _origins(recorded, plan):
        wrong = next(
            (file for file in then.files.keys() & now.files.keys() if then.files[file] != now.files[file]), None
        )
        if wrong is not None:
            raise CompressError(f"{name}: its {wrong} differs from the recorded one ({then}); give the same checkpoint")


def _origins(recorded: Result, plan: Plan) -> Iterator[tuple[str, TeacherOrigin, TeacherOrigin]]:
    """Yield (name, recorded, new) for each checkpoint that both know."""
    many = [each.origin for each in recorded.ensemble.teachers] if recorded.ensemble else [recorded.origin]
    for then, source in zip(many, plan.teachers.values(), strict=False):
        if then is not None:
            yield f"teacher {source.card.name}", then, source.origin
    if recorded.student_origin is not None and plan.pretrained is not None:
        yield f"student {plan.pretrained.card.name}", recorded.student_origin, plan.pretrained.origin


def _flat(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return setting -> value; a stage's setting is named as in --set."""
    flat = {name: value for name, value in recipe.items() if name not in ("stages", *_FOR_READERS)}
    for stage in recipe.get("stages") or ():
        for kind, settings in stage.items():
            label = (settings or {}).get("name", kind)
            flat |= {label: "a stage"} | {f"{label}.{name}": value for name, value in (settings or {}).items()}
    return flat


def _changed_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each changed setting, among those recorded: older versions had fewer settings."""
    for name, value in then.items():
        if now.get(name) != value:
            yield f"{name}: {_format_value(value)} on record, {_format_value(now.get(name))} now"


def _changed_models(recorded: Result, plan: Plan) -> Iterator[str]:
    """Yield a line for each changed field of the student's card, and for each model whose card gives it another shape now."""
    then, now = recorded.student_card, student_card(plan)
    if then is not None and now is not None:
        for name in dict.fromkeys((*then, *now)):
            if then.get(name) != now.get(name):
                values = f"{_format_value(then.get(name))} on record, {_format_value(now.get(name))} now"
                yield f"{name} of the student's card: {values}"
    for name, then in fixed_architectures(recorded).items():
        now = str(plan.sizes.get(name, then))
        if now != then:
            yield f"architecture of {name}: {then} on record, {now} now"


def _format_value(value: Any) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
