import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .documents import same_document


def relation_kl_loss(
    student: Float[Tensor, "batch student_heads length student_size"],
    teacher: Float[Tensor, "batch teacher_heads length teacher_size"],
    mask: Int[Tensor, "batch length"],
    documents: Int[Tensor, "batch length"] | None = None,
    *,
    heads: int,
) -> Float[Tensor, ""]:
    """KL(teacher ‖ student) of softmax(X Xᵀ / √d_r), in nats, averaged over relation heads and real queries.

    X are queries, keys or values. The vectors of all heads are joined and split anew into `heads` relation heads
    of width d_r, so that neither head counts nor widths need to agree; `heads` divides both widths. Padding is no
    key and no query, nor is another document's token a key (Wang et al. 2021, arXiv:2012.15828, §3.1).
    """
    keys = mask[:, None, :] != 0
    if documents is not None:
        keys = keys & same_document(documents)
    target, prediction = (_log_relations(x, keys, heads) for x in (teacher, student))
    distance = F.kl_div(prediction, target, reduction="none", log_target=True).sum(-1).mean(1)
    real = mask.to(distance.dtype)
    return (distance * real).sum() / real.sum().clamp(min=1)


def _log_relations(
    vectors: Float[Tensor, "batch heads length size"], keys: Bool[Tensor, "batch _ length"], heads: int
) -> Float[Tensor, "batch relation_heads length length"]:
    batch, _, length, _ = vectors.shape
    joined = vectors.transpose(1, 2).reshape(batch, length, heads, -1).transpose(1, 2)
    relations = joined @ joined.transpose(-1, -2) * joined.shape[-1] ** -0.5
    # Not -inf: 0 · (inf - inf) of two padded keys would be no number.
    hidden = torch.finfo(relations.dtype).min / 2
    return F.log_softmax(relations.masked_fill(~keys[:, None], hidden), dim=-1)
