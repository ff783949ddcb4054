"""Records of the teachers: the scores of several and of their mean, and which fine-tuning was chosen."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..provenance import TeacherOrigin
from .record import Points, Rate, Record, Size


class _Taught(Record):
    tuning_score: Points = Field(description="headline score on the tuning split")
    scores: dict[str, dict[str, Points]] = Field(description="reported split -> metric -> points")
    headline: Points = Field(description="headline score on the first reported split")
    predictions: str = Field(description="array name in predictions.npz: logits [example, class], in file order")


class TeacherScore(_Taught):
    """One of several teachers."""

    name: str = Field(description="name of its card; ` (teacher-2)` is appended if an earlier one has that name")
    temperature: Rate | None = Field(
        default=None, description="its logits were divided by this; fitted on the tuning split; null for regression"
    )
    licence: str = Field(description="licence of its weights, from its card; `unknown` if the card states none")
    hub: str | None = Field(default=None, description="hub id of its checkpoint")
    origin: TeacherOrigin


class EnsembleScore(_Taught):
    """What the student learnt from, if there are several teachers: the mean of their calibrated probabilities."""

    teachers: Annotated[tuple[TeacherScore, ...], Field(min_length=2)] = Field(
        description="the first is `teacher`, run with ONNX Runtime; the others with PyTorch"
    )


class Choice(Record):
    """The fine-tuning of a teacher that the tuning split chose among several."""

    teacher: str = Field(description="name as in `teacher` or `ensemble`")
    settings: dict[str, Rate] = Field(
        description="settings of the chosen candidate in which the candidates differ, e.g. `learning_rate`"
    )
    tuning_score: Points
    candidates: Size = Field(description="number of trainings to choose among")
    ties: tuple[dict[str, Rate], ...] = Field(
        (), description="settings of the other candidates with the same score: the first one listed is chosen"
    )
