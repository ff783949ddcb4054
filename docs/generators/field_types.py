"""The annotation and the default of a spec's field, in the words of somebody who writes YAML."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from compress.spec.schema import is_model

_WORDS = {int: "integer", float: "number", str: "text", bool: "`true` or `false`", Any: "any"}
_BOUNDS = {annotated_types.Ge: "≥", annotated_types.Gt: ">", annotated_types.Le: "≤", annotated_types.Lt: "<"}
Linked = Callable[[type[BaseModel]], str]  # how a page calls a mapping with fields of its own


def type_of(field: FieldInfo, linked: Linked) -> str:
    return _bounded(_type(field.annotation, linked), field.metadata)


def default_of(field: FieldInfo) -> str:
    """As YAML; empty where the field is unset, or a mapping with defaults of its own."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value in ("", {}, ()) or is_model(type(value)) else f"`{in_yaml(value)}`"


def in_yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(in_yaml, value))}]"
    if isinstance(value, BaseModel):
        return in_yaml(getattr(value, "name", ""))
    if isinstance(value, float) and "e" in f"{value:g}":  # YAML wants a dot: 5.0e-5
        mantissa, exponent = f"{value:g}".split("e")
        return f"{float(mantissa)}e{int(exponent)}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _type(annotation: Any, linked: Linked) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _bounded(_type(inside[0], linked), inside[1:])
    if origin is Literal:
        return ", ".join(f"`{in_yaml(value)}`" for value in inside)
    if origin in (Union, UnionType):
        names = dict.fromkeys(_type(member, linked) for member in inside if member is not type(None))
        return " or ".join(names)
    if origin is tuple:
        several = inside[1:] == (...,)
        return f"list of {_type(inside[0], linked)}" if several else f"pair of {_type(inside[0], linked)}"
    if origin is dict:
        return f"mapping: {_type(inside[0], linked)} → {_type(inside[1], linked)}"
    return linked(annotation) if is_model(annotation) else _WORDS[annotation]


def _bounded(text: str, metadata: Any) -> str:
    """With the bounds of a number; those of a list's length are for the description."""
    parts = [part for item in metadata for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
    limits = [(part, kind) for part in parts for kind in _BOUNDS if isinstance(part, kind)]
    shown = [f"{_BOUNDS[kind]} {getattr(part, kind.__name__.lower()):g}" for part, kind in limits]
    return f"{text} {', '.join(shown)}" if shown else text
