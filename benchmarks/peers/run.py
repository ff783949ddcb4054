"""Compare the latency of our files with OpenVINO + NNCF, ONNX Runtime's, optimum's, transformers' and Olive's int8, CTranslate2,
neural-compressor and PyTorch.

    python benchmarks/peers/run.py --report reports/peers                              # as `make peers`: everything
    python benchmarks/peers/run.py --model minilm-l6 --peer pytorch --starts 1         # one model beside one peer

Makes an environment per peer (pip, CPU builds), converts the same checkpoint in each peer's documented way, checks
every candidate against torch, then times all of them interleaved. Models other than minilm-l6 have random weights:
latency does not depend on them. A candidate that cannot be installed, converted or run in time is listed with the reason.
Writes result.json into --out. --report adds each finished run to the file of this kind of CPU in that folder, and renders
the page beside the folder from all files in it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from candidates import OURS, PEERS, convert_all, interpreters, module
from checkpoints import make_checkpoint, reference_logits
from filed import file_result, filed
from heads import HEADS
from inputs import ragged_lengths
from measuring import measure
from process import ANSWER_SECONDS, CONVERT_SECONDS, start
from report import render

from compress.errors import CompressError
from compress.files.atomic import write_text
from compress.files.paths import display_path
from compress.provenance import running_code
from compress.results import Machine

# head -> the models measured by default
MODELS = {
    "classification": ("minilm-l6", "tinybert-4l-312", "distilbert-6l", "bert-base"),
    "tagging": ("minilm-l6",),
    "span": ("minilm-l6",),
}


def say(*words: str) -> None:
    print(*words, sep=": ", file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    peers = arguments.peer or PEERS
    pythons, missing = interpreters(peers, arguments.out / "environments", say)
    environments = _versions(pythons, missing)
    result = {
        "command": shlex.join(["python", *map(display_path, sys.argv)]),
        "code": running_code().model_dump(mode="json"),
        "date": datetime.date.today().isoformat(),
        "machine": Machine.here().model_dump(mode="json"),
        "rounds": arguments.rounds,
        "starts": arguments.starts,
        "note": arguments.note,
        "ragged": _ragged(),
        "variants": _variants([OURS, *peers]),
        "environments": environments,
        "runs": [],
    }
    for run in _runs(arguments, pythons, missing):
        result["runs"].append(run)
        write_text(arguments.out / "result.json", json.dumps(result, indent=1) + "\n")
        if arguments.report:
            say("filed", str(file_result(result, arguments.report)))
            write_text(arguments.report.with_suffix(".md"), render(filed(arguments.report)))
    print(render([result]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", help="minilm-l6, bert-base or a student's card; default: several")
    parser.add_argument("--kind", choices=HEADS, help="of the models' head; default: all, of a --model classification")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--threads", type=int, action="append", help="default: 1; may be given several times")
    parser.add_argument("--rounds", type=int, default=1, help="of the large cells; five times as many of the others")
    parser.add_argument("--starts", type=int, default=3, help="of every process; the rounds are of each")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--report", type=Path, help="folder of a file for each kind of CPU; the page is beside it")
    parser.add_argument("--note", default="", help="a sentence for the report: what a reader must know of this machine")
    parser.add_argument("--convert-seconds", type=float, default=CONVERT_SECONDS, help="for one conversion")
    parser.add_argument("--answer-seconds", type=float, default=ANSWER_SECONDS, help="for one answer of a model")
    return parser.parse_args()


def _runs(arguments: argparse.Namespace, pythons: dict[str, Path], missing: dict[str, str]) -> Iterator[dict[str, Any]]:
    for kind, name in _models(arguments):
        head = HEADS[kind]
        model = arguments.out / "models" / (name if head.kind == "classification" else f"{name}-{head.kind}")
        make_checkpoint(name, head, model / "checkpoint")
        reference: np.ndarray = reference_logits(model / "checkpoint")
        candidates, failed = convert_all(model, pythons, say, arguments.convert_seconds)
        if not candidates or candidates[0].peer != OURS:
            raise SystemExit(f"{name}: none of ours could be made: {failed}")
        for threads in arguments.threads or [1]:
            run = measure(
                candidates,
                head,
                reference,
                threads,
                arguments.rounds,
                partial(say, name),
                arguments.answer_seconds,
                arguments.starts,
            )
            yield {"model": name, "kind": kind, **run, "failed": {**missing, **failed, **run["failed"]}}


def _models(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield (head, model) of each model to measure."""
    kinds = [arguments.kind] if arguments.kind else ["classification"] if arguments.model else HEADS
    for kind in kinds:
        for name in arguments.model or MODELS[kind]:
            yield kind, name


def _ragged() -> dict[str, float]:
    lengths = ragged_lengths()
    return {"sequences": len(lengths), "mean": sum(lengths) / len(lengths), "longest": max(lengths)}


def _variants(peers: Iterable[str]) -> dict[str, dict[str, Any]]:
    return {
        name: {"what": what, "ours": name.startswith(OURS)}
        for peer in peers
        for name, what in module(peer).VARIANTS.items()
    }


def _versions(pythons: dict[str, Path], missing: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the versions of the reported packages by peer; a peer whose environment does not start moves to `missing`."""
    versions = {}
    for peer, python in [*pythons.items()]:
        try:
            with start(python, peer, 1, ours=peer == OURS, seconds=ANSWER_SECONDS) as child:
                versions[peer] = child.ask("versions")
        except CompressError as error:
            missing |= dict.fromkeys(module(peer).VARIANTS, str(error))
            del pythons[peer]
    return versions


if __name__ == "__main__":
    main()
