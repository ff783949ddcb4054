"""The kinds of tasks that bundles answer: one module and one line here for each."""

from __future__ import annotations

from .choice import CHOICE, Chosen
from .classification import CLASSIFICATION
from .embedding import EMBEDDING, VectorAnswer
from .kind import AnswerKind, LabelsPrediction, Names, Prediction, RelevancePrediction
from .multilabel import MULTILABEL
from .ranking import RANKING
from .regression import REGRESSION
from .span import SPAN, Answer
from .tagging import TAGGING, Entity

# A folder with nothing but config.json is of the first kind that fits.
ANSWER_KINDS: dict[str, AnswerKind] = {
    "ranking": RANKING,
    "choice": CHOICE,
    "regression": REGRESSION,
    "multilabel": MULTILABEL,
    "tagging": TAGGING,
    "span": SPAN,
    "embedding": EMBEDDING,
    "classification": CLASSIFICATION,
}

__all__ = [
    "ANSWER_KINDS",
    "Answer",
    "AnswerKind",
    "Chosen",
    "Entity",
    "LabelsPrediction",
    "Prediction",
    "RelevancePrediction",
    "VectorAnswer",
    "output_names",
]


def output_names(kind: str, labels: Names) -> Names:
    """Names of the outputs of a model for a task of `kind` with these label names, in order."""
    return ANSWER_KINDS[kind].output_names(labels)
