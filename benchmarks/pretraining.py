"""Masked-LM pre-training: our loop against transformers' Trainer with its collator, interleaved: how fast, and how well it learns.

    python benchmarks/pretraining.py --corpus ../corpus --teacher bert-mini --steps 20

The same model (a card's sizes, random weights, the vocabulary of another card), sequences, batch size, precision and
optimizer on both sides, no dropout; each side has its own masking. The Trainer computes logits for every token, our loss only
for the masked ones. Tokens/s are medians over the steps of all rounds after the warm-up; the loss is the mean of the last
tenth of the steps (at least 3), in nats per masked token. Prints a Markdown table.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from accelerate.state import AcceleratorState
from records import add_json, code_line, write_json
from tokenizers import Tokenizer

from compress.corpus import MaskedBatches, TextBatches, TokenShards, corpus_sources, tokenize_corpus
from compress.losses.masked_lm import MaskedTokens
from compress.machine import training_precision, usable_cores
from compress.models.checkpoints.folders import load_tokenizer
from compress.models.features.named import layers_of
from compress.models.masked_head import MaskedLmHeads
from compress.models.masked_lm import masked_lm_around
from compress.models.random_models import random_encoder
from compress.objective import Objective
from compress.pipeline.plan.teachers import resolve_teacher
from compress.results import Machine
from compress.spec.stages import Pretrain
from compress.training import StepReport, make_accelerator, train

WARMUP_STEPS = 3
LEARNING_RATE, WARMUP = 1e-3, 0.06  # bert-pretrain's
TARGET = 1.5  # times the Trainer


class Steps:
    """The seconds between the ends of steps, without the warm-up steps, and the losses."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self.losses: list[float] = []

    def __call__(self, *_: Any) -> None:
        self._ends.append(time.perf_counter())

    def report(self, report: StepReport) -> None:
        self()
        self.losses.append(report.losses["masked_lm"])

    @property
    def last_loss(self) -> float:
        return statistics.fmean(self.losses[-max(3, len(self.losses) // 10) :])

    @property
    def seconds(self) -> list[float]:
        ends = self._ends[WARMUP_STEPS:]
        return [later - sooner for sooner, later in pairwise(ends)]


class Setting:
    """The settings that both sides share."""

    def __init__(self, arguments: argparse.Namespace, text: TextBatches, tokenizer: Tokenizer) -> None:
        self.text, self.tokenizer, self.steps = text, tokenizer, arguments.steps
        self.precision, self.teacher = arguments.precision, resolve_teacher(arguments.teacher)
        if self.teacher.card.random is None:
            raise SystemExit("expected a teacher with random weights")

    def model(self) -> Any:
        torch.manual_seed(0)
        quiet = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        config = {**self.teacher.config, **quiet, "vocab_size": self.tokenizer.get_vocab_size()}
        return masked_lm_around(random_encoder(config))


def ours(setting: Setting, work: Path, *, compiled: bool = False) -> Steps:
    """Return the steps of our loop."""
    model, steps = setting.model(), Steps()
    for layer in layers_of(model) if compiled else ():
        layer.compile()
    settings = Pretrain(
        max_steps=setting.steps, batch_size=setting.text.batch_size, learning_rate=LEARNING_RATE, warmup=WARMUP
    )
    train(
        model.base_model,
        Objective((MaskedTokens(),), masked_lm=MaskedLmHeads(model)),
        MaskedBatches(setting.text),
        settings,
        accelerator=make_accelerator(setting.precision),
        teacher=lambda batch, indices: {},
        evaluate=None,
        work=work,
        on_step=steps.report,
    )
    return steps


def trainer(setting: Setting, work: Path) -> Steps:
    """Return the steps of the Trainer."""
    from transformers import (
        DataCollatorForLanguageModeling,
        PreTrainedTokenizerFast,
        PrinterCallback,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    AcceleratorState._reset_state()
    text, steps = setting.text, Steps()
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=setting.tokenizer, **names)
    rows = [text.collate(text.indices(step))["input_ids"] for step in range(setting.steps)]
    dataset: Any = [{"input_ids": torch.from_numpy(row)} for batch in rows for row in batch]
    training_arguments = TrainingArguments(
        output_dir=str(work),
        max_steps=setting.steps,
        per_device_train_batch_size=text.batch_size,
        bf16=setting.precision == "bf16",
        optim="adamw_torch_fused",
        learning_rate=LEARNING_RATE,
        warmup_steps=round(WARMUP * setting.steps),
        weight_decay=0.01,
        max_grad_norm=1.0,
        logging_strategy="steps",
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )

    class Clock(TrainerCallback):
        def on_step_end(self, *arguments: Any, **more: Any) -> None:
            steps()

        def on_log(self, *arguments: Any, logs: dict[str, float], **more: Any) -> None:
            steps.losses += [logs["loss"]] if "loss" in logs else []

    collator = DataCollatorForLanguageModeling(tokenizer)
    peer = Trainer(
        setting.model(), training_arguments, data_collator=collator, train_dataset=dataset, callbacks=[Clock()]
    )
    peer.remove_callback(PrinterCallback)
    peer.train()
    return steps


SIDES: dict[str, Callable[[Setting, Path], Steps]] = {"compress": ours, "transformers Trainer": trainer}
COMPILED = {"compress, layers by torch.compile": partial(ours, compiled=True)}


def read(arguments: argparse.Namespace, tokenizer: Tokenizer, folder: Path) -> TextBatches:
    """Tokenize as much of the corpus as the steps need."""
    tokens = arguments.batch_size * arguments.length * (arguments.steps + 1)
    (folder / "shards").mkdir()
    sources = corpus_sources([str(arguments.corpus)])
    tokenize_corpus(sources, tokenizer, folder / "shards", folder / "work", max_tokens=tokens, threads=usable_cores())
    shards = TokenShards.open(folder / "shards")
    return TextBatches(shards, length=arguments.length, batch_size=arguments.batch_size, seed=0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--teacher", default="bert-mini", help="a card with random weights: the model's sizes")
    parser.add_argument("--vocabulary", default="minilm-l6", help="a card with a checkpoint: the tokenizer's")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compiled", action="store_true", help="also our loop with layers that torch.compile made")
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--precision", choices=("fp32", "bf16"), default=training_precision())
    add_json(parser)
    arguments = parser.parse_args()
    words = resolve_teacher(arguments.vocabulary).folder
    if words is None or arguments.steps < WARMUP_STEPS + 2:
        raise SystemExit(f"expected a --vocabulary with a checkpoint, and at least {WARMUP_STEPS + 2} steps")
    torch.set_num_threads(arguments.threads)
    sides = SIDES | (COMPILED if arguments.compiled else {})
    all_rounds: dict[str, list[Steps]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = load_tokenizer(words)
        setting = Setting(arguments, read(arguments, tokenizer, Path(folder)), tokenizer)
        for round_ in range(arguments.rounds):
            for name in list(sides) if round_ % 2 else list(sides)[::-1]:
                all_rounds[name].append(sides[name](setting, Path(folder) / f"{name}-{round_}"))
    show(all_rounds, arguments, setting)


def show(all_rounds: dict[str, list[Steps]], arguments: argparse.Namespace, setting: Setting) -> None:
    """Print the table and the machine."""
    tokens = arguments.batch_size * arguments.length
    seconds = {name: [each for steps in rounds for each in steps.seconds] for name, rounds in all_rounds.items()}
    rates = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    base = rates["transformers Trainer"]
    raw = {
        name: [{"seconds": steps.seconds, "losses": steps.losses} for steps in rounds]
        for name, rounds in all_rounds.items()
    }
    write_json(arguments.json, {"tokens_a_step": tokens, "rounds": raw})
    print(
        f"CPU: {Machine.here().cpu}, {', '.join(Machine.here().isa)}; {arguments.threads} threads, {arguments.precision}"
    )
    print(code_line())
    sizes = f"{setting.teacher.dimensions(2)}, {setting.tokenizer.get_vocab_size():,} words"
    print(f"{sizes}; {arguments.batch_size} sequences of {arguments.length} tokens a step\n")
    print(
        f"| loop | tokens/s, median of steps | slowest | fastest | ratio | loss after {setting.steps} steps |\n|-|-|-|-|-|-|"
    )
    for name, times in seconds.items():
        slowest, fastest = tokens / max(times), tokens / min(times)
        loss = statistics.fmean(steps.last_loss for steps in all_rounds[name])
        print(
            f"| {name} | {rates[name]:,.0f} | {slowest:,.0f} | {fastest:,.0f} | {rates[name] / base:.2f} | {loss:.3f} |"
        )
    print(f"\nthe target is {TARGET} times the Trainer")


if __name__ == "__main__":
    main()
