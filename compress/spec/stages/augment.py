"""The spec of `augment`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...fields import Positive
from ..stage import Stages, misfit
from .training import PerTask


class Augment(PerTask):
    """Copy the training examples with words replaced, for the `distill` stages that follow."""

    serves_distill: ClassVar[bool] = True
    reserved: ClassVar[tuple[str, ...]] = ("augmented",)
    files: ClassVar[Mapping[str, str]] = {"glove": "glove", "masked_lm": "masked_lm"}

    copies: Positive = Field(default=20, description="copies of each example (N_a in the paper)")
    replace_probability: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.4, description="probability that a word of a copy is replaced (p_t)"
    )
    candidates: Positive = Field(default=15, description="candidate words to draw a replacement from (K)")
    source: Literal["auto", "masked_lm", "embedding"] = Field(
        default="auto",
        description="where candidates for single-piece words come from. auto: the teacher's own masked-LM head or that of "
        "the `masked_lm` stage, else the embedding table",
    )
    masked_lm: str | None = Field(
        default=None, description="a teacher card whose masked-LM head proposes the candidates"
    )
    glove: str | None = Field(
        default=None,
        description="a GloVe text file for the neighbours of other words; default: the teacher's embedding table",
    )
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")

    @property
    def idle_masked_lm(self) -> list[tuple[str, ...]]:
        """Paths of the `masked_lm` that `source: embedding` keeps every task from using.

        Not a validator: one of several tasks may have `source: embedding`, while the rest use `masked_lm`.
        """
        own = {task: {"source": self.source} | fields for task, fields in self.per_task.items()}
        idle = [
            ("per_task", task, "masked_lm")
            for task, fields in own.items()
            if fields.get("masked_lm") is not None and fields["source"] == "embedding"
        ]
        everywhere = {self.source, *(fields["source"] for fields in own.values())} == {"embedding"}
        return [*idle, *([("masked_lm",)] if self.masked_lm is not None and everywhere else [])]

    @classmethod
    def problems(cls, stages: Stages) -> Iterator[Any]:
        for number, (kind, spec) in enumerate(stages):
            for where in spec.idle_masked_lm if kind == "augment" else ():
                yield misfit(
                    (number, "augment", *where),
                    "has no effect if `source` is `embedding`; leave one of the two out",
                )
