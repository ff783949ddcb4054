"""What readers of a result rely on: the ranges of its numbers, and the fields of its open parts that reports read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, GetCoreSchemaHandler, with_config
from pydantic_core import CoreSchema
from typing_extensions import TypedDict

from ..errors import CompressError
from ..fields import NOT_UNICODE, Spec, is_unicode
from ..spec.document import MOST_DEPTH, Where, format_location
from ..spec.limits import LARGEST_SEED, LARGEST_WHOLE
from .info import check_fidelity, check_training


class Record(Spec):
    """A part of a result, with finite numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), allow_inf_nan=False)


_LONGEST_NAME = 255  # bytes: the limit of file systems
_ROUNDING = 0.01  # points


def _file_name(text: str) -> str:
    """Return `text` if it can be the name of a folder, because it is joined to paths."""
    wrong = text in ("", ".", "..") or any(c in "/\\" or not c.isprintable() for c in text)
    if wrong or len(text.encode()) > _LONGEST_NAME:
        raise ValueError("expected a name that a folder can have, without path separators")
    return text


FileName = Annotated[str, AfterValidator(_file_name)]
Count = Annotated[int, Field(ge=0, le=LARGEST_WHOLE)]
Size = Annotated[int, Field(ge=1, le=LARGEST_WHOLE)]  # a divisor of other sizes
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Points = Annotated[float, Field(ge=-100, le=100)]
Difference = Annotated[float, Field(ge=-200, le=200)]  # of points
Share = Annotated[float, Field(ge=0, le=1)]
Magnitude = Annotated[float, Field(ge=0, le=1e39)]  # of float32
Duration = Annotated[float, Field(ge=0, le=1e12)]
Rate = Annotated[float, Field(gt=0, le=1e12)]  # a divisor, or a value on a logarithmic axis


def _check_number(value: Any) -> Any:
    """Return the number unchanged, whole or not, so that it is written as it was read."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return value


def _number_or_none(value: Any) -> Any:
    return None if value is None else _check_number(value)


def _check_numbers(value: Any) -> Any:
    """Check one number, one for each of several shapes, or none."""
    if not isinstance(value, dict):
        return _number_or_none(value)
    for each in value.values():
        _check_number(each)
    return value


_Number = Annotated[Any, AfterValidator(_check_number)]


class Known:
    """A mapping with any fields, of which those of a `TypedDict` have its types. Type checkers see `dict[str, Any]`."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self._fields)


_OPEN = ConfigDict(extra="allow")


@with_config(_OPEN)
class _StageFields(TypedDict, total=False):
    name: str


@with_config(_OPEN)
class _Recipe(TypedDict, total=False):
    name: str
    title: str
    paper: str | None
    stages: list[dict[str, _StageFields | None]]


@with_config(_OPEN)
class _Candidate(TypedDict):
    name: str
    learning_rate: Rate
    epochs: Rate
    tuning_score: Points


@with_config(_OPEN)
class _StageInfo(TypedDict, total=False):
    # of a choice
    chosen: str
    candidates: list[_Candidate]
    # of the layers that a student is copied from
    copied_layers: Annotated[list[Count], Field(min_length=1)]
    copied_divergence: Magnitude
    spaced_divergence: Magnitude
    examples: Count
    # of a training
    threads: Count | None
    device: str | None
    processes: Count | None


@with_config(_OPEN)
class _Settings(TypedDict, total=False):
    precision: str
    threads: Count | None
    bench: dict[str, Any] | None
    tuning_examples: Count
    measurements: list[str]
    notices: list[str] | None
    published: dict[str, _Number] | None
    teacher_licence: str | None
    teacher_hub: str | None
    student_licence: str | None
    student_hub: str | None
    max_length: Size
    text: list[str]


@with_config(_OPEN)
class _Goal(TypedDict):
    drop: _Number
    flips: NotRequired[_Number]


@with_config(_OPEN)
class _Reached(_Goal):
    flipped: NotRequired[Count]
    flips_interval: NotRequired[Annotated[list[_Number], Field(min_length=2, max_length=2)]]


@with_config(_OPEN)
class _Texts(TypedDict):
    tuning: Size
    train: NotRequired[Count]


@with_config(_OPEN)
class _ModelInfo(TypedDict, total=False):
    parity_max_abs_error: Annotated[Any, AfterValidator(_check_numbers)]
    weight_matmuls: Count
    weight_only_matmuls: Count
    int8_matmuls: Count
    fp32_matmuls: Count
    signal_to_noise_db: dict[str, Annotated[Any, AfterValidator(_number_or_none)]] | None
    stayed_fp32: dict[str, str] | None
    # of a search
    goal: _Goal
    reached: _Reached
    goal_met: bool
    texts: _Texts
    blocking_matmuls: list[str]
    fp32_fallbacks: list[str]
    int8_formats: dict[str, str]
    int8_formats_tried: dict[str, str]
    divergence: dict[str, dict[str, _Number]]
    drop_alone: dict[str, dict[str, _Number]]
    saved_ms: dict[str, _Number]
    texts_alone: Count | None


def _check_search(info: dict[str, Any]) -> dict[str, Any]:
    """Check the notes of a search: if they have the divergence of matmuls, the rest must be complete; if they have a goal,
    its outcome must be there."""
    if "goal" in info:
        _check_goal(info)
    if not info.get("divergence"):
        return info
    if missing := [name for name in ("goal", "fp32_fallbacks", "int8_formats") if name not in info]:
        raise ValueError(f"`divergence` is of a search, and its `{missing[0]}` is missing")
    tried = info.get("int8_formats_tried", info["int8_formats"])
    for matmul, divergences in info["divergence"].items():
        int8_format = tried.get(matmul, "static")
        whole = int8_format in divergences
        if "drop_alone" in info:
            whole &= int8_format in info["drop_alone"].get(matmul, ()) and matmul in info.get("saved_ms", ())
        if not whole:
            raise ValueError(f"`divergence`: {matmul}: what was found of it as {int8_format} is not whole")
    return info


def _check_goal(info: dict[str, Any]) -> None:
    if missing := [name for name in ("goal_met", "reached") if name not in info]:
        raise ValueError(f"`goal` is of a search, and its `{missing[0]}` is missing")
    reached = info["reached"]
    if "flips" in info["goal"] and "flips" not in reached:
        raise ValueError("`reached`: `flips` is missing, of which there is a goal")
    if "flipped" in reached and not {"flips", "flips_interval"} <= reached.keys():
        raise ValueError("`reached`: `flipped` is there without `flips` and `flips_interval`")


RecipeRecord = Annotated[dict[str, Any], Known(_Recipe)]
StageInfo = Annotated[dict[str, Any], Known(_StageInfo), AfterValidator(check_training)]
Settings = Annotated[dict[str, Any], Known(_Settings)]
ModelInfo = Annotated[dict[str, Any], Known(_ModelInfo), AfterValidator(_check_search), AfterValidator(check_fidelity)]


def read_record(file: Path) -> Any:
    """Return the document in `file`. Raises `CompressError` naming the file if it is not JSON, and the field if a value
    cannot be used: a number that is not finite or too large, invalid text, too deep nesting."""
    if file.exists() and not file.is_file():
        raise CompressError(f"{file}: expected a file")
    try:
        document = json.loads(file.read_text(encoding="utf-8"), parse_int=_parse_integer)
    except FileNotFoundError:
        raise CompressError(f"{file}: no such file; expected a run directory or its result.json") from None
    except (OSError, ValueError, RecursionError) as error:  # not text, not JSON, or too deep
        raise CompressError(f"{file}: cannot be read as a result: {error}") from None
    for where, problem in _unusable(document, ()):
        raise CompressError(f"{file}: cannot be read as a result: {format_location(where)}: {problem}")
    return document


def _parse_integer(digits: str) -> float:
    """Parse an integer; one with too many digits becomes infinity, which is refused like any number that is too large."""
    return int(digits) if len(digits) < len(str(LARGEST_WHOLE)) + 2 else float("inf")


def _unusable(value: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, dict | list):
        if len(where) >= MOST_DEPTH:
            yield where, f"nested too deeply; at most {MOST_DEPTH} levels are read"
            return
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from (((*where, ascii(key)), NOT_UNICODE),) if isinstance(key, str) and not is_unicode(key) else ()
            yield from _unusable(inner, (*where, key))
    elif isinstance(value, str):
        yield from ((where, NOT_UNICODE),) if not is_unicode(value) else ()
    elif isinstance(value, float) and not isfinite(value):
        yield where, "expected a finite number"
    elif isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        yield where, f"expected a whole number of at most {LARGEST_WHOLE}"


def contradictions(
    splits: Sequence[str], metrics: Sequence[str], models: Sequence[Any]
) -> Iterator[tuple[tuple[int | str, ...], str]]:
    """Yield (place, problem) of every model that conflicts with its task or with another model: readers look up scores by
    the names of the task's splits and metrics."""
    names = [(model.name, model.precision) for model in models]
    if models[0].delta is not None:  # a file whose teacher was taken out would have a student in its place
        yield (
            ("models", 0, "delta"),
            "expected null, since the first model is the baseline; found a difference to another",
        )
    for number, model in enumerate(models):
        place = ("models", number)
        if names.index(names[number]) != number:
            yield (*place, "name"), f"a model before it is {model.name} {model.precision} too"
        if (actual := {split: sorted(scores) for split, scores in model.scores.items()}) != {
            split: sorted(metrics) for split in splits
        }:
            description = "; ".join(f"{split} with {', '.join(names) or 'nothing'}" for split, names in actual.items())
            yield (
                (*place, "scores"),
                f"expected {', '.join(metrics)} of each of {', '.join(splits)}, as `task` says; found {description or 'none'}",
            )
        elif abs(model.headline - _mean(model.scores[splits[0]])) > _ROUNDING:
            yield (*place, "headline"), f"expected the mean of its scores on {splits[0]}, found {model.headline:g}"


def _mean(scores: Mapping[str, float]) -> float:
    return sum(scores.values()) / len(scores)
