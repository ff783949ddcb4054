"""Squared error for regression; it replaces the losses on classes."""

from jaxtyping import Float

from .tensors import Tensor


def squared_error_loss(score: Float[Tensor, "batch 1"], target: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Return the mean squared error of a regression score, in squared units of the label."""
    return (score[:, 0] - target).square().mean()
