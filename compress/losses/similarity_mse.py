from typing import Literal

from jaxtyping import Float

from .features import LOGITS
from .loss import Batch, Loss, LossForm, LossSpec, fixed_features
from .tensors import Tensor


class SimilarityMse(LossSpec):
    """For sentence vectors: squared difference of the two models' cosines between a batch's texts that share a forward pass; the vectors'
    widths may differ."""

    name: Literal["similarity_mse"] = "similarity_mse"


def similarity_mse_loss(
    student: Float[Tensor, "batch student_width"], teacher: Float[Tensor, "batch teacher_width"]
) -> Float[Tensor, ""]:
    """Return the mean over all pairs of the batch's texts of (cos_student - cos_teacher)², including a text with itself, where both are 1.

    Zero exactly if all cosines agree (Tung and Mori 2019, arXiv:1907.09682, §3, who normalise rows instead of vectors). The texts are those
    of one forward: with several processes or micro-batches, texts in different forwards are never compared, and a single text gives 0.
    """
    import torch.nn.functional as F

    student_vectors, teacher_vectors = F.normalize(student, dim=-1), F.normalize(teacher, dim=-1)
    return (student_vectors @ student_vectors.T - teacher_vectors @ teacher_vectors.T).square().mean()


def _compute(spec: SimilarityMse, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    return similarity_mse_loss(student, teacher)


SIMILARITY_MSE = Loss(
    SimilarityMse,
    "logits",
    fixed_features(LOGITS, LOGITS),
    LossForm(_compute),
    kinds=("embedding",),
    compares_texts=True,
)
