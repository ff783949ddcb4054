"""The candidates: every variant of ours and of the peers that could be installed and converted, or why not."""

from __future__ import annotations

import hashlib
import importlib
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import REQUIREMENTS, environment
from process import ANSWER_SECONDS, CONVERT_SECONDS, start

from compress.errors import CompressError
from compress.machine import isa
from compress.processes.worker import Worker

OURS = "ours"
PEERS = (
    "openvino_ours",
    "openvino_nncf",
    "onnxruntime_dynamic",
    "optimum_onnx",
    "transformers_exporters",
    "olive_int8",
    "ctranslate2_int8",
    "neural_compressor_pt2e",
    "pytorch",
)
PLAIN = "ours plain"  # the variant whose fp32 graph the peers convert
_BF16 = {"avx512_bf16", "amx_bf16", "bf16"}  # the names in compress.machine.ISA that multiply bf16
NO_BF16 = "not measured: this CPU has no bf16 instructions and would emulate them"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    """`peer`: its module here. `python`: the interpreter that runs it. `folder`: where its converted files are."""

    name: str
    peer: str
    python: Path
    folder: Path

    def child(self, threads: int, seconds: float = ANSWER_SECONDS) -> Worker:
        return start(self.python, self.peer, threads, ours=self.peer == OURS, seconds=seconds)


def module(peer: str) -> Any:
    """Return the peer's module; this process uses only its names and descriptions."""
    return importlib.import_module(peer)


def interpreters(peers: Sequence[str], folder: Path, say: Say) -> tuple[dict[str, Path], dict[str, str]]:
    """Return (peer -> its interpreter, variant of a peer -> why it has none). Ours uses the running interpreter."""
    pythons, missing = {OURS: Path(sys.executable)}, {}
    for peer in peers:
        say(f"environment of {peer}")
        try:
            pythons[peer] = environment(module(peer).ENVIRONMENT, folder)
        except CompressError as error:
            missing |= dict.fromkeys(module(peer).VARIANTS, f"no environment: {error}")
    return pythons, missing


def convert_all(
    model: Path, pythons: dict[str, Path], say: Say, seconds: float = CONVERT_SECONDS
) -> tuple[list[Candidate], dict[str, str]]:
    """Convert the folder `model` for every candidate, in at most `seconds` each. Return (candidates that were converted, ours first; name
    -> why a conversion failed)."""
    candidates, failed = [], {}
    for candidate in _candidates(model, pythons):
        if candidate.name in getattr(module(candidate.peer), "NEEDS_BF16", ()) and not _BF16 & {*isa()}:
            failed[candidate.name] = NO_BF16
            continue
        say(f"{model.name}: {candidate.name}: converting")
        try:
            _convert(candidate, model, seconds)
            candidates.append(candidate)
        except CompressError as error:
            failed[candidate.name] = str(error)
    return candidates, failed


def _candidates(model: Path, pythons: dict[str, Path]) -> Iterator[Candidate]:
    for peer, python in pythons.items():
        for name in module(peer).VARIANTS:
            yield Candidate(name, peer, python, model / _slug(name))


def _slug(name: str) -> str:
    return "-".join(name.replace(",", "").lower().split())


def _convert(candidate: Candidate, model: Path, seconds: float) -> None:
    """Convert once per checkpoint, requirements and source of the converter."""
    stamp, digest = candidate.folder / "made.sha256", _digest(candidate.peer, model)
    if not (stamp.is_file() and stamp.read_text() == digest):
        shutil.rmtree(candidate.folder, ignore_errors=True)
        candidate.folder.mkdir(parents=True)
        with candidate.child(1, seconds) as child:
            child.ask("convert", variant=candidate.name, model=str(model), out=str(candidate.folder))
        stamp.write_text(digest)
    if candidate.name == PLAIN:
        (model / "plain").unlink(missing_ok=True)
        (model / "plain").symlink_to(candidate.folder.name)


def _digest(peer: str, model: Path) -> str:
    here = Path(__file__).parent
    files = [model / "checkpoint/model.safetensors", here / f"{peer}.py", here / "inputs.py"]
    if peer.endswith(OURS):
        files += [here / "ours.py", *sorted((here.parents[1] / "compress").rglob("*.py"))]
    elif (model / "plain/model.onnx").is_file():  # what the others convert
        files.append(model / "plain/model.onnx")
    if peer != OURS:
        files.append(REQUIREMENTS / f"{module(peer).ENVIRONMENT}.txt")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
