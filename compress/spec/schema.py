"""Walk a model's annotations along the data: what is allowed at a place, and pydantic's paths without its tags."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from .document import Where


def strip_optional(annotation: Any) -> Any:
    """Strip `Annotated` and `| None`."""
    if get_origin(annotation) is Annotated:
        return strip_optional(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        return strip_optional(members[0]) if len(members) == 1 else Union[tuple(members)]  # noqa: UP007
    return annotation


def members(annotation: Any) -> list[Any]:
    """Return the bare choices of a union; a single one for anything else."""
    annotation = strip_optional(annotation)
    if get_origin(annotation) is Union:
        return [strip_optional(member) for member in get_args(annotation)]
    return [annotation]


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def union_member(annotation: Any, data: Any) -> Any:
    """Return the member of a union that fits the shape and the `name` of `data`."""
    choices = members(annotation)
    for choice in choices:
        if is_model(choice) and isinstance(data, dict):
            tag = choice.model_fields.get("name")
            if len(choices) == 1 or tag is None or data.get("name") in get_args(strip_optional(tag.annotation)):
                return choice
        origin = get_origin(choice)
        if (origin is dict and isinstance(data, dict)) or (origin is tuple and isinstance(data, tuple)):
            return choice
    return choices[0]


def annotation_below(annotation: Any, part: str | int) -> Any:
    """Return the annotation one step down, or None."""
    if is_model(annotation):
        if part == "per_task":  # a task's own settings have the fields of the mapping that they are in
            return dict[str, annotation]
        field = annotation.model_fields.get(part)
        return field.annotation if field else None
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    if get_origin(annotation) is tuple:
        return get_args(annotation)[0]
    return None


def child(data: Any, part: str | int) -> Any:
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, tuple) and isinstance(part, int) and part < len(data):
        return data[part]
    return None


def clean(model: type[BaseModel], data: Any, location: Sequence[str | int]) -> tuple[Where, Any, Any]:
    """Return (path, annotation, value) of a pydantic error, without its union tags and `[key]` marks."""
    annotation: Any = model
    path: list[str | int] = []
    parts = list(location)
    while parts:
        if len(members(annotation)) > 1:
            parts.pop(0)
            annotation = union_member(annotation, data)
            continue
        part = parts.pop(0)
        if part == "[key]":
            continue
        annotation, data = annotation_below(strip_optional(annotation), part), child(data, part)
        path.append(part)
    return tuple(path), annotation, data


def fields_at(model: type[BaseModel], data: Any, where: Where) -> list[str]:
    """Return the names of the fields allowed in the mapping at `where`, or an empty list."""
    submodel = _model_at(model, data, where)
    return list(submodel.model_fields) if submodel is not None else []


def bounds_at(model: type[BaseModel], data: Any, where: Where) -> dict[str, float]:
    """Return the bounds of the number at `where`, alone or in a union: its lower bound, `gt` or `ge`, and then its upper one, `lt` or
    `le`."""
    parent = _model_at(model, data, where[:-1])
    field = parent.model_fields.get(str(where[-1])) if parent is not None else None
    annotation, marks = (
        (_annotation_at(model, data, where)[0], []) if field is None else (field.annotation, [*field.metadata])
    )
    union = get_origin(annotation) in (Union, types.UnionType)
    for choice in get_args(annotation) if union else (annotation,):
        marks += [mark for each in getattr(choice, "__metadata__", ()) for mark in getattr(each, "metadata", [each])]
    bounds = {name: getattr(mark, name) for name in ("ge", "gt", "le", "lt") for mark in marks if hasattr(mark, name)}
    if "gt" in bounds:
        bounds.pop("ge", None)
    return bounds


def members_at(model: type[BaseModel], data: Any, where: Where) -> list[Any]:
    """Return the bare choices of the annotation at `where`."""
    return members(_annotation_at(model, data, where)[0])


def _model_at(model: type[BaseModel], data: Any, where: Where) -> type[BaseModel] | None:
    annotation = union_member(*_annotation_at(model, data, where))
    return annotation if is_model(annotation) else None


def _annotation_at(model: type[BaseModel], data: Any, where: Where) -> tuple[Any, Any]:
    """Return (annotation, value) at `where`."""
    annotation: Any = model
    for part in where:
        annotation, data = annotation_below(union_member(annotation, data), part), child(data, part)
    return annotation, data
