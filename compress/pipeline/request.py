"""A command's request, and the command that makes one run of it again."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .. import catalog
from ..errors import CompressError
from ..files.paths import NOT_PATHS, OWN_FOLDER, display_path, expand_home, unambiguous_path, with_display_paths
from ..machine import MOST_THREADS, usable_cores
from ..quantize.methods import QUANTIZERS
from ..spec.limits import LARGEST_SEED, MOST_SEEDS
from ..spec.recipe import Recipe
from ..spec.task import TaskSpec
from ..tasks import OwnFiles, own_task, resolve_task
from .plan import Plan
from .plan.teachers import TeacherSource, pinned_word
from .results.measure import BenchSettings


@dataclass(frozen=True)
class Request:
    """What to run: every recipe on every task with every seed. `own`: files in place of `tasks`.

    `teacher` and `student` override the recipe's, each a card or a checkpoint; `teacher` may be several, and the student learns from their
    mean; `refit` fine-tunes teachers that already have a head; `data_dir` holds GLUE's folders or a saved data set; `tuning` is a file for
    the tuning split, which is otherwise held out of train; `corpus` names plain text; `overrides` are `path=value` for every recipe given
    by name (one given as an object is run as it is).

    `base_seed` is the seed of the teacher, the choice of its layers (`init: prune`), the general stage and the augmentation, which all
    seeds then share (default: every seed has its own). With `fsdp` the processes of torchrun split what they train. `jobs` processes share
    the stages, and the cores too if `threads` (per process) is not given.

    Without `bench` no latency is measured; with `rebench` it is always measured, replacing an earlier run's figures. `command` is the
    command that results record; default: the `compress run` that makes each.
    """

    recipes: tuple[str | Recipe, ...]
    tasks: tuple[str, ...] = ()
    teacher: str | tuple[str, ...] | None = None
    student: str | None = None
    seeds: tuple[int, ...] = (0,)
    base_seed: int | None = None
    data_dir: Path | None = None
    tuning: Path | None = None
    corpus: tuple[str, ...] = ()
    root: Path = Path("runs")
    precision: str | None = None
    refit: bool = False
    overrides: tuple[str, ...] = ()
    threads: int | None = None
    jobs: int = 1
    fsdp: bool = False
    bench: BenchSettings | None = field(default_factory=BenchSettings)
    rebench: bool = False
    checkpoint_seconds: float = 60.0
    command: str | None = None
    own: OwnFiles | None = None


def tasks_of(request: Request) -> list[tuple[TaskSpec, Path | None]]:
    """Return every task, with the folder that its paths are relative to. Raises `CompressError` if there is no task."""
    if request.own is None and not request.tasks:
        raise CompressError(
            "expected --task NAME (`compress list tasks`) or FILE.yaml, or --train FILE and --dev FILE, found neither"
        )
    if request.own is not None and request.tasks:
        raise CompressError(
            f"--train names data, and --task {request.tasks[0]} has data of its own; leave one of the two out"
        )
    return [own_task(request.own)] if request.own is not None else [resolve_task(name) for name in request.tasks]


def teacher_words(request: Request, recipe: Recipe) -> tuple[str, ...]:
    """Return the request's teachers, or the recipe's if it names none."""
    return as_tuple(request.teacher) or as_tuple(recipe.teacher)


def as_tuple(teacher: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return one word, several, or none, as a tuple."""
    return (teacher,) if teacher and isinstance(teacher, str) else tuple(teacher or ())


def check_numbers(request: Request) -> None:
    """Raise `CompressError` for seeds out of range, for implausibly many seeds, threads or jobs, for latency that is both to be measured
    anew and left out, and for numbers of runs, shapes or threads with which it cannot be measured."""
    seeds = [*request.seeds, *([] if request.base_seed is None else [request.base_seed])]
    wrong = next((seed for seed in seeds if not 0 <= seed <= LARGEST_SEED), None)
    if wrong is not None:
        raise CompressError(f"seeds: expected 0 to {LARGEST_SEED}, found {wrong}")
    if len(request.seeds) > MOST_SEEDS:
        raise CompressError(f"seeds: expected at most {MOST_SEEDS}, found {len(request.seeds)}")
    if request.threads is not None and not 1 <= request.threads <= MOST_THREADS:
        raise CompressError(f"threads: expected 1 to {MOST_THREADS}, found {request.threads}")
    if not 1 <= request.jobs <= MOST_THREADS:
        raise CompressError(f"jobs: expected 1 to {MOST_THREADS}, found {request.jobs}")
    if request.rebench and request.bench is None:
        raise CompressError("--rebench measures latency, which --no-bench leaves out; give one of the two")
    if request.bench is not None:
        _check_bench(request.bench)


def _check_bench(bench: BenchSettings) -> None:
    for name, least in (("runs", 1), ("warmup", 0), ("threads", 1)):
        if not _is_count(number := getattr(bench, name), least):
            raise CompressError(f"bench: {name}: expected a whole number of at least {least}, found {number!r}")
    wrong = [shape for shape in bench.shapes if len(shape) != 2 or not all(_is_count(side, 1) for side in shape)]
    if wrong or not bench.shapes:
        raise CompressError(f"bench: shapes: expected pairs (batch, length) of whole numbers, found {bench.shapes!r}")


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def threads_of(request: Request) -> int:
    """Threads of each process that trains or evaluates."""
    return request.threads or max(1, usable_cores() // request.jobs)


def overrides_for(request: Request, name: str) -> list[str]:
    """Return the overrides for one recipe: those whose stage only other recipes have are dropped."""
    stages = {
        word: {stage.id for stage in load_recipe(word).stages} for word in request.recipes if isinstance(word, str)
    }
    elsewhere = set().union(*stages.values()) - stages[name]
    return [text for text in request.overrides if re.split(r"[.=\[]", text.strip())[0] not in elsewhere]


def command_line(request: Request, plan: Plan) -> str:
    """Return the command that makes this one run again, whatever else was requested with it; paths are written by `display_path`."""
    words = ["compress", "run", display_path(plan.requested_as or plan.recipe.name), *_task_words(request, plan)]
    for text, source in zip(as_tuple(request.teacher), plan.teachers.values(), strict=False):
        words += ["--teacher", display_checkpoint(text, source)]
    if request.student is not None:
        words += ["--student", display_checkpoint(request.student, plan.pretrained)]
    for flag, value in (("--data-dir", request.data_dir), ("--tuning", request.tuning)):
        words += [flag, display_path(str(value))] if value is not None else []
    for text in request.corpus:
        words += ["--corpus", display_path(text)]
    words += ["--seed", str(plan.seed)] if plan.seed else []
    words += ["--base-seed", str(request.base_seed)] if request.base_seed is not None else []
    words += ["--precision", request.precision] if request.precision else []
    usual = BenchSettings()
    timed = request.bench or usual
    for flag, value, default in (
        ("--bench-runs", timed.runs, usual.runs),
        ("--bench-threads", timed.threads, usual.threads),
    ):
        words += [flag, str(value)] if value != default else []
    words += ["--no-bench"] if request.bench is None else []
    words += ["--refit"] if request.refit else []
    for override in overrides_for(request, plan.requested_as) if plan.requested_as else ():
        words += ["--set", display_override(override)]
    return shlex.join(words)


def display_checkpoint(text: str, source: TeacherSource | None) -> str:
    """As `display_path`, for a teacher or student that was found as `source`; a folder begins with `OWN_FOLDER`, so that it is not taken
    for a card or a repository of the hub."""
    if source is None:
        return display_path(text)
    word = display_path(pinned_word(text, source))
    return f"{OWN_FOLDER}{word}" if source.folder == expand_home(text) and not word.startswith(OWN_FOLDER) else word


def display_override(text: str) -> str:
    """Return `PATH=VALUE` with paths in the value written as records name them."""
    name, equals, value = text.partition("=")
    if not NOT_PATHS.isdisjoint(re.split(r"[.\[]", name.strip())):
        return text
    try:
        setting = yaml.safe_load(value)
    except yaml.YAMLError:
        return text
    record = with_display_paths(setting)
    if record == setting:
        return text
    return name + equals + (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False))


def _task_words(request: Request, plan: Plan) -> list[str]:
    if request.own is not None:
        return own_words(request.own, request.corpus)
    named = {word: resolve_task(word)[0].name for word in request.tasks}
    name = plan.task.spec.name
    return ["--task", display_path(next((word for word in named if named[word] == name), name))]


def own_words(own: OwnFiles, corpus: Sequence[str] = ()) -> list[str]:
    """Return the options that name these files and their columns, paths written by `display_path`. Omits a training file that is all of
    `corpus`, and columns with default names, since others may be detected in their place."""
    words = [] if [own.train] == [*map(unambiguous_path, corpus)] else ["--train", display_path(str(own.train))]
    words += ["--dev", display_path(str(own.dev))]
    words += ["--text", own.text] if own.text != OwnFiles.text else []
    words += ["--pair", own.pair] if own.pair is not None else []
    words += ["--label", own.label] if own.label != OwnFiles.label else []
    words += ["--kind", own.kind] if own.kind is not None else []
    return [*words, "--max-length", str(own.max_length)] if own.max_length is not None else words


def load_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """As `catalog.load_recipe`, with its quantization settings checked: the methods are known here. A recipe made in Python is checked when
    it is planned."""
    return catalog.load_recipe(name_or_path, overrides, QUANTIZERS)
