"""token_vectors: the table that a static student starts from, made from the fine-tuned teacher and the task's training texts."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

import numpy as np

from ...fields import Positive, PositiveNumber, Spec
from ...files.arrays import zeros_file
from ...models.checkpoints.folders import load_classifier, load_tokenizer
from ...models.student_forms import Static
from ..plan import TRAINING, Draft, Job, Kind

_NAME, _STATES = "token_vectors", "states.npy"


class TokenVectors(Spec):
    """`hidden`: width of a vector. `states`, `rarity`: as in the student's card; `rarity` None: all tokens weigh the same, where vectors
    are not averaged. `max_length`: tokens of a text that are counted."""

    hidden: Positive
    states: Literal["last", "mean"]
    rarity: PositiveNumber | None
    max_length: Positive


class TokenVectorsInfo(TypedDict):
    """`seen`: how many of the `tokens` occur in training texts. `variance_kept`: share, 0 to 1."""

    tokens: int
    seen: int
    variance_kept: float


def token_vector_inputs(draft: Draft, stage: str) -> dict[str, str]:
    """Add the node for a student that starts from token vectors and is yet to start, and return it as an input; empty for any other
    student."""
    card, sizes = draft.student, draft.sizes.get("student")
    if card is None or sizes is None or card.init != "static" or "student" in draft.latest:
        return {}
    own = card.static or Static()
    spec = TokenVectors(
        hidden=sizes.hidden,
        states=own.states,
        rarity=None if sizes.per_token else own.rarity,
        max_length=draft.task.spec.max_length,
    )
    inputs, outside = {"teacher": draft.latest["teacher"]}, {"data": draft.task.fingerprint}
    described = spec.model_dump(mode="json")
    name = draft.add(TOKEN_VECTORS, _NAME, "teacher", spec, described, inputs=inputs, outside=outside, stage=stage)
    return {_NAME: name}


def run(job: Job[TokenVectors]) -> TokenVectorsInfo:
    """Write vectors.npy, float32 [vocabulary, hidden]. The states of all tokens are kept on disk, not in memory."""
    from ...models.token_vectors import VECTORS, text_frame, token_frequencies, token_states, weighted_vectors
    from ...training import make_accelerator

    context, folder = job.context, job.inputs["teacher"].path
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True)
    tokenizer, sizes = load_tokenizer(folder), job.plan.sizes["teacher"]
    frame, count = text_frame(tokenizer), sizes.vocabulary
    job.work.mkdir(parents=True, exist_ok=True)
    states = zeros_file(job.work / _STATES, (count, sizes.hidden))
    token_states(
        model.to(make_accelerator(context.precision).device),
        frame,
        states,
        mean=job.spec.states == "mean",
        on_progress=lambda done: context.listener.progress("tokens", done, count),
    )
    rows = np.ones(count, bool)
    rows[list(frame.special)] = False
    texts = context.task.encoded("train", tokenizer, job.spec.max_length)
    counts = np.bincount(np.concatenate(texts.input_ids), minlength=count)
    frequencies = token_frequencies(counts, rows)
    vectors, kept = weighted_vectors(states, rows, frequencies, width=job.spec.hidden, a=job.spec.rarity)
    np.save(job.out / VECTORS, vectors, allow_pickle=False)
    return {"tokens": count, "seen": int((counts[rows] > 0).sum()), "variance_kept": kept}


TOKEN_VECTORS = Kind(_NAME, 2, TokenVectors, run=run, libraries=TRAINING)
