"""Records of the teachers: the scores of several and of their mean, and which fine-tuning was chosen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..provenance import TeacherOrigin
from .record import Points, Rate, Record, Size


class _Taught(Record):
    tuning_score: Points = Field(description="headline on the tuning split")
    scores: dict[str, dict[str, Points]] = Field(description="reported split -> metric -> points")
    headline: Points = Field(description="on the first reported split")
    predictions: str = Field(description="array name in predictions.npz: logits [example, class], in file order")


class TeacherScore(_Taught):
    """One of several teachers."""

    name: str = Field(description="of its card; ` (teacher-2)` behind it where one before has that name")
    temperature: Rate | None = Field(
        default=None, description="that its logits were divided by, fitted on the tuning split; regression: none"
    )
    licence: str = Field(description="of its weights, from its card; `unknown` where that says none")
    hub: str | None = Field(default=None, description="hub id of its checkpoint")
    origin: TeacherOrigin


class EnsembleScore(_Taught):
    """What the student learnt from, if there are several teachers: the mean of their calibrated probabilities."""

    teachers: Annotated[tuple[TeacherScore, ...], Field(min_length=2)] = Field(
        description="the first is `teacher`, through ONNX Runtime; the others through PyTorch"
    )


class Choice(Record):
    """The fine-tuning of a teacher that the tuning split chose among several."""

    teacher: str = Field(description="as in `teacher` or `ensemble`")
    settings: dict[str, Rate] = Field(
        description="those in which the candidates differ, e.g. `learning_rate`, of the one chosen"
    )
    tuning_score: Points
    candidates: Size = Field(description="trainings to choose among")
    ties: tuple[dict[str, Rate], ...] = Field(
        (), description="settings of the others with that very score: of equals the first one written is taken"
    )
