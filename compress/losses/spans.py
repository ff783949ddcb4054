"""Losses for the start and end of an answer: two distributions over the tokens of a window, from start and end logits.

They are over the tokens that are `compared` (1, else 0): those of the context, and [CLS], which means no answer and is always there. As in
`tokens`, the others are not dropped but get probability 0.
"""

from jaxtyping import Float, Int

from .tensors import Tensor

NOTHING = -1e30  # the logarithm of a probability of 0, in `moved_logits`


def span_cross_entropy_loss(
    logits: Float[Tensor, "batch length 2"],
    labels: Int[Tensor, "batch 2"],
    compared: Int[Tensor, "batch length"],
) -> Float[Tensor, ""]:
    """Return the cross-entropy with the gold positions in nats, the mean of start and end, averaged over windows (Devlin et al. 2019,
    arXiv:1810.04805, §4.2). `labels`: positions of the answer's first and last token, both compared."""
    import torch.nn.functional as F

    return F.nll_loss(_log_probabilities(logits, compared), labels)


def span_kl_loss(
    student: Float[Tensor, "batch length 2"],
    teacher: Float[Tensor, "batch length 2"],
    compared: Int[Tensor, "batch length"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) in nats, the mean of start and end, averaged over windows.

    Zero exactly if the distributions agree (Hinton et al. 2015, arXiv:1503.02531, §2).
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
    """Return -Σ p_teacher · log p_student of both softmax(logits / T), in nats, the mean of start and end, averaged over windows. No T²
    (Jiao et al. 2020, arXiv:1909.10351, §3.1, eq. 10)."""
    target = _log_probabilities(teacher / temperature, compared).exp()
    prediction = _log_probabilities(student / temperature, compared)
    return -(target * prediction).sum(1).mean()


def moved_logits(
    logits: Float[Tensor, "batch length 2"], places: Int[Tensor, "batch length 2"], length: int
) -> Float[Tensor, "batch {length} 2"]:
    """Return log-probabilities of start and end, moved to another tokenization of the same text.

    `places`: for each token, the positions there of its start and end, below 0 if it has none. Probabilities of tokens with a position are
    renormalized. Where none arrives, the result is so low that its exponential is 0, but not the lowest number, which a temperature below 1
    would turn into -∞.
    """
    import torch

    known = places >= 0
    probabilities = _log_probabilities_of(logits.double(), known).exp() * known
    moved = logits.new_zeros((len(logits), length, 2), dtype=torch.float64)
    moved = moved.scatter_add(1, places.clamp(min=0), probabilities)
    return torch.where(moved > 0, moved.log(), NOTHING).to(torch.float32)


def _log_probabilities(
    logits: Float[Tensor, "batch length 2"], compared: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch length 2"]:
    """Return log-probabilities of start and end over the tokens. A token that is not compared gets a finite low logit, because -∞ times its
    probability, 0, is NaN."""
    return _log_probabilities_of(logits, compared[..., None] != 0)


def _log_probabilities_of(logits: Tensor, known: Tensor) -> Tensor:
    import torch

    return logits.masked_fill(~known, torch.finfo(logits.dtype).min).log_softmax(1)
