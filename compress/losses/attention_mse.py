from typing import Literal

from jaxtyping import Float, Int

from .features import attention
from .loss import Batch, Compared, Loss, LossForm, LossSpec, Pairs, Sizes
from .tensors import Tensor, same_document


class AttentionMse(LossSpec):
    """Squared error of matched layers' attention scores, before softmax; needs equal head counts."""

    name: Literal["attention_mse"] = "attention_mse"


def attention_mse_loss(
    student: Float[Tensor, "batch heads length length"],
    teacher: Float[Tensor, "batch heads length length"],
    mask: Int[Tensor, "batch length"],
    documents: Int[Tensor, "batch length"] | None = None,
) -> Float[Tensor, ""]:
    """Return (student - teacher)² of attention scores before softmax: mean over heads and real pairs of an example, then over the batch.

    A pair of query and key is real if both tokens are, and belong to the same document of a packed sequence; others never change the value
    (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 7).
    """
    square = (student - teacher).square().mean(1)
    real = mask.to(square.dtype)
    pairs = real[:, :, None] * real[:, None, :]
    if documents is not None:
        pairs = pairs * same_document(documents)
    return ((pairs * square).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)).mean()


def _compares(spec: AttentionMse, layers: Pairs) -> Compared:
    return tuple((attention("scores", student - 1), attention("scores", teacher - 1)) for student, teacher in layers)


def _compute(spec: AttentionMse, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return attention_mse_loss(student, teacher, batch["attention_mask"], batch.get("documents"))


def _problem(spec: AttentionMse, student: Sizes, teacher: Sizes) -> str | None:
    if student.heads == teacher.heads:
        return None
    return (
        f"attention_mse needs equal heads: the student has {student.heads}, the teacher {teacher.heads}; "
        "choose another student card, or use relation_kl, which needs neither equal heads nor equal widths"
    )


ATTENTION_MSE = Loss(AttentionMse, "states", _compares, LossForm(_compute), problem=_problem)
