"""How similar the layers of a run's models are to the teacher's. Stored like any artefact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import store
from ...machine import versions
from ...models.checkpoints.folders import largest_number, load_classifier, load_tokenizer, pad_id
from ...models.dimensions import read_config
from ...models.families import FAMILIES
from ...provenance import manifest_fields
from ...results.similarity import LayerSimilarity
from ...store import Artifact, Store
from ...tasks import Encoded
from ..plan import TRAINING, Context, Plan
from .measure import Model

if TYPE_CHECKING:
    from ...models.features.similarity import Reader

VERSION = 1
TEXTS, TOKENS = 256, 8192  # at most, evenly spread over the tuning split
LONGEST = 512  # tokens: attention over longer texts would need too much memory
_DIGITS = 4
_ROLES = ("student", "teacher")
_OTHER_TOKENS = "states and attention, as student and teacher cut texts into different tokens"


def measured_similarity(
    plan: Plan, models: list[Model], context: Context, cache: Store
) -> tuple[LayerSimilarity | None, Artifact | None]:
    """Return the similarity of the last other fp32 model, such as the student, to the teacher, and the measurement; (None, None) for a run
    without another model, and no measurement if nothing can be compared."""
    teacher, *others = (model for model in models if model.precision == "fp32")
    if not others:
        return None, None
    student = others[-1]
    checkpoints = student.checkpoint, teacher.checkpoint
    if problem := _similarity_problem(plan, *checkpoints):
        return LayerSimilarity(model=student.name, left_out=(problem,)), None
    inputs = {"student": checkpoints[0].key, "teacher": checkpoints[1].key, "data": context.task.fingerprint}
    spec = {"texts": TEXTS, "tokens": TOKENS, "longest": LONGEST, "max_length": context.task.spec.max_length}
    key = store.key("similarity", VERSION, spec, inputs, {name: versions()[name] for name in TRAINING})

    def make(out: Path, work: Path) -> dict[str, Any]:
        return _similarity_fields(checkpoints, context)

    label = f"similarity {student.name}"
    context.listener.stage(label, cache.find(key) is not None)
    artifact = cache.build(key, make, describe=manifest_fields("similarity", label))
    return LayerSimilarity(model=student.name, **artifact.info), artifact


def _similarity_problem(plan: Plan, *checkpoints: Artifact) -> str | None:
    for checkpoint in checkpoints:
        family = FAMILIES[read_config(checkpoint.path)["model_type"]]
        if family.layerless:
            return f"states and attention, as {family.title.lower()} models have no layers"
    return None if plan.shares_tokenizer else _OTHER_TOKENS


def _similarity_fields(checkpoints: tuple[Artifact, Artifact], context: Context) -> dict[str, Any]:
    """Return the fields of the result except the model's name."""
    from ...models.features.similarity import attention_problem, layer_similarity

    length = context.task.spec.max_length
    tokenizers = [load_tokenizer(checkpoint.path) for checkpoint in checkpoints]
    texts = [context.task.encoded("tuning", tokenizer, length) for tokenizer in tokenizers]
    rows = sample_of(texts[0], texts[1], (_names(tokenizers[0]), _names(tokenizers[1])))
    if not len(rows):
        return {"left_out": [f"{_OTHER_TOKENS}, or into more than {LONGEST}"]}
    student, teacher = (
        _reader(checkpoint, each, rows, context) for checkpoint, each in zip(checkpoints, texts, strict=True)
    )
    states, attention = layer_similarity(
        student, teacher, lambda done, total: context.listener.progress("comparing layers", done, total)
    )
    problems = (attention_problem(reader.model) for reader in (student, teacher))
    return {
        "texts": len(rows),
        "tokens": int(texts[0].lengths[rows].sum()),
        "states": states.round(_DIGITS).tolist(),
        "attention": []
        if attention is None
        else [[*map(_none_if_nan, row)] for row in attention.round(_DIGITS).tolist()],
        "left_out": [f"the {role}'s {problem}" for role, problem in zip(_ROLES, problems, strict=True) if problem],
    }


def sample_of(student: Encoded, teacher: Encoded, names: tuple[list[str], list[str]]) -> np.ndarray:
    """Return the rows to compare, int64, ascending: those that both models read as the same tokens, by the `names` of their ids, and that
    are not too long."""
    count = min(len(student), len(teacher))
    rows = [row for row in _spread(np.arange(count), TEXTS) if len(student.input_ids[row]) <= LONGEST]
    own, others = names
    same = [
        row for row in rows if [own[i] for i in student.input_ids[row]] == [others[i] for i in teacher.input_ids[row]]
    ]
    indices = np.array(same, np.int64)
    tokens = int(student.lengths[indices].sum())
    return indices if tokens <= TOKENS else _spread(indices, max(1, len(indices) * TOKENS // tokens))


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the rows, evenly spread from the first to the last."""
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]


def _names(tokenizer: Any) -> list[str]:
    """Token names by id, up to the largest id that a text can have."""
    ids = {number: name for name, number in tokenizer.get_vocab().items()}
    return [ids.get(number, f"[{number}]") for number in range(max(largest_number(tokenizer), *ids) + 1)]


def _reader(checkpoint: Artifact, texts: Encoded, rows: np.ndarray, context: Context) -> Reader:
    from ...models.features.similarity import Reader

    model: Any = load_classifier(checkpoint.path, kind=context.kind, labels=context.labels, trained=True).eval()
    ids, types = ([each[row] for row in rows] for each in (texts.input_ids, texts.token_type_ids))
    return Reader(model, Encoded(ids, types, np.zeros(len(rows))), pad_id(model.config.to_dict()))


def _none_if_nan(value: float) -> float | None:
    return None if np.isnan(value) else value
