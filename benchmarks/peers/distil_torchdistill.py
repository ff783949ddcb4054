"""Distillation by torchdistill, after its examples/hf_transformers/general_language_understanding.py and its configurations for GLUE, with
the configuration as a dictionary."""

from __future__ import annotations

from typing import Any

import distil_torchvision  # noqa: F401
import torch
from distil_layers_loss import layers_loss
from distil_parts import OUTPUTS, models, tokens
from torch import Tensor, nn
from torch.utils.data import RandomSampler
from torchdistill.core.distillation import get_distillation_box  # pyright: ignore[reportMissingImports]
from torchdistill.core.interfaces.registry import register_forward_proc_func  # pyright: ignore[reportMissingImports]
from torchdistill.datasets.registry import register_collate_func  # pyright: ignore[reportMissingImports]
from torchdistill.losses.registry import register_mid_level_loss  # pyright: ignore[reportMissingImports]
from torchdistill.optim.registry import register_scheduler  # pyright: ignore[reportMissingImports]
from transformers import DataCollatorWithPadding, get_linear_schedule_with_warmup

ENVIRONMENT = "torchdistill"
PACKAGES = ("torchdistill", "torch", "transformers")
FILES = ("distil_torchdistill.py", "distil_parts.py", "distil_layers_loss.py")

register_scheduler(get_linear_schedule_with_warmup)


@register_forward_proc_func
def forward_with_layers(model: nn.Module, batch: Any, targets: Any = None, supp_dict: Any = None) -> Any:
    return model(**batch, **OUTPUTS["layers"])


@register_mid_level_loss
class LayersLoss(nn.Module):
    def forward(self, student: Any, teacher: Any, mask: Tensor) -> Tensor:
        return layers_loss(student["."]["output"], teacher["."]["output"], mask)


def criterion(case: str) -> dict[str, Any]:
    """Return a sum of one term."""
    if case == "layers":
        term = {"key": "LayersLoss", "kwargs": {}}
    else:
        places = {
            f"{model}_module_{what}": value for model in ("student", "teacher") for what, value in _LOGITS.items()
        }
        term = {"key": "KDLoss", "kwargs": {**places, "temperature": 2.0, "alpha": 0.5, "reduction": "batchmean"}}
    return {"key": "WeightedSumLoss", "kwargs": {"sub_terms": {case: {"criterion": term, "weight": 1.0}}}}


_LOGITS = {"path": "classifier", "io": "output"}


def configuration(case: str, job: dict[str, Any], steps: int) -> dict[str, Any]:
    forward = "forward_batch_only_as_kwargs" if case == "logits" else "forward_with_layers"
    model = {"forward_proc": forward, "forward_hook": {"input": [], "output": ["classifier"]}}
    schedule = {"num_warmup_steps": round(0.1 * steps), "num_training_steps": steps}
    return {
        "num_epochs": job["epochs"],
        "train_data_loader": {
            "dataset_id": "train",
            "sampler": {"class_or_func": RandomSampler, "kwargs": {}},
            "kwargs": {"batch_size": job["batch_size"], "num_workers": 0},
            "collate_fn": "DataCollatorWithPadding",
            "requires_supp": False,
        },
        "teacher": {**model, "requires_grad": False},
        "student": {**model, "requires_grad": True},
        "optimizer": {"key": "AdamW", "kwargs": {"lr": job["learning_rate"]}, "max_grad_norm": 1.0},
        "scheduler": {"key": "get_linear_schedule_with_warmup", "kwargs": schedule, "scheduling_step": 1},
        "criterion": criterion(case),
    }


def distil(case: str, pad: str, job: dict[str, Any]) -> Any:
    teacher, student = models(case, job)
    tokenizer, rows = tokens(pad, job)
    register_collate_func(DataCollatorWithPadding(tokenizer))
    steps = -(-len(rows) // job["batch_size"]) * job["epochs"]
    device = torch.device("cpu")
    box = get_distillation_box(
        teacher, student, {"train": rows}, configuration(case, job, steps), device, None, False, 1
    )
    for epoch in range(box.num_epochs):
        box.pre_epoch_process(epoch=epoch)
        for batch in box.train_data_loader:
            loss = box.forward_process(batch, targets=batch["labels" if case == "logits" else "attention_mask"])
            box.post_forward_process(loss=loss)
        box.post_epoch_process()
    return student
