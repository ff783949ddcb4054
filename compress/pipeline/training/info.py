"""The info that training stages return."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Speed(TypedDict):
    """`utilisation`: share of the bf16 peak of a GPU whose peak is known, 0 to 1."""

    tokens_per_second: float | None
    model_flops_per_second: float | None
    utilisation: NotRequired[float]


class HeldOut(TypedDict):
    """Loss on text that was not trained on; `loss` in nats a masked token."""

    loss: float
    perplexity: float
    sequences: int
    tokens: int


class Start(TypedDict, total=False):
    """A computed initialization. By conversion: relative errors of the tables, and the cosine of the hidden states, layer by layer, to the
    teacher's. By counts: words of the text, and pairs of them."""

    table_errors: dict[str, float]
    hidden_cosine: list[float]
    words: int
    pairs: int


class Threshold(TypedDict):
    """A decision threshold chosen for a model. `threshold`: for labels decided one by one, the best probability above which to give a
    label, before the model's outputs were shifted so that it is one half; `thresholds`: the same by label, if each has its own.
    `null_score_diff_threshold`: if questions may have no answer, the margin by which the score of no answer must exceed that of the best
    span."""

    threshold: NotRequired[float]
    thresholds: NotRequired[dict[str, float]]
    null_score_diff_threshold: NotRequired[float]


class TrainingInfo(Speed, Threshold):
    """Info of any training. Scores are points on the tuning split, None and empty if nothing scores the model. `layer_mix`: the learnt
    shares of the embeddings' and each layer's states in the model's vectors. `earlier_parts`: threads, processes, device and code before an
    interruption, if they differed; an empty one if they are unknown."""

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
