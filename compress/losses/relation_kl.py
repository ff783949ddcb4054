from math import gcd
from typing import Annotated, Literal

from jaxtyping import Bool, Float, Int
from pydantic import Field

from ..fields import Positive
from .features import attention
from .loss import Batch, Compared, Loss, LossForm, LossSpec, Pairs, Sizes
from .tensors import Tensor, mean_over_tokens, same_document


class RelationKl(LossSpec):
    """KL of the query-query, key-key and value-value relations of one layer (MiniLM v2)."""

    name: Literal["relation_kl"] = "relation_kl"
    relations: Annotated[tuple[Literal["queries", "keys", "values"], ...], Field(min_length=1)] = Field(
        default=("queries", "keys", "values"), description="what to relate to itself"
    )
    heads: Positive | None = Field(default=None, description="relation heads; default: the teacher's heads")
    teacher_layer: Positive | None = Field(default=None, description="counted from 1; default: the last")
    student_layer: Positive | None = Field(default=None, description="counted from 1; default: the last")


def relation_kl_loss(
    student: Float[Tensor, "batch student_heads length student_size"],
    teacher: Float[Tensor, "batch teacher_heads length teacher_size"],
    mask: Int[Tensor, "batch length"],
    documents: Int[Tensor, "batch length"] | None = None,
    *,
    heads: int,
) -> Float[Tensor, ""]:
    """Return KL(teacher ‖ student) of softmax(X Xᵀ / √d_r), in nats, averaged over relation heads and real queries.

    X are queries, keys or values. The vectors of all heads are concatenated and split again into `heads` relation heads of width d_r, so
    that neither head counts nor widths need to agree; `heads` divides both widths. Padding is neither key nor query, and a token of another
    document is no key (Wang et al. 2021, arXiv:2012.15828, §3.1).
    """
    import torch.nn.functional as F

    keys = mask[:, None, :] != 0
    if documents is not None:
        keys = keys & same_document(documents)
    target, prediction = (_log_relations(x, keys, heads) for x in (teacher, student))
    distance = F.kl_div(prediction, target, reduction="none", log_target=True).sum(-1).mean(1)
    return mean_over_tokens(distance, mask)


def _log_relations(
    vectors: Float[Tensor, "batch heads length size"], keys: Bool[Tensor, "batch _ length"], heads: int
) -> Float[Tensor, "batch relation_heads length length"]:
    import torch
    import torch.nn.functional as F

    batch, _, length, _ = vectors.shape
    joined = vectors.transpose(1, 2).reshape(batch, length, heads, -1).transpose(1, 2)
    relations = joined @ joined.transpose(-1, -2) * joined.shape[-1] ** -0.5
    # Not -inf: 0 · (inf - inf) of two padded keys would be NaN.
    masked = torch.finfo(relations.dtype).min / 2
    return F.log_softmax(relations.masked_fill(~keys[:, None], masked), dim=-1)


def _compares(spec: RelationKl, layers: Pairs) -> Compared:
    student, teacher = (-1 if layer is None else layer - 1 for layer in (spec.student_layer, spec.teacher_layer))
    return tuple((attention(kind, student), attention(kind, teacher)) for kind in spec.relations)


def _compute(spec: RelationKl, student: Tensor, teacher: Tensor, batch: Batch) -> Tensor:
    heads = spec.heads or teacher.shape[1]
    loss = relation_kl_loss(student, teacher, batch["attention_mask"], batch.get("documents"), heads=heads)
    return loss / len(spec.relations)


def _problem(spec: RelationKl, student: Sizes, teacher: Sizes) -> str | None:
    heads = spec.heads or teacher.heads
    for name, model, layer in (("student", student, spec.student_layer), ("teacher", teacher, spec.teacher_layer)):
        if model.hidden % heads:
            common = gcd(student.hidden, teacher.hidden)
            fitting = [count for count in range(1, 65) if common % count == 0]
            return (
                f"relation_kl: {heads} relation heads do not divide the {name}'s hidden size {model.hidden}; "
                f"set its `heads` to one of {fitting}"
            )
        if layer is not None and layer > model.layers:
            return f"relation_kl: {name}_layer is {layer} and the {name} has {model.layers} layers"
    return None


RELATION_KL = Loss(RelationKl, "states", _compares, LossForm(_compute, "tokens"), problem=_problem)
