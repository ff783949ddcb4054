"""Losses for examples with several labels, each an independent decision; they replace those on classes."""

from jaxtyping import Float, Num

from .tensors import Tensor


def bernoulli_kl_loss(
    student: Float[Tensor, "batch labels"], teacher: Float[Tensor, "batch labels"], *, temperature: float
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) in nats of each label's Bernoulli distribution sigmoid(logit / T), averaged over labels and the
    batch.

    Zero exactly when they agree; T² keeps the gradient's scale independent of T (Hinton et al. 2015, arXiv:1503.02531, §2).
    """
    import torch.nn.functional as F

    goal = teacher / temperature
    own = bernoulli_cross_entropy_loss(goal, goal.sigmoid())
    return temperature**2 * (F.binary_cross_entropy_with_logits(student / temperature, goal.sigmoid()) - own)


def bernoulli_cross_entropy_loss(
    logits: Float[Tensor, "batch labels"], shares: Num[Tensor, "batch labels"]
) -> Float[Tensor, ""]:
    """Return the binary cross-entropy of sigmoid(logit) with `shares`, from 0 to 1, in nats, averaged over labels and the batch."""
    import torch.nn.functional as F

    return F.binary_cross_entropy_with_logits(logits, shares.to(logits.dtype))
