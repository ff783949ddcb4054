"""Where an answer begins and where it ends: two distributions over the tokens of a window, by the logits of start and end.

A window's distributions are over the tokens that are `compared` (1, else 0): those of the context and [CLS], which stands for no
answer. A window always has that one. No token is picked out, as in `tokens`: those that do not count have no probability.
"""

from jaxtyping import Float, Int

from .tensors import Tensor

NOTHING = -1e30  # the logarithm of a probability of 0, in `moved_logits`


def span_cross_entropy_loss(
    logits: Float[Tensor, "batch length 2"],
    labels: Int[Tensor, "batch 2"],
    compared: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Cross-entropy with the gold positions in nats: the mean of that of the start and that of the end, averaged over the windows
    (Devlin et al. 2019, arXiv:1810.04805, §4.2). `labels`: positions of compared tokens, of the answer's first and last one."""
    import torch.nn.functional as F

    return F.nll_loss(_log_probabilities(logits, compared), labels)


def span_kl_loss(
    student: Float[Tensor, "batch length 2"],
    teacher: Float[Tensor, "batch length 2"],
    compared: Int[Tensor, "batch length"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """T² · KL(teacher_T ‖ student_T) in nats, the mean of that of the start and that of the end, averaged over the windows.

    Zero exactly where the distributions agree (Hinton et al. 2015, arXiv:1503.02531, §2).
    """
    target = _log_probabilities(teacher / temperature, compared)
    prediction = _log_probabilities(student / temperature, compared)
    return temperature**2 * (target.exp() * (target - prediction)).sum(1).mean()


def span_soft_cross_entropy_loss(
    student: Float[Tensor, "batch length 2"],
    teacher: Float[Tensor, "batch length 2"],
    compared: Int[Tensor, "batch length"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """-Σ p_teacher · log p_student of both softmax(logits / T), in nats, the mean of that of the start and that of the end, averaged
    over the windows. No T² (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 10)."""
    target = _log_probabilities(teacher / temperature, compared).exp()
    prediction = _log_probabilities(student / temperature, compared)
    return -(target * prediction).sum(1).mean()


def moved_logits(
    logits: Float[Tensor, "batch length 2"], places: Int[Tensor, "batch length 2"], length: int
) -> Float[Tensor, "batch {length} 2"]:
    """Logarithms of the probabilities of start and end, moved to other tokens of the same text: `places` are the positions there of a
    token's start and of its end, below 0 where it has none. What is left of them is a distribution again; where no probability
    is moved to, a number so low that its exponential is 0, and not the lowest, which a temperature below 1 would divide to -∞."""
    import torch

    known = places >= 0
    probabilities = _log_probabilities_of(logits.double(), known).exp() * known
    moved = logits.new_zeros((len(logits), length, 2), dtype=torch.float64)
    moved = moved.scatter_add(1, places.clamp(min=0), probabilities)
    return torch.where(moved > 0, moved.log(), NOTHING).to(torch.float32)


def _log_probabilities(
    logits: Float[Tensor, "batch length 2"], compared: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch length 2"]:
    """Over the tokens, of start and of end. Of a token that is not compared the lowest number and not -∞, whose product with its
    probability, 0, is none."""
    return _log_probabilities_of(logits, compared[..., None] != 0)


def _log_probabilities_of(logits: Tensor, known: Tensor) -> Tensor:
    import torch

    return logits.masked_fill(~known, torch.finfo(logits.dtype).min).log_softmax(1)
