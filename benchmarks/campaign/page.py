"""Write campaign.md: the hardware, the pre-training, a row for each recipe and task."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from compress.provenance import Code

from .state import Campaign

_NONE = "–"


def write_page(campaign: Campaign) -> Path:
    path = campaign.out / "campaign.md"
    path.write_text("\n".join(_lines(campaign)) + "\n", encoding="utf-8")
    return path


def _lines(campaign: Campaign) -> list[str]:
    machine, gpu = campaign.document["machine"]["machine"], campaign.document["machine"]["gpu"]
    hardware = f"on {gpu}" if gpu else "without a GPU: a rehearsal, whose scores say little"
    lines = [
        f"# A campaign of {campaign.document['seconds'] / 60:.0f} minutes, {hardware}",
        "",
        f"    python benchmarks/gpu_campaign.py {shlex.join(sys.argv[1:])}",
        "",
        f"Code: {Code.model_validate(campaign.document['machine']['code'])}",
        "",
        f"CPU: {machine['cpu']}, {machine['cores']} cores. Scores are the reported split's, each model's once. Latency was not "
        "measured here; the bundles carry the models to the CPU that they are for.",
        "",
        *_pretraining(campaign),
        "| recipe and task | state | minutes | teacher | last model | score | MB | flips against its fp32 |",
        "|-|-|-|-|-|-|-|-|",
    ]
    rows = [(name, step) for name, step in campaign.steps.items() if step["what"].get("recipe")]
    lines += [_row(name, step) for name, step in rows if name not in ("probe", "pretrain")]
    undone = [
        f"* {name}: {step['state']}{_why(step)}" for name, step in campaign.steps.items() if step["state"] != "done"
    ]
    return [*lines, *(["", "Not done:", "", *undone] if undone else [])]


def _pretraining(campaign: Campaign) -> list[str]:
    step = campaign.steps.get("pretrain")
    if step is None or step["state"] != "done":
        return []
    info, planned = step["answer"], campaign.document["pretrain"]
    tokens = info["steps"] * planned["batch_size"] * info["sequence_length"]
    held, rate = info.get("held_out"), info["tokens_per_second"]
    said = (
        f"Pre-training: {info['steps']:,} steps of {planned['batch_size']} sequences of {info['sequence_length']}, {tokens:,} "
        f"tokens{f' at {rate:,.0f} a second' if rate else ''} on {info['device']} in {info['precision']}, "
        f"{step['seconds'] / 60:.1f} minutes"
    )
    return [said + (f"; perplexity of held-out text {held['perplexity']:.1f}." if held else "."), ""]


def _row(name: str, step: dict[str, Any]) -> str:
    cells = [name, step["state"], f"{step['seconds'] / 60:.1f}"]
    if step["state"] != "done":
        return f"| {' | '.join([*cells, *[_NONE] * 5])} |"
    teacher, last = step["answer"]["models"][0], step["answer"]["models"][-1]
    flips = _NONE if last["flip_rate"] is None else f"{100 * last['flip_rate']:.2f}%"
    cells += [f"{teacher['score']:.2f}", last["label"], f"{last['score']:.2f}", f"{last['megabytes']:.1f}", flips]
    return f"| {' | '.join(cells)} |"


def _why(step: dict[str, Any]) -> str:
    return f": {step['message']}" if step.get("message") else ""
