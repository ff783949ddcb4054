"""Distillation by the Trainer of transformers with a custom loss, after its guide for images."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from distil_layers_loss import layers_loss
from distil_parts import OUTPUTS, models, tokens
from torch import Tensor
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

ENVIRONMENT = ""
PACKAGES = ("transformers", "accelerate", "torch")
FILES = ("distil_trainer.py", "distil_parts.py", "distil_layers_loss.py")


def logits_loss(student: Any, teacher: Any, attention_mask: Tensor) -> Tensor:
    soft = F.kl_div(
        F.log_softmax(student.logits / 2.0, dim=-1), F.softmax(teacher.logits / 2.0, dim=-1), reduction="batchmean"
    )
    return 0.5 * 2.0**2 * soft + 0.5 * student.loss


class DistillationTrainer(Trainer):
    def __init__(self, teacher: Any, case: str, **options: Any) -> None:
        super().__init__(**options)
        self.teacher, self.outputs = teacher, OUTPUTS[case]
        self.loss_of = logits_loss if case == "logits" else layers_loss

    def compute_loss(self, model: Any, inputs: Any, return_outputs: Any = False, num_items_in_batch: Any = None) -> Any:
        output = model(**inputs, **self.outputs)
        with torch.no_grad():
            target = self.teacher(**inputs, **self.outputs)
        loss = self.loss_of(output, target, inputs["attention_mask"])
        return (loss, output) if return_outputs else loss


def distil(case: str, pad: str, job: dict[str, Any]) -> Any:
    teacher, student = models(case, job)
    tokenizer, rows = tokens(pad, job)
    arguments = TrainingArguments(
        output_dir=job["out"],
        num_train_epochs=job["epochs"],
        per_device_train_batch_size=job["batch_size"],
        learning_rate=job["learning_rate"],
        warmup_steps=0.1,
        weight_decay=0.01,
        train_sampling_strategy="group_by_length" if pad == "by length" else "random",
        seed=job["seed"],
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    DistillationTrainer(
        teacher,
        case,
        model=student,
        args=arguments,
        train_dataset=rows,
        data_collator=DataCollatorWithPadding(tokenizer),
    ).train()
    return student
