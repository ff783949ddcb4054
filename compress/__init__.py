"""Compress a BERT teacher by a recipe, measure what it cost, ship a verified int8 ONNX bundle.

`compress.run(...)` is the command line's `run`. `compress.runtime.Classifier`, `Tagger` for labelled words, `Reader` for
questions, `Ranker` for passages, `Chooser` for endings and `Embedder` for vectors work with a shipped bundle, without torch
and transformers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_type_hints

from .errors import CompressError, did_you_mean
from .files.paths import expand_home
from .version import __version__

if TYPE_CHECKING:
    from .pipeline import BenchSettings, Listener, Plan
    from .results import Result
    from .spec.kinds import KindName
    from .spec.recipe import Recipe

__all__ = ["Options", "__version__", "plan", "run"]


class Options(TypedDict, total=False):
    """Options of `run` and `plan`: your own data in place of `tasks`, and the fields of `compress.pipeline.Request`, which
    has their defaults. docs/python.md gives each one's name on the command line."""

    train: str | Path
    dev: str | Path
    text: str
    pair: str | None
    label: str
    kind: KindName | None
    max_length: int | None
    teacher: str | Path | Sequence[str | Path] | None
    student: str | Path | None
    seeds: Sequence[int]
    base_seed: int | None
    data_dir: str | Path | None
    tuning: str | Path | None
    corpus: str | Path | Sequence[str | Path]
    root: str | Path
    precision: str | None
    refit: bool
    overrides: Sequence[str]
    threads: int | None
    jobs: int
    fsdp: bool
    bench: BenchSettings | None
    rebench: bool
    checkpoint_seconds: float
    command: str | None


_PATH, _COLUMN, _COUNT, _FLAG = "a path", "a column's name", "a whole number", "True or False"
_SEVERAL = ("recipes", "tasks", "teacher", "corpus", "overrides")  # arguments that take one word or several
_EXPECTED = {  # of each argument, in words
    "recipes": "a recipe's name, file or Recipe, or several",
    "tasks": "a task's name or file, or several",
    "train": _PATH,
    "dev": _PATH,
    "text": _COLUMN,
    "pair": _COLUMN,
    "label": _COLUMN,
    "kind": "a kind of task",
    "max_length": _COUNT,
    "teacher": "a card, a checkpoint or several",
    "student": "a card or a checkpoint",
    "base_seed": _COUNT,
    "data_dir": _PATH,
    "tuning": _PATH,
    "corpus": "a path or several",
    "root": _PATH,
    "precision": "fp32, bf16 or auto",
    "refit": _FLAG,
    "overrides": 'a list like ["distill.epochs=1"]',
    "threads": _COUNT,
    "jobs": _COUNT,
    "fsdp": _FLAG,
    "bench": "compress.pipeline.BenchSettings(...) or None",
    "rebench": _FLAG,
    "checkpoint_seconds": "a number of seconds",
    "command": "a text",
}


def run(
    recipes: str | Path | Recipe | Sequence[str | Path | Recipe],
    *,
    tasks: str | Path | Sequence[str | Path] = (),
    progress: bool = False,
    listener: Listener | None = None,
    **options: Unpack[Options],
) -> list[Result]:
    """Run recipes on tasks, or on files of your own, and return a typed `Result` per recipe, task and seed.

    `run("int8", teacher="./my-bert", train="a.csv", dev="b.csv", text="review", label="stars")`. `progress` shows stages,
    steps and the time left on stderr, as the command line does; a `listener` is notified of them instead. Raises
    `compress.errors.CompressError`.
    """
    from .pipeline import Listener, run_all

    if progress and listener is not None:
        raise CompressError("progress and listener: expected one of the two")
    if not isinstance(listener, Listener | None):
        raise CompressError(
            f"listener: expected a compress.pipeline.Listener, found {listener!r}; give an object whose class derives from it"
        )
    request = _request(recipes, tasks, options)
    if not progress:
        return run_all(request, listener)
    from .cli.display import Display

    with Display() as shown:
        return run_all(request, shown)


def plan(
    recipes: str | Path | Recipe | Sequence[str | Path | Recipe],
    *,
    tasks: str | Path | Sequence[str | Path] = (),
    **options: Unpack[Options],
) -> list[Plan]:
    """Return what `run` with the same arguments would do: stages, keys, sizes. Reads the data that is at hand; computes and
    writes nothing. Raises as `run`."""
    from .pipeline import plan_all
    from .pipeline.preflight import check_at_hand

    request = _request(recipes, tasks, options)
    plans = plan_all(request)
    check_at_hand(plans, request.root)
    return plans


def _request(recipes: Any, tasks: Any, options: Any) -> Any:
    from .pipeline import Request

    known = list(Options.__annotations__)
    for name in options:
        if name not in known:
            raise CompressError(f"no option `{name}`{did_you_mean(name, ['recipes', 'tasks', *known])}")
    arguments = {"recipes": recipes, "tasks": tasks, **options}
    several = {name: _words_of(arguments[name]) for name in _SEVERAL if arguments.get(name) is not None}
    _check_empty(arguments | several)
    own, fields = _split_own_files(arguments | several)
    for name in ("data_dir", "tuning", "root"):
        if isinstance(fields.get(name), str | Path):
            fields[name] = expand_home(fields[name])
    if "seeds" in fields:
        fields["seeds"] = _seeds(fields["seeds"])
    if fields.get("student") is not None:
        fields["student"] = _word_of(fields["student"])
    _check_types(Request, fields, arguments)
    wrong = [word for word in fields.get("overrides", ()) if "=" not in word]
    if wrong or isinstance(options.get("overrides"), str):
        raise CompressError(f'overrides: expected a list like ["distill.epochs=1"], found {options["overrides"]!r}')
    return Request(own=own, **fields)


def _check_empty(arguments: Mapping[str, Any]) -> None:
    """CompressError: an empty text in place of a name or path, as of an unset variable, which would mean the default or this folder; or no
    recipe or teacher among several."""
    for name, value in arguments.items():
        words = value if isinstance(value, tuple) else (value,)
        empty = any(isinstance(word, str) and not word for word in words)
        if name in _EXPECTED and (empty or (not words and name in ("recipes", "teacher"))):
            found_words = repr(words[0] if len(words) == 1 else list(words)) if words else "none"
            raise CompressError(f"{name}: expected {_EXPECTED[name]}, found {found_words}")


def _check_types(takes: Any, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """CompressError: one of `values` is of another type than `takes` has for that name. `arguments`: what the values are made of."""
    from pydantic import TypeAdapter, ValidationError

    types = get_type_hints(takes)
    for name, value in values.items():
        try:
            TypeAdapter(types[name]).validate_python(value, strict=True)
        except ValidationError:
            raise CompressError(f"{name}: expected {_EXPECTED[name]}, found {arguments[name]!r}") from None


def _split_own_files(options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the user's own files, if any, and the other options."""
    from .tasks import own_files

    names = ("train", "dev", "text", "pair", "label", "kind", "max_length")
    named = {name: options.get(name) for name in names}
    _check_types(own_files, named, named)
    return own_files(**named, corpus=options.get("corpus") or ()), {
        name: value for name, value in options.items() if name not in names
    }


def _words_of(value: Any) -> tuple[Any, ...]:
    from .spec.recipe import Recipe

    alone = isinstance(value, (str, Path, Recipe)) or not isinstance(value, Iterable)
    values: Any = (value,) if alone else value
    return tuple(map(_word_of, values))


def _word_of(value: Any) -> Any:
    """Return a path as the command line takes it, which cannot be mistaken for a name of a catalogue or hub."""
    return f"{value.expanduser().absolute()}" if isinstance(value, Path) else value


def _seeds(value: Any) -> tuple[int, ...]:
    try:
        seeds = () if isinstance(value, bytes | Mapping) else tuple(map(index, value))
    except TypeError:
        seeds = ()
    if not seeds:
        raise CompressError(f"seeds: expected whole numbers such as [0, 1, 2] or range(3), found {value!r}")
    return seeds
