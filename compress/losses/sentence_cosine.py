"""Loss for sentence encoders, on vectors of texts; it replaces those on classes."""

from jaxtyping import Float

from .tensors import Tensor


def sentence_cosine_loss(
    student: Float[Tensor, "batch hidden"], teacher: Float[Tensor, "batch hidden"]
) -> Float[Tensor, ""]:
    """Return 1 - cos(student, teacher) of a text's two vectors, averaged over the batch: half the squared distance of vectors of length 1.

    Zero exactly if they have the same direction (after Reimers and Gurevych 2020, arXiv:2004.09813, §3, whose squared error also compares
    lengths; here all are 1).
    """
    import torch.nn.functional as F

    return (1 - F.cosine_similarity(student, teacher, dim=-1)).mean()
