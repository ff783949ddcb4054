"""What training for int8 adds to a plan: a model that the later stages take."""

from __future__ import annotations

from typing import Any

from .. import store
from ..errors import CompressError
from ..models.layer_maps import matched_layers
from ..places import from_home
from ..spec.quantization import Quantize
from ..spec.recipe import Recipe, Stage
from ..spec.stages import QuantizeAware
from .draft import Draft

AWARE = "quantize_aware"  # the kind of stage
# Fields of `quantize` that training depends on: what is rounded, and the first ranges.
_READ = {"per_channel", "reduce_range", "embeddings", "exclude", "calibration_examples", "calibration", "percentile"}


def quantize_spec(recipe: Recipe) -> Quantize:
    """How the trained model will be quantized."""
    return next(stage.spec for stage in recipe.stages if stage.kind == "quantize").form("int8")


def calibrated_on(draft: Draft, spec: Quantize) -> dict[str, str]:
    """Hashes of what is read. The tuning split is, and that the text is of no reported one is seen, also where a text is given."""
    text = {"text": store.hash_file(from_home(spec.calibration_text))} if spec.calibration_text else {}
    return {"data": draft.task.fingerprint} | text


def plan_quantize_aware(draft: Draft, stage: Stage) -> None:
    """The student in place of the last one; of a teacher a model of its own beside it, for the teacher is the baseline."""
    before = draft.current
    model = before if draft.student is not None else f"{before}-qat"
    if draft.student is not None and before == "teacher":
        raise draft.fails(stage.id, "every distill stage is switched off, so there is no student; leave one on")
    spec, layers = _spec(draft, stage), draft.sizes[before].layers
    try:
        matched_layers(spec, student_layers=layers, teacher_layers=layers)
    except CompressError as error:
        raise draft.fails(stage.id, str(error)) from None
    described: dict[str, Any] = spec.model_dump(mode="json", exclude={"per_task"})
    described |= {"seed": draft.seed, "precision": "fp32"}
    described |= {"quantize": quantize_spec(draft.recipe).model_dump(mode="json", include=_READ)}
    outside = calibrated_on(draft, quantize_spec(draft.recipe))
    inputs = {"model": draft.latest[before]}
    draft.add(AWARE, f"{before}-qat", model, spec, described, inputs=inputs, outside=outside, stage=stage.id)
    draft.sizes[model] = draft.sizes[before]
    draft.latest[model], draft.current = f"{before}-qat", model


def _spec(draft: Draft, stage: Stage) -> QuantizeAware:
    fields = {"max_length": draft.task.spec.max_length, **stage.spec.for_task(draft.task.spec.name)}
    return QuantizeAware.model_validate(fields)
