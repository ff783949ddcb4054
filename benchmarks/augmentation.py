"""Words per second that a masked language model finds candidates for: as published, and as `compress.augment` does it.

    python benchmarks/augmentation.py --data-dir ../glue --task mrpc

As published (Jiao et al. 2020 and its official code): one forward per word, batch 1, the masked text and the original
one as its second segment, scores of the whole vocabulary at every position. Both are given the same words of the same
texts, in turn, without gradients, on one thread; seconds are those of the processor, which other programs hardly
lengthen. The model is the teacher under a new masked-LM head: its answers are worthless, the time they take is not.
Prints a Markdown table.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import add_json, code_line, write_json
from tokenizers import Tokenizer

from compress.augment import MaskedLmProposer
from compress.augment.batching import Slots
from compress.augment.candidates import sort_words
from compress.augment.texts import words_of
from compress.models.checkpoints import load_tokenizer
from compress.models.masked_lm import new_masked_lm_head
from compress.pipeline.plan.teachers import resolve_teacher
from compress.results import Machine
from compress.tasks import Split, load_training, resolve_task

CANDIDATES = 15


def slots_of(texts: list[str], tokenizer: Tokenizer, length: int) -> Slots:
    """Every content word of one token."""
    words = words_of(Split((texts,), np.zeros(len(texts))))
    return sort_words(words, np.ones(words.words, bool), tokenizer, length)[0]


@torch.inference_mode()
def one_at_a_time(model: Any, slots: Slots, mask_id: int) -> None:
    """The published way: `[CLS] masked text [SEP] text [SEP]` for each word."""
    for text, position in zip(slots.text, slots.position, strict=True):
        original = slots.texts[text]
        masked = original.copy()
        masked[position] = mask_id
        ids = np.concatenate([masked, original[1:]])[:512]
        types = (np.arange(len(ids)) >= len(masked)).astype(np.int64)
        inputs = {
            "input_ids": torch.from_numpy(ids[None].astype(np.int64)),
            "token_type_ids": torch.from_numpy(types[None]),
        }
        scores = model(**inputs).logits[0, position]
        torch.argsort(scores, descending=True)[:CANDIDATES].tolist()


def seconds(call: Any) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm-l6")
    parser.add_argument("--task", default="mrpc")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--texts", type=int, default=160, help="texts of each round")
    parser.add_argument("--rounds", type=int, default=3)
    add_json(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    spec, folder = resolve_task(arguments.task)
    texts = load_training(spec, folder, arguments.data_dir).train.texts[0]
    source = resolve_teacher(arguments.teacher).folder
    if source is None:
        raise SystemExit("expected a teacher with a checkpoint")
    tokenizer, model = load_tokenizer(source), new_masked_lm_head(source).eval()
    proposer = MaskedLmProposer(model, tokenizer)
    mask_id = tokenizer.get_vocab()["[MASK]"]
    found: dict[str, list[float]] = {"one word at a time, as published": [], "compress.augment": []}
    ratios = []
    for round_ in range(arguments.rounds):
        start = round_ * arguments.texts
        slots = slots_of(texts[start : start + arguments.texts], tokenizer, proposer.max_length)
        slow = len(slots) / seconds(lambda slots=slots: one_at_a_time(model, slots, mask_id))
        fast = len(slots) / seconds(
            lambda slots=slots: proposer.propose(slots, CANDIDATES, None, lambda done, total: None)
        )
        ratios.append(fast / slow)
        for rates, rate in zip(found.values(), (slow, fast), strict=True):
            rates.append(rate)
    write_json(arguments.json, {"words_per_second": found, "ratios": ratios})
    print(f"CPU: {Machine.here().cpu}, {', '.join(Machine.here().isa)}; one thread, fp32\n\n{code_line()}\n")
    print("| | words/s, median of rounds | slowest | fastest |\n|-|-|-|-|")
    for name, rates in found.items():
        print(f"| {name} | {statistics.median(rates):,.1f} | {min(rates):,.1f} | {max(rates):,.1f} |")
    print(f"\nratio, median of rounds: {statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
