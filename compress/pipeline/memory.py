"""Memory of a training stage, estimated from its settings and the sizes of its models alone. Needs no torch.

Counted, in bytes: fp32 weights (4 a parameter), their gradients (4), AdamW's two moments (8), in bf16 the casts of the layers' weights (2),
what the forward of one micro-batch keeps for its backward, 30% of that for the backward itself, and, of a teacher that runs beside it, the
weights and the features that losses read. Every text is taken to be as long as the longest allowed.

The 30% are measured: for five sizes, in both precisions, the estimate is from 1% below to 8% above the growth of a process that trained on
a CPU. Not counted: torch itself and its libraries or CUDA context (about 0.5 GB), the allocator's overhead, and the data; nor what is saved
if the embedding table is cut to the words of the data. Activations are counted as a layer of BERT keeps them: the gated feed-forward part
of a ModernBERT, and the scores by position of a DeBERTa or an XLNet, keep more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..corpus.masking import SELECTED
from ..losses import LOSSES
from ..losses.features import ATTENTION, HIDDEN, LOGITS, TOKEN_SCORES, parse
from ..losses.masked_lm import MaskedTokens
from ..models.dimensions import Dimensions
from ..models.layer_maps import matched_layers
from ..spec.kinds import KINDS
from ..spec.stages import Losses, OnText, QuantizeAware
from ..tasks import largest_query
from .plan import Node, Plan
from .plan.teachers import ENSEMBLE
from .training.text import stage_losses, text_length

_FLOAT, _HALF = 4, 2  # bytes
_BACKWARD = 0.3  # extra memory of the backward, as a share of what the forward keeps
_SHORT = 128  # tokens up to which a CPU in bf16 keeps the attention weights


@dataclass(frozen=True)
class Memory:
    """Bytes that a training stage needs, by purpose, for forwards of `examples` texts of `length` tokens."""

    examples: int
    length: int
    weights: int
    gradients: int
    optimizer: int
    activations: int
    teacher: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations + self.teacher

    def document(self) -> dict[str, int]:
        return asdict(self) | {"total": self.total}


@dataclass(frozen=True)
class Forward:
    """How a training forward computes: in bf16 (`half`), on a `gpu`, with `dropout`, with fake int8 quantization (`rounded`)."""

    half: bool
    gpu: bool
    dropout: bool = True
    rounded: bool = False


def stage_memory(plan: Plan, node: Node[Any], *, gpu: bool) -> Memory:
    """Memory of the training stage `node` on one device of this kind."""
    spec, model, teacher = node.spec, plan.sizes_of(node), plan.sizes["teacher"]
    half = stage_precision(plan, node) == "bf16"
    how = Forward(half, gpu, dropout=spec.dropout != 0, rounded=isinstance(spec, QuantizeAware))
    examples, length = min(spec.micro_batch_size or spec.batch_size, spec.batch_size), longest(plan, node)
    if KINDS[plan.task.spec.kind].grouped and not isinstance(spec, OnText):  # whose passages go through one forward
        examples = max(examples, min(spec.batch_size, largest_query(plan.task.data.train.labels)))
    source = model if isinstance(spec, QuantizeAware) else teacher
    losses = stage_losses(node) or ([MaskedTokens()] if isinstance(spec, OnText) else [])
    has_teacher = any(LOSSES[loss.name].needs_teacher for loss in losses)
    matched = isinstance(spec, Losses)
    pairs = matched_layers(spec, student_layers=model.layers, teacher_layers=source.layers) if matched else ()
    features = sum(
        feature_bytes(LOSSES[loss.name].compares(loss, pairs), model, source, tokens=examples * length, length=length)
        for loss in losses
    )
    answered = gpu and ENSEMBLE in node.inputs  # several teachers have predicted already, and have left the GPU
    weights = _FLOAT * source.parameters if has_teacher and not answered else 0
    return training_memory(model, examples, length, how, features=features, teacher=weights)


def stage_precision(plan: Plan, node: Node[Any]) -> str:
    """Precision in which the stage trains: the run's, except for `quantize_aware`, which always trains in fp32."""
    return "fp32" if isinstance(node.spec, QuantizeAware) else plan.precision


def training_memory(
    model: Dimensions, examples: int, length: int, how: Forward, *, features: int = 0, teacher: int = 0
) -> Memory:
    """Memory of a model that trains on `examples` texts per forward; `features`, `teacher`: bytes that losses and teacher add."""
    return Memory(
        examples,
        length,
        weights=_FLOAT * model.parameters + (_HALF * model.layer_parameters if how.half else 0),
        gradients=_FLOAT * model.parameters,
        optimizer=2 * _FLOAT * model.parameters,
        activations=round((1 + _BACKWARD) * activation_bytes(model, examples, length, how)) + features,
        teacher=teacher,
    )


def longest(plan: Plan, node: Node[Any]) -> int:
    """Tokens of the longest text that the stage trains on."""
    if isinstance(node.spec, OnText):
        return text_length(plan, node)
    return node.spec.max_length or plan.task.spec.max_length


def activation_bytes(sizes: Dimensions, examples: int, length: int, how: Forward) -> int:
    """Bytes that a forward keeps for its backward, besides the weights.

    In fp32 a layer keeps for each token its input, queries, keys, values, the context, both sums before LayerNorm and the state between
    them: 8 · hidden numbers; and input and output of the activation function: 2 · intermediate. In bf16 the inputs and outputs of LayerNorm
    stay fp32. Dropout masks take fp32 or bf16 on a CPU, bytes on a GPU. The attention weights, heads · length for each token, are kept on a
    CPU alone: with dropout, or in bf16 on short texts. With fake quantization the inputs of matmuls are kept both as they came and
    quantized.
    """
    h, f, tokens = sizes.hidden, sizes.intermediate, examples * length
    each = 24 * h + 4 * f if how.half else 32 * h + 8 * f
    if how.dropout:
        each += 2 * h * (1 if how.gpu else _HALF if how.half else _FLOAT)
    each += 2 * _FLOAT * (3 * h + f) if how.rounded else 0
    each += _attention_bytes(sizes.heads, length, how)
    embeddings = 3 * sizes.embedding * _FLOAT
    return tokens * (sizes.layers * each + embeddings)


def _attention_bytes(heads: int, length: int, how: Forward) -> int:
    """Bytes for a token in a layer."""
    size, logsumexp = _HALF if how.half else _FLOAT, _FLOAT * heads
    if how.gpu:
        return logsumexp
    if how.dropout:
        return 3 * size * heads * length
    return size * heads * length if how.half and length <= _SHORT else logsumexp


def feature_bytes(compared: Any, student: Dimensions, teacher: Dimensions, *, tokens: int, length: int) -> int:
    """Bytes that a loss on the `compared` features keeps: both features in fp32, and the intermediate results."""
    return sum(_pair_bytes(feature, student, teacher, tokens, length) for feature, _ in compared)


def _pair_bytes(name: str, student: Dimensions, teacher: Dimensions, tokens: int, length: int) -> int:
    """Bytes for one compared feature. Hidden states: the teacher's and the difference; scores and relations: three tables of [query, key] a
    head; masked tokens: their probabilities over the vocabulary, and two gradients of that size."""
    if name == TOKEN_SCORES:
        return round(3 * _FLOAT * SELECTED * tokens * student.vocabulary)
    kind, _ = parse(name, student.layers) or (LOGITS, 0)
    if kind == HIDDEN:
        return 2 * _FLOAT * tokens * teacher.hidden
    if kind in ATTENTION:
        return 3 * _FLOAT * tokens * teacher.heads * length
    return 0
