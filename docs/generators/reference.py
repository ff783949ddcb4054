"""docs/reference.md: every field of recipes, cards and task files, from the specs that read them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from compress.models.cards import StudentCard, TeacherCard
from compress.quantize.methods import QUANTIZERS
from compress.spec.quantization import Quantize
from compress.spec.recipe import Recipe, Stage
from compress.spec.schema import is_model, members, strip_optional
from compress.spec.task import TaskSpec

from .field_types import default_of, type_of

Model = type[BaseModel]
HEADER = """# Reference: recipes, cards and task files

This page lists every field that a YAML file may have, with its type, default and meaning. It is generated from the code: run `make docs`
to write it again. [recipes.md](recipes.md) and [tasks.md](tasks.md) say how to use the fields.

A recipe, a card or a task file with an unknown field, or a value of another type, is refused before anything runs. The message
has the file, the line and what was expected.
"""


def reference_page() -> str:
    return "\n".join([HEADER, *(line for section in _sections() for line in section)])


def _sections() -> Iterator[list[str]]:
    stages = {kind: _model(field) for kind, field in Stage.model_fields.items()}
    losses = _losses(stages.values())
    shared = _shared(stages.values())
    links = {model: f"[{kind}](#stage-{kind})" for kind, model in stages.items()}
    links |= dict.fromkeys(losses.values(), "[loss](#losses)") | {Stage: "[stage](#stages)"}

    def page(title: str, model: Model) -> Iterator[list[str]]:
        nested = {_model(field): name for name, field in model.model_fields.items() if _model(field) not in links}
        mine = {mapping: f"{title}: {name}" for mapping, name in nested.items() if mapping is not None}
        links.update({mapping: f"[mapping](#{anchor(heading)})" for mapping, heading in mine.items()})
        yield [f"## {title}", "", *_described(model), *_table(model.model_fields, links)]
        for mapping, heading in mine.items():
            yield from (["#" + section[0], *section[1:]] for section in page(heading, mapping))

    yield from page("Recipe", Recipe)
    yield ["## Stages", "", *_stage_list(stages)]
    for model in shared:
        yield [f"### Shared fields: {model.__name__}", "", *_described(model), *_table(_own(model), links)]
    for kind, model in stages.items():
        yield [f"### Stage: {kind}", "", *_described(model), *_also(model, shared), *_table(_own(model), links)]
        if model is Quantize:
            yield ["| `method` | what it does |", "|-|-|", *_methods(), ""]
    yield ["## Losses", "", *_loss_list(losses), *_loss_fields(losses, links)]
    for title, model in (("Teacher card", TeacherCard), ("Student card", StudentCard), ("Task file", TaskSpec)):
        yield from page(title, model)


def _model(field: FieldInfo) -> Any:
    """The mapping that a field holds, or None."""
    annotation = strip_optional(field.annotation)
    return annotation if is_model(annotation) else None


def _losses(stages: Any) -> dict[str, Model]:
    """By name, in the order of the specs: whatever a stage's `losses` may hold."""
    lists = [stage.model_fields["losses"].annotation for stage in stages if "losses" in stage.model_fields]
    choices = sorted((members(get_args(annotation)[0]) for annotation in lists), key=len, reverse=True)
    return {choice.model_fields["name"].default: choice for several in choices for choice in several}


def _shared(stages: Any) -> list[Model]:
    """The classes with fields that several stages have in common, the most general first."""
    bases = [base for stage in stages for base in stage.__mro__[1:] if is_model(base) and _own(base)]
    return [base for base in dict.fromkeys(bases[::-1]) if bases.count(base) > 1]


def _own(model: Model) -> dict[str, FieldInfo]:
    """The fields that a class adds or changes."""
    return {name: model.model_fields[name] for name in inspect.get_annotations(model) if name in model.model_fields}


def _described(model: Model) -> list[str]:
    return [" ".join(inspect.getdoc(model).split()), ""] if model.__doc__ else []  # type: ignore[union-attr]


def _also(model: Model, shared: list[Model]) -> list[str]:
    bases = [base for base in shared if base in model.__mro__]
    names = [f"[{base.__name__}](#{anchor(f'Shared fields: {base.__name__}')})" for base in bases]
    return [f"It also has the fields of {', '.join(names)}.", ""] if names else []


def _methods() -> Iterator[str]:
    return (f"| `{name}` | {quantizer.summary} |" for name, quantizer in QUANTIZERS.items())


def _stage_list(stages: dict[str, Model]) -> Iterator[str]:
    yield "A recipe has its stages in this order."
    yield ""
    yield "| stage | what it does |"
    yield "|-|-|"
    for kind, model in stages.items():
        yield f"| [`{kind}`](#{anchor(f'Stage: {kind}')}) | {_described(model)[0]} |"
    yield ""


def _loss_list(losses: dict[str, Model]) -> Iterator[str]:
    yield "Every loss has a `weight`: a number ≥ 0, 1 by default. The stage minimises the sum of each loss times its weight."
    yield ""
    yield "| loss | value | more fields |"
    yield "|-|-|-|"
    for name, model in losses.items():
        more = [f"`{field}`" for field in model.model_fields if field not in ("name", "weight")]
        yield f"| `{name}` | {_described(model)[0]} | {', '.join(more)} |"
    yield ""


def _loss_fields(losses: dict[str, Model], links: dict[Any, str]) -> Iterator[str]:
    yield "| loss | field | type | default | meaning |"
    yield "|-|-|-|-|-|"
    for name, model in losses.items():
        for field, info in model.model_fields.items():
            if field not in ("name", "weight"):
                yield f"| `{name}` {_row(field, info, links)}"
    yield ""


def _table(fields: dict[str, FieldInfo], links: dict[Any, str]) -> Iterator[str]:
    if fields:
        yield "| field | type | default | meaning |"
        yield "|-|-|-|-|"
        yield from (_row(name, field, links) for name, field in fields.items())
        yield ""


def _row(name: str, field: FieldInfo, links: dict[Any, str]) -> str:
    return f"| `{name}` | {type_of(field, links.__getitem__)} | {default_of(field)} | {field.description or ''} |"


def anchor(heading: str) -> str:
    """As GitHub names a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
