"""Losses for a label per token; for logits of every token they replace those on classes.

Tokens that do not count get weight 0 instead of being dropped: dropping them would wait for the GPU to report how many there are.
"""

from jaxtyping import Float, Int

from .masked_lm import IGNORED
from .tensors import Tensor, mean_over_tokens


def token_kl_loss(
    student: Float[Tensor, "batch length labels"],
    teacher: Float[Tensor, "batch length labels"],
    compared: Int[Tensor, "batch length"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) in nats of a token's labels, averaged over the tokens that are `compared` (1, else 0).

    Zero exactly if the two distributions agree, or nothing is compared (Hinton et al. 2015, arXiv:1503.02531, §2).
    """
    import torch.nn.functional as F

    target = F.log_softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    divergence = F.kl_div(prediction, target, reduction="none", log_target=True).sum(-1)
    return temperature**2 * mean_over_tokens(divergence, compared)


def token_soft_cross_entropy_loss(
    student: Float[Tensor, "batch length labels"],
    teacher: Float[Tensor, "batch length labels"],
    compared: Int[Tensor, "batch length"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return -Σ p_teacher · log p_student of both softmax(logits / T), in nats, averaged over the tokens that are `compared` (1, else 0).

    No T² (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 10). 0 if nothing is compared.
    """
    import torch.nn.functional as F

    target = F.softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return mean_over_tokens(-(target * prediction).sum(-1), compared)


def token_cross_entropy_loss(
    logits: Float[Tensor, "batch length labels"], labels: Int[Tensor, "batch length"]
) -> Float[Tensor, ""]:
    """Return the cross-entropy with the gold label in nats, averaged over the tokens that have one, not -100; 0 if none has."""
    import torch.nn.functional as F

    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)
