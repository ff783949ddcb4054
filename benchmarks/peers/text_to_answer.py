"""Compare our `Classifier`, tokenizer included, with the pipelines of optimum and transformers and a CrossEncoder, from texts to answers.

    python benchmarks/peers/text_to_answer.py --threads 1 --threads 2 --out runs/peers --report reports/text-to-answer

Makes an environment per peer as run.py does, a classifier with MiniLM-L6's weights, our files and optimum's. Each candidate
answers ragged texts in one call, and then single texts from 1, 4 and 16 concurrent callers, in rounds of random order. Texts
are made of the tokenizer's words (ragged_texts.py). --report adds the figures to the file of this kind of CPU in that folder,
and renders the page beside it from all files in it. Linux only, for the memory figures.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import shutil
import statistics
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from checkpoints import make_checkpoint
from environments import environment
from filed import file_result, filed
from heads import HEADS
from process import start
from ragged_texts import ragged_texts
from text_measuring import FIRST, OURS, Candidate, measure, short_text
from text_report import render

from compress.errors import CompressError
from compress.files.atomic import write_text
from compress.files.paths import display_path
from compress.provenance import running_code
from compress.results import Machine

PEERS = ("text_optimum", "text_cross_encoder", "text_transformers")
_SHORT = {"words": 8, "repeats": 2000}  # the text whose time is split into parts


def say(*words: str) -> None:
    print(*words, sep=": ", file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    failed: dict[str, str] = {}
    pythons = _pythons(arguments, failed)
    model = arguments.out / "text"
    texts = _prepare(model, arguments)
    versions = _make_files(model, pythons, failed)
    peers = {peer: import_module(peer) for peer in pythons}
    result = {
        "command": shlex.join(["python", *map(display_path, sys.argv)]),
        "code": running_code().model_dump(mode="json"),
        "date": datetime.date.today().isoformat(),
        "machine": Machine.here().model_dump(mode="json"),
        "texts": texts,
        "note": arguments.note,
        "rounds": arguments.rounds,
        "requests": arguments.requests,
        "variants": {name: what for module in peers.values() for name, what in module.VARIANTS.items()},
        "ways": {peer: module.WAYS for peer, module in peers.items()},
        "versions": versions,
        "short": {**_SHORT, "microseconds": short_text(Candidate(FIRST, OURS, pythons[OURS]), model, **_SHORT)},
        "runs": [],
    }
    candidates = [Candidate(name, peer, pythons[peer]) for peer, module in peers.items() for name in module.VARIANTS]
    for threads in arguments.threads or [1]:
        run = measure(candidates, model, threads, arguments.texts, arguments.rounds, arguments.requests, say)
        result["runs"].append({**run, "failed": {**failed, **run["failed"]}})
        write_text(arguments.out / "text.json", json.dumps(result, indent=1) + "\n")
        if arguments.report:
            say("filed", str(file_result(result, arguments.report)))
            write_text(arguments.report.with_suffix(".md"), render(filed(arguments.report)))
    print(render([result]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, action="append", help="default: 1; may be given several times")
    parser.add_argument("--texts", type=int, default=10_000, help="answered in one call")
    parser.add_argument("--rounds", type=int, default=3, help="of single texts")
    parser.add_argument("--requests", type=int, default=300, help="of single texts in a round")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--report", type=Path, help="folder of a file for each kind of CPU; the page is beside it")
    parser.add_argument("--note", default="", help="a sentence for the report: what a reader must know of this machine")
    return parser.parse_args()


def _pythons(arguments: argparse.Namespace, failed: dict[str, str]) -> dict[str, Path]:
    """Map each peer to its interpreter; ours is the running one."""
    pythons = {OURS: Path(sys.executable)}
    for peer in arguments.peer or PEERS:
        say(f"environment of {peer}")
        try:
            pythons[peer] = environment(import_module(peer).ENVIRONMENT, arguments.out / "environments")
        except CompressError as error:
            failed[peer] = f"no environment: {error}"
    return pythons


def _prepare(model: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the checkpoint, our files as a folder that `Classifier` opens, and texts.json; return statistics of the texts."""
    say("our files")
    shutil.rmtree(model, ignore_errors=True)
    make_checkpoint("minilm-l6", HEADS["classification"], model / "checkpoint")
    with start(Path(sys.executable), "ours", 1, ours=True) as child:
        child.ask("convert", variant="ours default", model=str(model), out=str(model / "bundle/onnx"))
    for file in (model / "checkpoint").glob("*.json"):
        shutil.copy(file, model / "bundle")
    tokenizer = model / "checkpoint/tokenizer.json"
    texts = ragged_texts(tokenizer, arguments.texts)
    write_text(model / "texts.json", json.dumps(texts))
    lengths = [len(one) for one in tokenizers.Tokenizer.from_file(str(tokenizer)).encode_batch_fast(texts)]
    return {
        "count": len(texts),
        "mean": statistics.fmean(lengths),
        "median": statistics.median(lengths),
        "p99": float(np.percentile(lengths, 99)),
        "longest": max(lengths),
    }


def _make_files(model: Path, pythons: dict[str, Path], failed: dict[str, str]) -> dict[str, dict[str, str]]:
    """Have each peer make its files and return the versions by peer; a peer that cannot moves to `failed`."""
    versions = {}
    for peer, python in [*pythons.items()]:
        say(f"files of {peer}")
        try:
            with Candidate(peer, peer, python).child(1) as child:
                versions[peer] = child.ask("versions")
                if hasattr(import_module(peer), "make"):
                    child.ask("make", model=str(model.absolute()))
        except CompressError as error:
            failed[peer] = str(error)
            del pythons[peer]
    return versions


if __name__ == "__main__":
    main()
