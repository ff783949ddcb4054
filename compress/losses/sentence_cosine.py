"""Vectors of texts: what losses on classes are for sentence encoders."""

from jaxtyping import Float

from .tensors import Tensor


def sentence_cosine_loss(
    student: Float[Tensor, "batch hidden"], teacher: Float[Tensor, "batch hidden"]
) -> Float[Tensor, ""]:
    """1 - cos(student, teacher) of a text's two vectors, averaged over the batch: half the squared distance of vectors of length 1.

    Zero exactly where they point the same way (after Reimers and Gurevych 2020, arXiv:2004.09813, §3, whose squared error also
    holds lengths together; here all are 1)."""
    import torch.nn.functional as F

    return (1 - F.cosine_similarity(student, teacher, dim=-1)).mean()
