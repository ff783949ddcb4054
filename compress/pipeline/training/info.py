"""What stages that train say of what they made."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Speed(TypedDict):
    """`utilisation`: share of the bf16 peak of a GPU whose peak is known, 0 to 1."""

    tokens_per_second: float | None
    model_flops_per_second: float | None
    utilisation: NotRequired[float]


class HeldOut(TypedDict):
    """Of text that was not trained on; `loss` in nats a masked token."""

    loss: float
    perplexity: float
    sequences: int
    tokens: int


class Start(TypedDict, total=False):
    """Of a start that was computed. By conversion: relative errors of the tables, and the cosine of the hidden states, layer by
    layer, to the teacher's. By counts: words of the text, and pairs of them."""

    table_errors: dict[str, float]
    hidden_cosine: list[float]
    words: int
    pairs: int


class Threshold(TypedDict):
    """Of a model for whose answers one was chosen. `threshold`: where labels are decided one by one, the probability above which any was
    best given, before the model's outputs were moved so that it is one half; `thresholds`: the same label by label, where each has its
    own. `null_score_diff_threshold`: where questions may have no
    answer, by how much the score of none must be above that of the best span."""

    threshold: NotRequired[float]
    thresholds: NotRequired[dict[str, float]]
    null_score_diff_threshold: NotRequired[float]


class TrainingInfo(Speed, Threshold):
    """Of any training. Scores are points on the tuning split, None and empty where nothing scores the model. `layer_mix`:
    of which shares of its embeddings' and each layer's states a model makes vectors that has learnt it. `earlier_parts`: threads,
    processes, device and code of what was trained before an interruption, where they were others; an empty one where they are unknown."""

    steps: int
    best_step: int | None
    tuning_score: float | None
    tuning_history: list[dict[str, float]]
    precision: str
    threads: int
    processes: NotRequired[int]
    device: str
    fsdp: NotRequired[bool]
    earlier_parts: NotRequired[list[dict[str, Any]]]
    examples: NotRequired[int]
    sequences: NotRequired[int]
    sequence_length: NotRequired[int]
    start: NotRequired[Start]
    held_out: NotRequired[HeldOut]
    pooler_trained: NotRequired[bool]
    fidelity: NotRequired[dict[str, Any]]
    layer_mix: NotRequired[list[float]]
