"""Losses that compare the passages of one query; for ranked groups of examples they replace those on classes.

A batch holds whole groups, numbered by `groups`. Pairs of examples from different groups get weight 0 instead of being dropped: dropping
them would wait for the GPU to report how many there are.
"""

from jaxtyping import Float, Int

from .tensors import Tensor


def listwise_kl_loss(
    student: Float[Tensor, " batch"],
    teacher: Float[Tensor, " batch"],
    groups: Int[Tensor, " batch"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return T² · KL(teacher_T ‖ student_T) in nats of softmax(score / T) over the examples of a group, averaged over groups.

    Zero exactly if the two models' scores differ by a constant in each group (Hinton et al. 2015, arXiv:1503.02531, §2, on lists).
    """
    target, prediction = (_log_shares(scores / temperature, groups) for scores in (teacher, student))
    divergence = (target.exp() * (target - prediction)).sum()
    return temperature**2 * divergence / _first_of_group(groups).sum()


def listwise_soft_cross_entropy_loss(
    student: Float[Tensor, " batch"],
    teacher: Float[Tensor, " batch"],
    groups: Int[Tensor, " batch"],
    *,
    temperature: float,
) -> Float[Tensor, ""]:
    """Return -Σ p_teacher · log p_student of softmax(score / T) over the examples of a group, in nats, averaged over groups. No T²."""
    target, prediction = (_log_shares(scores / temperature, groups) for scores in (teacher, student))
    return -(target.exp() * prediction).sum() / _first_of_group(groups).sum()


def listwise_cross_entropy_loss(
    scores: Float[Tensor, " batch"], relevance: Float[Tensor, " batch"], groups: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Return -Σ p · log softmax(scores) over the examples of a group, in nats, averaged over groups with a relevant example; 0 if there are
    none. p are the group's relevances divided by their sum.

    ListNet's top-one cross-entropy (Cao et al. 2007, ICML, eq. 3), with normalized relevances as the target; softmax cross-entropy if one
    passage of a query is relevant.
    """
    total = (_same_group(groups).to(relevance.dtype) * relevance).sum(-1)
    share = relevance / total.where(total > 0, total.new_ones(()))
    counted = (_first_of_group(groups) & (total > 0)).sum()
    return -(share * _log_shares(scores, groups)).sum() / counted.clamp(min=1)


def margin_mse_loss(
    student: Float[Tensor, " batch"],
    teacher: Float[Tensor, " batch"],
    relevance: Float[Tensor, " batch"],
    groups: Int[Tensor, " batch"],
) -> Float[Tensor, ""]:
    """Return ((s_i - s_j) - (t_i - t_j))², averaged over the pairs of a group in which i is more relevant than j; 0 if there are none.

    Hofstätter et al. 2020, arXiv:2010.02666, §3.2, eq. 4, with all such pairs of a query instead of one random pair.
    """
    ahead = (_same_group(groups) & (relevance[:, None] > relevance[None, :])).to(student.dtype)
    differences = student - teacher
    return ((differences[:, None] - differences[None, :]).square() * ahead).sum() / ahead.sum().clamp(min=1)


def _same_group(groups: Tensor) -> Tensor:
    """Return whether two examples are of one group, bool [batch, batch]."""
    return groups[:, None] == groups[None, :]


def _log_shares(scores: Tensor, groups: Tensor) -> Tensor:
    """Return the log softmax of each score among those of its group, [batch]."""
    others = scores[None, :].masked_fill(~_same_group(groups), float("-inf"))
    return scores - others.logsumexp(-1)


def _first_of_group(groups: Tensor) -> Tensor:
    """Return whether each example is the first of its group, bool [batch]."""
    return ~_same_group(groups).tril(-1).any(-1)
