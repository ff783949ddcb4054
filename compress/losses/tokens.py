"""A label for each token: what losses on classes are where the logits are of every token.

No token is picked out: a GPU would have to be waited for to know how many there are. Those that do not count weigh nothing.
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
    """T² · KL(teacher_T ‖ student_T) in nats of a token's labels, averaged over the tokens that are `compared` (1, else 0).

    Zero exactly where the two distributions agree, and where nothing is compared (Hinton et al. 2015, arXiv:1503.02531, §2).
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
    """-Σ p_teacher · log p_student of both softmax(logits / T), in nats, averaged over the tokens that are `compared` (1, else 0).

    No T² (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 10). 0 where nothing is compared.
    """
    import torch.nn.functional as F

    target = F.softmax(teacher / temperature, dim=-1)
    prediction = F.log_softmax(student / temperature, dim=-1)
    return mean_over_tokens(-(target * prediction).sum(-1), compared)


def token_cross_entropy_loss(
    logits: Float[Tensor, "batch length labels"], labels: Int[Tensor, "batch length"]
) -> Float[Tensor, ""]:
    """Cross-entropy with the gold label in nats, averaged over the tokens that have one, not -100; 0 where none has."""
    import torch.nn.functional as F

    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)
