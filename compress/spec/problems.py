"""pydantic's errors in plain words: expected X, found Y; what to do."""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..errors import did_you_mean
from . import schema
from .document import Document, Where

EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "`true` or `false`",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
BOUNDS = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}
BOUND_WORDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
NUMERIC = {"int_type", "int_from_float", "float_type"}
_OF_WHOLE_STAGES = ("name", "per_task")  # which the fields of one task cannot have
NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]*$"


def explain(error: ValidationError, document: Document, model: type[BaseModel]) -> list[tuple[Where, str]]:
    """Return (path, problem) of every mistake, in the order of the file."""
    errors: list[Any] = list(error.errors(include_url=False))
    problems_at: dict[Where, list[str]] = {}
    for item in errors:
        where, _, value = schema.clean(model, document.data, item["loc"])
        if _is_echo(item, where, value, model, document):
            continue
        problem = _describe_problem(item, where, value, document, model)
        if item["type"] == "value_error":
            where, problem = _of_field(where, problem, document, model)
        if item["type"] == "union_tag_invalid":
            where = _of_tag(where, _strip_quotes(item["ctx"]["discriminator"]), document)
        if problem not in problems_at.setdefault(where, []):
            problems_at[where].append(problem)
    merged = [(where, _merge(problems)) for where, problems in problems_at.items()]
    return sorted(merged, key=lambda entry: _order(entry[0], document))


def _of_field(where: Where, problem: str, document: Document, model: type[BaseModel]) -> tuple[Where, str]:
    """Return the place and the problem of a check over several fields, which begins with the name of the wrong one. Of several names,
    separated by commas, the place is the one that the command line set, else the last one in the file."""
    head, colon, rest = problem.partition(": ")
    names, known = head.split(", "), schema.fields_at(model, document.data, where)
    if not colon or where[-1:] == (head,) or not all(name in known for name in names):
        return where, problem
    places = [(*where, name) for name in names]
    return max(places, key=lambda place: (place in document.overridden, document.lines.get(place, 0))), rest


def _of_tag(where: Where, tag: str, document: Document) -> Where:
    """Return the place of an unknown name: what has it, or the name itself if the command line set that alone."""
    return (*where, tag) if (*where, tag) in document.overridden else where


def _order(where: Where, document: Document) -> int:
    while where and where not in document.lines:
        where = where[:-1]
    return document.lines.get(where, 0)


def _is_echo(item: Any, where: Where, value: Any, model: type[BaseModel], document: Document) -> bool:
    """Whether an error only repeats another: a list that is short because its items were wrong, or a member of a union that does not have
    the shape of what was written."""
    if item["type"] == "too_short":
        return isinstance(value, tuple) and len(value) >= item["ctx"]["min_length"]
    wants_scalar = item["type"] in {"string_type", "literal_error", *NUMERIC}
    return wants_scalar and isinstance(value, dict | tuple) and _union_takes(model, document.data, where, value)


def _union_takes(model: type[BaseModel], data: Any, where: Where, value: Any) -> bool:
    choices = schema.members_at(model, data, where)
    container = dict if isinstance(value, dict) else tuple
    return len(choices) > 1 and any(get_origin(choice) is container for choice in choices)


def _merge(problems: list[str]) -> str:
    """Merge `expected text, found X` and `expected a mapping, found X` into `expected text or a mapping, found X`."""
    halves = [problem.partition(", found ") for problem in problems]
    if len(problems) > 1 and all(head.startswith("expected ") and sep for head, sep, _ in halves):
        wanted = " or ".join(head.removeprefix("expected ") for head, _, _ in halves)
        return f"expected {wanted}, found {halves[0][2]}"
    return "; ".join(problems)


def _describe_problem(item: Any, where: Where, value: Any, document: Document, model: type[BaseModel]) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if item["loc"][-1:] == ("[key]",):
        return f"expected a whole number from 1 as the key, found `{where[-1]}`"
    if kind == "extra_forbidden":
        unfit = {where[-1], *(_OF_WHOLE_STAGES if where[-3:-2] == ("per_task",) else ())}
        known = [name for name in schema.fields_at(model, document.data, where[:-1]) if name not in unfit]
        if len(where) == 1 and (settings := _settings_of_stages(str(where[0]), document.data, model)):
            return f"unknown key; a setting of stages: {' or '.join(f'`{setting}`' for setting in settings)}"
        return f"unknown key{did_you_mean(str(where[-1]), known)}"
    if kind == "missing":
        return "missing; expected a value"
    if kind == "union_tag_not_found":
        tags = ", ".join(f"`{tag}`" for tag in _tag_names(model, document.data, where))
        return f"`{_strip_quotes(context['discriminator'])}` is missing; expected one of {tags}"
    if kind == "union_tag_invalid":
        tags = _tag_names(model, document.data, where)
        return (
            f"unknown {_strip_quotes(context['discriminator'])} `{context['tag']}`{did_you_mean(context['tag'], tags)}"
        )
    if kind in BOUNDS:
        bounds = schema.bounds_at(model, document.data, where) or context
        words = " and ".join(f"{BOUND_WORDS[name]} {bound:g}" for name, bound in bounds.items())
        return f"expected a number {words}, found {describe(value)}"
    return _about_value(kind, context, item, where, value, document)


def _settings_of_stages(name: str, data: Any, model: type[BaseModel]) -> list[str]:
    """Return the paths, as `--set` takes them, of the stages' fields with this name."""
    stages = data.get("stages") if isinstance(data, dict) else None
    paths = []
    for index, stage in enumerate(stages if isinstance(stages, tuple) else ()):
        kind, body = next(iter(stage.items()), ("", None)) if isinstance(stage, dict) else (stage, None)
        if isinstance(kind, str) and name in schema.fields_at(model, data, ("stages", index, kind)):
            own = body.get("name") if isinstance(body, dict) else None
            paths.append(f"{own if own and isinstance(own, str) else kind}.{name}")
    return paths


def _about_value(kind: str, context: Any, item: Any, where: Where, value: Any, document: Document) -> str:
    actual = describe(value)
    if kind in EXPECTED:
        return f"expected {EXPECTED[kind]}, found {actual}{_hint(kind, where, value, document)}"
    if kind == "literal_error":
        return f"expected {_one_of(context['expected'])}, found {actual}{_suggestion(context['expected'], value)}"
    if kind == "string_pattern_mismatch" and context["pattern"] == NAME_PATTERN:
        return f"expected a name of lower-case letters, digits, `.`, `_` and `-`, found {actual}"
    if kind in ("too_short", "too_long"):
        count = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        return f"expected {count} in the list, found {context['actual_length'] or 'none'}"
    if kind == "string_too_long":
        return f"expected at most {context['max_length']} characters, found {len(value)}"
    message = str(context["error"]) if kind == "value_error" else item["msg"]
    return message if kind == "value_error" else f"{message[:1].lower()}{message[1:]}, found {actual}"


def describe(value: Any) -> str:
    """Describe a value in words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"the text {value[:60] + '…' if len(value) > 60 else value!r}" if value else "an empty text"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"the {type(value).__name__} {value}"


def _hint(kind: str, where: Where, value: Any, document: Document) -> str:
    spelling = document.spellings.get(where, "")
    if kind in NUMERIC and isinstance(value, str):
        if re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", value):
            mantissa, _, exponent = value.lower().partition("e")
            return f" (YAML needs a dot: {mantissa}.0e{exponent})"
        if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value):
            return f" (remove the quotes: {value})"
    if kind == "string_type" and spelling and not isinstance(value, dict | tuple):
        return f' (quote it: "{spelling}")'
    return ""


def _strip_quotes(text: str) -> str:
    return text.strip("'")


def _literals(expected: str) -> list[str]:
    """Return names, `true` or `false`, and whole numbers, from a list as pydantic writes it."""
    matches = re.findall(r"'([^']*)'|\b(True|False|\d+)\b", expected)
    return [name or flag.lower() for name, flag in matches]


def _one_of(expected: str) -> str:
    names = [f"`{name}`" for name in _literals(expected)]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _suggestion(expected: str, value: Any) -> str:
    suggestion = did_you_mean(value, _literals(expected)) if isinstance(value, str) else ""
    return suggestion if "did you mean" in suggestion else ""


def _tag_names(model: type[BaseModel], data: Any, where: Where) -> list[str]:
    names = [choice.model_fields["name"].annotation for choice in schema.members_at(model, data, where)]
    return [tag for name in names for tag in get_args(name)]
