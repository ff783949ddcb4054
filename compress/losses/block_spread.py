from jaxtyping import Float
from torch import Tensor


def block_spread_loss(blocks: Float[Tensor, "block weights"]) -> Float[Tensor, ""]:
    """Σ (block - mean of the blocks)² / Σ block²: the share of the weights that sharing one mean would lose.

    From 0, when all blocks are the same, to 1. The denominator is held constant, so that the gradient pulls blocks
    to their mean and nothing else.
    """
    total = blocks.detach().square().sum()
    return (blocks - blocks.mean(0)).square().sum() / total.clamp(min=1e-12)
