"""Shared by losses: `Tensor` for shapes in signatures, without torch, because recipes are read and plans made before it is needed.

jaxtyping checks the shapes and dtypes of any object that has them.
"""

from typing import TYPE_CHECKING, Any

from jaxtyping import Bool, Float, Int

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any


def same_document(documents: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch length length"]:
    """Return which pairs of query and key are of one document of a packed sequence; attention is restricted to these.

    Padding of packed text is numbered as a document of its own.
    """
    return documents[:, :, None] == documents[:, None, :]


def mean_over_tokens(values: Float[Tensor, "batch length"], mask: Int[Tensor, "batch length"]) -> Float[Tensor, ""]:
    """Return the mean over the real tokens of the whole batch; 0 if there are none."""
    real = mask.to(values.dtype)
    return (values * real).sum() / real.sum().clamp(min=1)
