"""The recipe: teacher -> stages -> model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
    model_validator,
)

from .base import Name, Positive, Spec
from .stages import STAGE_SPECS, problem

# What plans call the other nodes; a stage of that name would be taken for them.
RESERVED = {"teacher", "pretrained", "grown", "student", "encoder", "augmented", "masked-lm", "text"}


class StageBase(Spec):
    """Exactly one of the fields is set: the stage's kind. The fields are those of `STAGE_SPECS`."""

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
        """As a recipe writes it, so that a resolved recipe can be read and run again."""
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
        """What `--set` and plans call it: its own name, else its kind."""
        return getattr(self.spec, "name", None) or self.kind


if TYPE_CHECKING:
    Stage = StageBase
else:
    Stage = create_model(
        "Stage", __base__=StageBase, **{kind: (spec | None, None) for kind, spec in STAGE_SPECS.items()}
    )


class Recipe(Spec):
    """How a teacher becomes a small model. `student` is a card's name, or a card per teacher depth."""

    name: Name
    title: str
    paper: str | None = Field(default=None, description="arXiv id or URL of the method")
    description: str = ""
    teacher: str = Field("minilm-l6", description="a teacher card, unless the command names another")
    student: str | dict[Positive, str] | None = Field(
        default=None, description="a student card, or one per number of teacher layers"
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto",
        description="of training but quantize_aware, which is fp32; auto: bf16 on CPUs where it is faster, else fp32; on a GPU, say bf16",
    )
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _order(self) -> Recipe:
        kinds, ids = [stage.kind for stage in self.stages], [stage.id for stage in self.stages]
        order = list(STAGE_SPECS)
        once = [kind for kind in kinds if kind != "distill"]
        if kinds != sorted(kinds, key=order.index) or len(set(once)) != len(once):
            raise ValueError(f"stages are {kinds}; expected each at most once, distill apart, in the order {order}")
        if taken := sorted(set(ids) & RESERVED):
            raise ValueError(
                f"a stage is called {taken[0]}, which plans use for something else; give it another `name`"
            )
        if len(set(ids)) != len(ids) or any(
            name in order for stage, name in zip(self.stages, ids, strict=True) if name != stage.kind
        ):
            raise ValueError(f"stages are called {ids}; give each distill stage a `name` of its own")
        if lone := [kind for kind in ("masked_lm", "general", "augment") if kind in kinds and "distill" not in kinds]:
            raise ValueError(f"`{lone[0]}` is for a `distill` stage, and there is none")
        if ("distill" in kinds) != (self.student is not None):
            raise ValueError("`student` and a `distill` stage come together: one is missing")
        if "export" not in kinds:
            raise ValueError("an `export` stage is missing: every recipe ends in an ONNX model")
        return self

    @model_validator(mode="after")
    def _ranges_have_a_use(self) -> Recipe:
        """`quantize_aware` and `method: qat` come together, and the one trains what the other's graph computes."""
        found = {stage.kind: (number, stage.spec) for number, stage in enumerate(self.stages)}
        aware, quantize, export = (found.get(kind, (0, None)) for kind in ("quantize_aware", "quantize", "export"))
        trained = aware[1] is not None and aware[1].enabled
        asked = quantize[1] is not None and quantize[1].method == "qat"
        if asked and not trained:
            where = ("stages", quantize[0], "quantize", "method")
            text = (
                "qat takes the ranges of a `quantize_aware` stage, and there is none; add one, or choose another method"
            )
        elif trained and not asked:
            where = ("stages", aware[0], "quantize_aware")
            text = "nothing takes its ranges; say `quantize: {method: qat}`, or leave the stage out (enabled: false)"
        elif asked and export[1] is not None and export[1].graph != "fast":
            where = ("stages", export[0], "export", "graph")
            text = "`quantize_aware` trains what the fast graph computes; leave `graph: plain` out, or the training"
        else:
            return self
        error = problem(where, "value_error", None, {"error": ValueError(text)})
        raise ValidationError.from_exception_data(type(self).__name__, [error])

    @model_validator(mode="after")
    def _masked_lm_has_a_use(self) -> Recipe:
        text = "has no use where `source` is `embedding`; leave one of the two out"
        problems = [
            problem(("stages", number, "augment", *where), "value_error", None, {"error": ValueError(text)})
            for number, stage in enumerate(self.stages)
            if stage.kind == "augment"
            for where in stage.spec.idle_masked_lm
        ]
        if problems:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self
