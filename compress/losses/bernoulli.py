"""Each label a decision of its own: what losses on classes are where an example may have several labels."""

from jaxtyping import Float, Num

from .tensors import Tensor


def bernoulli_kl_loss(
    student: Float[Tensor, "batch labels"], teacher: Float[Tensor, "batch labels"], *, temperature: float
) -> Float[Tensor, ""]:
    """T² · KL(teacher_T ‖ student_T) in nats of the Bernoulli distribution sigmoid(logit / T) of each label, averaged over labels
    and the batch.

    Zero exactly when they agree; T² keeps the gradient's scale independent of T (Hinton et al. 2015, arXiv:1503.02531, §2).
    """
    import torch.nn.functional as F

    goal = teacher / temperature
    own = bernoulli_cross_entropy_loss(goal, goal.sigmoid())
    return temperature**2 * (F.binary_cross_entropy_with_logits(student / temperature, goal.sigmoid()) - own)


def bernoulli_cross_entropy_loss(
    logits: Float[Tensor, "batch labels"], shares: Num[Tensor, "batch labels"]
) -> Float[Tensor, ""]:
    """Binary cross-entropy of sigmoid(logit) with `shares`, from 0 to 1, in nats, averaged over labels and the batch."""
    import torch.nn.functional as F

    return F.binary_cross_entropy_with_logits(logits, shares.to(logits.dtype))
