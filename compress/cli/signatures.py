"""Commands that take records of options: each field of a record is an option of its own on the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints


def takes_records(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` as a command for typer, with the fields of its records in their places among its parameters."""
    signature = inspect.Signature([*_flattened(function)])

    @functools.wraps(function)
    def command(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        return call(function, bound.arguments)

    vars(command)["__signature__"] = signature
    command.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    return command


def call(function: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call `function`, or make a record, with its parameters among `options`; a record among them is made of its own."""
    hints = _hints(function)
    return function(
        **{name: call(hint, options) if _is_record(hint) else options[name] for name, hint in hints.items()}
    )


def _flattened(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    for name, hint in _hints(function).items():
        if _is_record(hint):
            yield from _flattened(hint)
        else:
            yield parameters[name].replace(annotation=hint, kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _hints(function: Any) -> dict[str, Any]:
    """Return the types of the parameters."""
    hints = get_type_hints(function, include_extras=True)
    return {name: hints[name] for name in inspect.signature(function).parameters}


def _is_record(hint: Any) -> bool:
    return is_dataclass(hint)
