"""What losses share: `Tensor` for the shapes in signatures, without torch: recipes are read, and plans made, before it is needed.

jaxtyping checks shapes and types of numbers of whatever has them.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any


def same_document(documents: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch length length"]:
    """Which pairs of query and key are of one document of their sequence: the only ones that packed text attends with.

    Where packed text has padding, it is numbered as a document of its own.
    """
    return documents[:, :, None] == documents[:, None, :]


def mean_over_tokens(values: Float[Tensor, "batch length"], mask: Int[Tensor, "batch length"]) -> Float[Tensor, ""]:
    """Over the real tokens of the whole batch; 0 where there are none."""
    real = mask.to(values.dtype)
    return (values * real).sum() / real.sum().clamp(min=1)
