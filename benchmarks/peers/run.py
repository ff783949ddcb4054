"""Latency of our files beside OpenVINO + NNCF, ONNX Runtime's and optimum's int8, CTranslate2 and PyTorch.

    python benchmarks/peers/run.py --model minilm-l6 --model tinybert-4l-312 --out runs/peers --report reports/peers.md

Makes an environment per peer (pip, CPU builds), converts the same checkpoint in each peer's documented way, checks
every candidate against torch, then times all of them interleaved. Sizes other than minilm-l6 have random weights:
latency does not depend on them. Writes result.json into the folder, and beside the report; `report.py` joins several into
one page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from candidates import OURS, PEERS, convert_all, interpreters, module
from checkpoints import make_checkpoint, reference_logits
from heads import HEADS
from inputs import ragged_lengths
from measuring import measure
from process import start
from report import render

from compress.atomic import write_text
from compress.errors import CompressError
from compress.paths import shown
from compress.provenance import running_code
from compress.results import Machine


def say(*words: str) -> None:
    print(*words, sep=": ", file=sys.stderr, flush=True)


def main() -> None:
    arguments = _arguments()
    pythons, missing = interpreters(arguments.peer or PEERS, arguments.out / "environments", say)
    environments = _versions(pythons, missing)
    result = {
        "command": shlex.join(["python", *map(shown, sys.argv)]),
        "code": running_code().model_dump(mode="json"),
        "date": datetime.date.today().isoformat(),
        "machine": Machine.here().model_dump(mode="json"),
        "rounds": arguments.rounds,
        "ragged": _ragged(),
        "variants": _variants(pythons),
        "environments": environments,
        "runs": [],
    }
    for run in _runs(arguments, pythons, missing):
        result["runs"].append(run)
        write_text(arguments.out / "result.json", json.dumps(result, indent=1) + "\n")
    page = render([result])
    if arguments.report:
        write_text(arguments.report, page)
        write_text(arguments.report.with_suffix(".json"), json.dumps(result) + "\n")
    print(page)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", required=True, help="minilm-l6, bert-base or a student's card")
    parser.add_argument("--kind", choices=HEADS, default="classification", help="of the models' head")
    parser.add_argument("--peer", action="append", choices=PEERS, help="default: all")
    parser.add_argument("--threads", type=int, action="append", help="default: 1; may be given several times")
    parser.add_argument("--rounds", type=int, default=3, help="of the large cells; five times as many of the others")
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    parser.add_argument("--report", type=Path)
    return parser.parse_args()


def _runs(arguments: argparse.Namespace, pythons: dict[str, Path], missing: dict[str, str]) -> Iterator[dict[str, Any]]:
    head = HEADS[arguments.kind]
    for name in arguments.model:
        model = arguments.out / "models" / (name if head.kind == "classification" else f"{name}-{head.kind}")
        make_checkpoint(name, head, model / "checkpoint")
        reference: np.ndarray = reference_logits(model / "checkpoint")
        candidates, failed = convert_all(model, pythons, say)
        if not candidates or candidates[0].peer != OURS:
            raise SystemExit(f"{name}: none of ours could be made: {failed}")
        for threads in arguments.threads or [1]:
            run = measure(candidates, head, reference, threads, arguments.rounds, partial(say, name))
            yield {"model": name, "kind": head.kind, **run, "failed": {**missing, **failed, **run["failed"]}}


def _ragged() -> dict[str, float]:
    lengths = ragged_lengths()
    return {"sequences": len(lengths), "mean": sum(lengths) / len(lengths), "longest": max(lengths)}


def _variants(pythons: dict[str, Path]) -> dict[str, dict[str, Any]]:
    return {
        name: {"what": what, "ours": name.startswith(OURS)}
        for peer in pythons
        for name, what in module(peer).VARIANTS.items()
    }


def _versions(pythons: dict[str, Path], missing: dict[str, str]) -> dict[str, dict[str, str]]:
    """Per peer, of the packages that count; one whose environment does not even start moves to `missing`."""
    found = {}
    for peer, python in [*pythons.items()]:
        try:
            with start(python, peer, 1, ours=peer == OURS) as child:
                found[peer] = child.ask("versions")
        except CompressError as error:
            missing[peer] = str(error)
            del pythons[peer]
    return found


if __name__ == "__main__":
    main()
