"""The spec of `quantize_aware`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...fields import Fraction, PositiveNumber
from ...losses import LOSSES
from ...losses.hidden_mse import HiddenMse
from ...losses.soft_target import SoftTarget
from ..stage import Stages, misfit
from .training import AnyLoss, Losses, PerTask, Training


class QuantizeAware(PerTask, Losses, Training):
    """Train the last model with the rounding of its int8 file, against itself in fp32."""

    losses: Annotated[tuple[AnyLoss, ...], Field(min_length=1)] = Field(
        default=(SoftTarget(), HiddenMse()), description="against the same model before this training, layer by layer"
    )
    epochs: PositiveNumber = Field(default=1.0, description="passes over the training split")
    learning_rate: PositiveNumber = Field(default=5e-6, description="peak, after the warm-up")
    dropout: Fraction | None = Field(default=0.0, description="on hidden states and attention; null: the model's own")
    evaluate_every: PositiveNumber = Field(default=0.5, description="epochs between evaluations on the tuning split")
    ranges: Literal["learned", "moving_average"] = Field(
        default="learned",
        description="how activation ranges are updated after calibration. learned: by gradient (LSQ+); moving_average: as a moving "
        "average of those seen in training",
    )
    smooth: bool = Field(
        default=True,
        description="first apply SmoothQuant's factors, computed on the calibration texts",
    )
    range_step: PositiveNumber = Field(
        default=1e-3,
        description="for `ranges: learned`: how far a range's ends may move per step at the peak learning rate, as a share of its width",
    )
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")

    @model_validator(mode="after")
    def _of_one_model(self) -> QuantizeAware:
        if wrong := [loss.name for loss in self.losses if LOSSES[loss.name].of_text]:
            raise ValueError(f"losses: {', '.join(wrong)} is for other stages; choose others")
        return self

    @classmethod
    def problems(cls, stages: Stages) -> Iterator[Any]:
        """Yield a problem unless the stage and `method: qat` come together, and export is not `plain`: training simulates the fast
        graph."""
        by_kind = {kind: (number, spec) for number, (kind, spec) in enumerate(stages)}
        aware, quantize, export = (by_kind.get(kind, (0, None)) for kind in ("quantize_aware", "quantize", "export"))
        trained = aware[1] is not None and aware[1].enabled
        uses_ranges = quantize[1] is not None and quantize[1].method == "qat"
        if uses_ranges and not trained:
            yield misfit(
                (quantize[0], "quantize", "method"),
                "qat uses the ranges of a `quantize_aware` stage, and there is none; add one, or choose another method",
            )
        elif trained and not uses_ranges:
            yield misfit(
                (aware[0], "quantize_aware"),
                "nothing uses its ranges; set `quantize: {method: qat}`, or leave the stage out (enabled: false)",
            )
        elif uses_ranges and export[1] is not None and export[1].graph == "plain":
            yield misfit(
                (export[0], "export", "graph"),
                "`quantize_aware` trains what the fast graph computes; leave `graph: plain` out, or the training",
            )
