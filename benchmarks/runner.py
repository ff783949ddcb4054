"""Measure what `compress.runtime` gains on ragged text and by its defaults, for a bundle on this machine.

    python benchmarks/runner.py BUNDLE TEXTS [--threads 1] [--rounds 9]

TEXTS has a text per line. Prints Markdown tables of process CPU time and wall-clock time, medians of interleaved rounds in random order, as
ratios to the first row. That row is measured twice, and the second shows the noise. On a busy machine, use the CPU time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from records import add_json, code_line, write_json

from compress.machine import cpu_name, isa
from compress.runtime import Classifier
from compress.runtime.batches import TOKENS_PER_RUN, chunks, pad_batch
from compress.runtime.unpadded import open_unpadded
from compress.sessions.opening import session_options

SHAPES = {
    "1 × 32": [(1, 32)] * 8,
    "1 × 128": [(1, 128)] * 2,
    "512 tokens, 5 to 60 long": [(512 // n, n) for n in (5, 12, 20, 35, 60)],
}
RUN_SIZES = (TOKENS_PER_RUN, 128, 256, 1024, 2048, 4096)  # tokens of a model run, padding included
PAUSE = 0.03  # seconds, so that threads still spinning after one candidate do not slow the next

Work = Callable[[], object]
MEASURED: dict[str, dict[str, tuple[float, float]]] = {}  # table -> candidate -> (CPU, wall), seconds


def timed(candidates: dict[str, Work], rounds: int) -> dict[str, tuple[float, float]]:
    """Return (CPU, wall) medians in seconds; a first round warms up and is not counted."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(rounds + 1):
        for name, work in random.sample(list(candidates.items()), len(candidates)):
            time.sleep(PAUSE)
            cpu, wall = time.process_time(), time.perf_counter()
            work()
            seconds[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: (statistics.median(c for c, _ in rows[1:]), statistics.median(w for _, w in rows[1:]))
        for name, rows in seconds.items()
    }


def show(title: str, candidates: dict[str, Work], rounds: int) -> None:
    """Measure and print a table; the first candidate is the baseline."""
    name, work = next(iter(candidates.items()))
    medians = timed(candidates | {f"{name}, again": work}, rounds)
    base = medians[name]
    MEASURED[title] = medians
    print(f"\n### {title}\n\n| | CPU ms | CPU ratio | wall ratio |\n|-|-:|-:|-:|")
    for name, (cpu, wall) in medians.items():
        print(f"| {name} | {1e3 * cpu:.1f} | {cpu / base[0]:.3f} | {wall / base[1]:.3f} |", flush=True)


def batches_in_order(model: Classifier, texts: list[str], size: int) -> None:
    """Run batches in the order of the texts, each padded to its longest."""
    for start in range(0, len(texts), size):
        model._run(model.tokenizer.encode_batch_fast(texts[start : start + size]), model._engine)


def paths(model: Classifier, texts: list[str], rounds: int) -> None:
    """Measure from text to logits: in the order given, in sorted batches of 64, by tokens; and tokenization alone."""
    candidates: dict[str, Work] = {
        "batches of 32 in the order given": lambda: batches_in_order(model, texts, 32),
        "sorted, at most 64 texts and 4,096 tokens": lambda: model.logits(texts, batch_size=64, tokens=4096),
        f"sorted, at most {TOKENS_PER_RUN} tokens": lambda: model.logits(texts),
        "`predict` on the list": lambda: model.predict(texts),
        "`classify` on a stream": lambda: list(model.classify(iter(texts))),
        "tokenizing alone": lambda: model.tokenizer.encode_batch_fast(texts),
    }
    show(f"Text to answers, {len(texts)} ragged texts", candidates, rounds)


def run_sizes(model: Classifier, texts: list[str], rounds: int) -> None:
    """Measure the model alone by the tokens per run, padding included."""
    encodings = model.tokenizer.encode_batch_fast(texts)
    lengths = np.array([len(encoding) for encoding in encodings])

    def run(tokens: int) -> None:
        for chunk in chunks(lengths, tokens):
            model._run([encodings[i] for i in chunk], model._engine)

    show("Tokens per run", {f"{tokens} tokens": lambda t=tokens: run(t) for tokens in RUN_SIZES}, rounds)


def options(model: Classifier, threads: list[int], rounds: int) -> None:
    """Measure session options, one changed at a time."""
    sessions = {}
    for count in threads:
        sessions[f"{count} threads"] = session_options(count)
        sessions[f"{count} threads, spinning"] = session_options(count, spinning=True)
    sessions["no arena"], sessions["no pattern"] = session_options(threads[0]), session_options(threads[0])
    sessions["no arena"].enable_cpu_mem_arena = False
    sessions["no pattern"].enable_mem_pattern = False
    opened = {
        name: onnxruntime.InferenceSession(str(model.model), chosen, disabled_optimizers=["SkipLayerNormFusion"])
        for name, chosen in sessions.items()
    }
    word = model.tokenizer.encode("a")
    for title, shapes in SHAPES.items():
        feeds = [pad_batch([word] * rows, model._engine.inputs, 1) for rows, _ in shapes]
        feeds = [{k: np.resize(v, shape) for k, v in feed.items()} for feed, shape in zip(feeds, shapes, strict=True)]
        work: dict[str, Work] = {
            name: lambda s=session, f=feeds: [s.run(None, feed) for feed in f] for name, session in opened.items()
        }
        show(f"Session options, {title}", work, rounds)


def unpadding(model: Classifier, threads: int, rounds: int) -> None:
    """Compare the unpadded form with the padded one by the share of padding: 12 texts of up to 40 tokens."""
    started = time.perf_counter()
    unpadded, word = open_unpadded(model.model, threads), model.tokenizer.encode("a").ids[1]
    size = model.model.stat().st_size / 1e6
    print(f"\nOpening the unpadded form of {size:.0f} MB: {time.perf_counter() - started:.2f} s.")
    for share in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        lengths = np.linspace(40 * (1 - 2 * share), 40, 12).round().astype(int)
        mask = (np.arange(40) < lengths[:, None]).astype(np.int64)
        full = {"input_ids": mask * word, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
        feed = {name: full[name] for name in model._engine.inputs}
        work: dict[str, Work] = {
            "padded": lambda f=feed: model._engine.run(f),
            "unpadded": lambda f=feed: unpadded.run(f),
        }
        show(f"Padding of {1 - mask.mean():.1%}", work, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument(
        "--threads", type=int, action="append", help="of the session options; the first is used elsewhere"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=int, default=1024, help="texts that are read")
    add_json(parser)
    arguments = parser.parse_args()
    threads = arguments.threads or [1]
    texts = arguments.texts.read_text(encoding="utf-8").splitlines()[: arguments.most]
    model = Classifier(arguments.bundle, threads=threads[0])
    print(f"{cpu_name()}: {', '.join(isa())}; onnxruntime {onnxruntime.__version__}; {model.model.name}")
    print(code_line())
    paths(model, texts, arguments.rounds)
    run_sizes(model, texts, arguments.rounds)
    unpadding(model, threads[0], 2 * arguments.rounds)
    options(model, threads, 2 * arguments.rounds)
    write_json(arguments.json, MEASURED)


if __name__ == "__main__":
    main()
