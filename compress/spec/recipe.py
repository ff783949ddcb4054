"""The recipe: teacher -> stages -> model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)

from ..fields import Name, Positive, Spec
from .stage import misfit
from .stages import STAGE_SPECS

# Names that plans give to other nodes; a stage with such a name would be taken for them.
RESERVED = {"teacher", "student", "grown", "text"}.union(*(spec.reserved for spec in STAGE_SPECS.values()))


class StageBase(Spec):
    """A stage: exactly one of the fields is set, its kind. The fields are those of `STAGE_SPECS`."""

    @model_validator(mode="before")
    @classmethod
    def _empty_means_defaults(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: {}}
        if isinstance(value, dict):
            return {key: {} if body is None and key in STAGE_SPECS else body for key, body in value.items()}
        return value

    @model_validator(mode="after")
    def _exactly_one(self) -> StageBase:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"expected one stage, one of {', '.join(STAGE_SPECS)}")
        return self

    @model_serializer(mode="wrap")
    def _only_its_kind(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialize as a recipe writes it, so that a resolved recipe can be read and run again."""
        named = {"name": self.id} if self.id != self.kind else {}
        return {name: {**named, **body} for name, body in dump(self).items() if name == self.kind}

    @property
    def kind(self) -> str:
        return next(iter(self.model_fields_set))

    @property
    def spec(self) -> Any:
        return getattr(self, self.kind)

    @property
    def id(self) -> str:
        """The stage's name in `--set` and plans: its own name, else its kind."""
        return getattr(self.spec, "name", None) or self.kind

    @property
    def is_enabled(self) -> bool:
        return self.spec.is_enabled


if TYPE_CHECKING:
    Stage = StageBase
else:
    Stage = create_model(
        "Stage", __base__=StageBase, **{kind: (spec | None, None) for kind, spec in STAGE_SPECS.items()}
    )


def _ranks(kinds: Sequence[str]) -> list[int]:
    """Return each stage's position in the order of kinds; a distill stage after one that it recovers has the position of that one."""
    order, recovered, ranks = list(STAGE_SPECS), None, []
    for kind in kinds:
        recovered = order.index(kind) if STAGE_SPECS[kind].recovered else recovered
        ranks.append(recovered if kind == "distill" and recovered is not None else order.index(kind))
    return ranks


def _name_problems(stages: Sequence[StageBase]) -> list[Any]:
    """Return the problem of each stage with the same name as an earlier one, or with the name of another kind."""
    problems, firsts = [], dict[str, int]()
    for number, stage in enumerate(stages):
        where = (number, stage.kind) if stage.id == stage.kind else (number, stage.kind, "name")
        if stage.id in STAGE_SPECS and stage.id != stage.kind:
            problems.append(misfit(where, f"`{stage.id}` is a kind of stage; give this one a `name` of its own"))
        elif (first := firsts.setdefault(stage.id, number)) < number:
            text = (
                f"`{stage.id}` is also the name of stages[{first}]; give each of several stages of a kind a `name` of "
                "its own"
            )
            problems.append(misfit(where, text))
    return problems


class Recipe(Spec):
    """How a teacher becomes a small model."""

    name: Name = Field(description="lower case; the file is called NAME.yaml")
    title: str = Field(description="what reports call it")
    paper: str | None = Field(default=None, description="arXiv id or URL of the method")
    description: str = Field(default="", description="one line, for `compress list` and the README")
    teacher: str | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        "minilm-l6",
        description="a teacher card, unless `--teacher` names another; a list: the student learns from the mean of their outputs",
    )
    student: str | dict[Positive, str] | None = Field(
        default=None, description="a student card, or one per number of teacher layers"
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto",
        description="for training; `quantize_aware` always uses fp32. auto: bf16 on GPUs that support it and "
        "CPUs where it is faster, else fp32",
    )
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)] = Field(
        description="each a mapping with one key, the kind of stage; `- export:` uses all defaults"
    )

    @model_validator(mode="after")
    def _order(self) -> Recipe:
        kinds, ids = [stage.kind for stage in self.stages], [stage.id for stage in self.stages]
        order = list(STAGE_SPECS)
        once = [kind for kind in kinds if not STAGE_SPECS[kind].repeats]
        ranks, repeated = _ranks(kinds), " and ".join(kind for kind, spec in STAGE_SPECS.items() if spec.repeats)
        if ranks != sorted(ranks) or len(set(once)) != len(once):
            raise ValueError(
                f"stages are {', '.join(kinds)}; expected each at most once, except {repeated}, in the order "
                f"{', '.join(order)}"
            )
        if taken := sorted(set(ids) & RESERVED):
            raise ValueError(
                f"a stage is called {taken[0]}, which plans use for something else; give it another `name`"
            )
        if misnamed := _name_problems(self.stages):
            raise ValidationError.from_exception_data(type(self).__name__, misnamed)
        if lone := [kind for kind in kinds if STAGE_SPECS[kind].serves_distill and "distill" not in kinds]:
            raise ValueError(f"`{lone[0]}` is for a `distill` stage, and there is none")
        if self.student == {}:
            raise ValueError(
                "student: expected a student card, or one per number of teacher layers, found an empty mapping"
            )
        if (order.index("distill") in ranks) != (self.student is not None):
            raise ValueError("`student` and a `distill` stage belong together: one is missing")
        if "export" not in kinds:
            raise ValueError("an `export` stage is missing: every recipe ends in an ONNX model")
        return self

    @model_validator(mode="after")
    def _stages_go_together(self) -> Recipe:
        stages = [(stage.kind, stage.spec) for stage in self.stages]
        if problems := [problem for spec in STAGE_SPECS.values() for problem in spec.problems(stages)]:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self
