"""Distillation by TextBrewer, after its README and examples/notebook_examples/sst2.ipynb.

Its `ce` loss has no factor of T², and its `attention_mse` is a sum over heads: the weights below compensate for both.
"""

from __future__ import annotations

from typing import Any

from distil_parts import OUTPUTS, PAIRS, loader, models
from textbrewer import BasicDistiller, DistillationConfig, GeneralDistiller, TrainingConfig  # pyright: ignore[reportMissingImports]
from torch.optim import AdamW
from transformers import get_linear_schedule_with_warmup

ENVIRONMENT = "textbrewer"
PACKAGES = ("textbrewer", "torch", "transformers")
FILES = ("distil_textbrewer.py", "distil_parts.py")


def adapt_logits(batch: Any, output: Any) -> dict[str, Any]:
    return {"logits": output.logits, "losses": output.loss}


def adapt_layers(batch: Any, output: Any) -> dict[str, Any]:
    return {"hidden": output.hidden_states, "attention": output.attentions, "inputs_mask": batch["attention_mask"]}


def matches(heads: int) -> list[dict[str, Any]]:
    every = [("hidden", 0, 0, 1.0)]
    every += [("hidden", mine, theirs, 1.0) for mine, theirs in PAIRS]
    every += [("attention", mine - 1, theirs - 1, 1.0 / heads) for mine, theirs in PAIRS]
    return [
        {"layer_S": mine, "layer_T": theirs, "feature": feature, "loss": f"{feature}_mse", "weight": weight}
        for feature, mine, theirs, weight in every
    ]


def distiller(case: str, job: dict[str, Any], teacher: Any, student: Any, cached: bool = False) -> Any:
    train = TrainingConfig(output_dir=job["out"], device="cpu", ckpt_epoch_frequency=job["epochs"])
    if case == "logits":
        config = DistillationConfig(
            temperature=2.0, kd_loss_weight=0.5 * 2.0**2, hard_label_weight=0.5, is_caching_logits=cached
        )
        kind, adapt = BasicDistiller if cached else GeneralDistiller, adapt_logits
    else:
        config = DistillationConfig(
            kd_loss_weight=0.0, intermediate_matches=matches(student.config.num_attention_heads)
        )
        kind, adapt = GeneralDistiller, adapt_layers
    return kind(train, config, teacher, student, adapt, adapt)


def distil(case: str, pad: str, job: dict[str, Any]) -> Any:
    teacher, student = models(case, job)
    batches = loader(pad.removeprefix("cached "), job)
    steps = len(batches) * job["epochs"]
    optimizer = AdamW(student.parameters(), lr=job["learning_rate"])
    with (trainer := distiller(case, job, teacher, student, cached=pad.startswith("cached"))):
        trainer.train(
            optimizer,
            batches,
            job["epochs"],
            scheduler_class=get_linear_schedule_with_warmup,
            scheduler_args={"num_warmup_steps": round(0.1 * steps), "num_training_steps": steps},
            max_grad_norm=1.0,
            batch_postprocessor=dict,
            **OUTPUTS[case],
        )
    return student
