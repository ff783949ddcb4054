"""`Tensor` for the shapes in signatures, without torch: recipes are read, and plans made, before it is needed.

jaxtyping checks shapes and types of numbers of whatever has them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
else:
    Tensor = Any

__all__ = ["Tensor"]
