from typing import Literal

from jaxtyping import Float, Int

from .features import hidden
from .loss import Batch, Compared, Loss, LossForm, LossSpec, Pairs
from .tensors import Tensor, mean_over_tokens


class HiddenMse(LossSpec):
    """Squared error of the hidden states of matched layers, through a learned projection where widths differ."""

    name: Literal["hidden_mse"] = "hidden_mse"


def hidden_mse_loss(
    student: Float[Tensor, "batch length hidden"],
    teacher: Float[Tensor, "batch length hidden"],
    mask: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Return the mean over real tokens and features of (student - teacher)².

    Padding (mask 0) never changes the value. A narrower student is projected before (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 8 and
    9).
    """
    return mean_over_tokens((student - teacher).square().mean(-1), mask)


def _compares(spec: HiddenMse, layers: Pairs) -> Compared:
    return tuple((hidden(student_layer), hidden(teacher_layer)) for student_layer, teacher_layer in layers)


def _compute(spec: HiddenMse, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return hidden_mse_loss(student, teacher, batch["attention_mask"])


HIDDEN_MSE = Loss(HiddenMse, "states", _compares, LossForm(_compute, "tokens"), projected=True)
