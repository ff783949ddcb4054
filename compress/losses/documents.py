from jaxtyping import Bool, Int

from .tensors import Tensor


def same_document(documents: Int[Tensor, "batch length"]) -> Bool[Tensor, "batch length length"]:
    """Which pairs of query and key are of one document of their sequence: the only ones that packed text attends with.

    Where packed text has padding, it is numbered as a document of its own.
    """
    return documents[:, :, None] == documents[:, None, :]
