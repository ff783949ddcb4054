"""Render all measurements on file as Markdown: times, ratios of ours to each peer, and differences from torch.

python benchmarks/peers/report.py reports/peers > reports/peers.md
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from filed import cpu_kind, print_page
from inputs import CELLS, clock, way_name
from measuring import AGAIN
from ours import DEFAULT

SAME_RUNTIME = ("ours QDQ in OpenVINO", "OpenVINO int8")  # our file in the peer's runtime
_HEAD = """# Beside other runtimes

int8 (and fp32) models of the same weights, all candidates interleaved in one run, a process each in an environment
of its own; medians of the rounds, and of several starts where a setting says so. `make peers` measures all of it again
and files the figures by the kind of CPU
([the files](peers/)); this page is drawn from all that are on file.

minilm-l6 has its trained weights under a random head, the others random ones: latency does not depend on them, how far a
candidate is from torch does. Taggers and question answerers read every token, so the last layer's first-token cut that
classifiers have does not help them. Waiting threads sleep, for all alike. `32x128` and `ragged` ({sequences} sequences, {mean:.0f} tokens
on average, at most {longest}) are cut into calls in the way that is fastest for each candidate. A ratio is ours / peer, the median
over rounds of both times in the same round: below 1 ours is faster, and where it is not the cell says **lost**. It is that of our
fastest form in the cell, and in brackets that of `{default}`, the form that `compress run` ships. With one thread a time is CPU time,
which a busy machine disturbs least; with more it is wall-clock time.

## The nearest peer

Of each cell the largest ratio to a peer, whose name follows: of `{default}`, or of our fastest form where an older measurement is
without it.
"""
_ABSENT = """## What is not measured

* ONNX Runtime in bf16: its CPU provider has no bf16 kernel of `MatMul`. On Arm `mlas.enable_gemm_fastmath_arm64_bfloat16` lets it
  multiply fp32 in bf16; no Arm machine has measured here yet.
* `transformers.onnx`: it is gone. What took its place, `transformers.exporters` and optimum-onnx, are both measured.
* Intel Extension for PyTorch: its last release is for torch 2.8, older than all that is measured here.
* Candidates for bf16 on a CPU without bf16 instructions: it would be emulated, many times slower than fp32. Such a run says so.
"""


def render(results: Sequence[dict[str, Any]]) -> str:
    """Return the whole page. A result is what `run.py` writes; results of one kind of CPU are grouped."""
    parts = [_HEAD.format(**results[0]["ragged"], default=DEFAULT), _nearest(results)]
    for kind, several in groupby(results, key=lambda result: cpu_kind(result["machine"])):
        parts.append(f"## {kind}\n")
        for result in several:
            parts += [_setting(result), *(part for run in result["runs"] for part in _run(run, result))]
    parts += [_glossary(results), _ABSENT]
    return "\n".join(part for part in parts if part)


def _run(run: dict[str, Any], result: dict[str, Any]) -> list[str]:
    title = f"### {_title(run)}, {threads_phrase(run['threads'])}\n"
    return [title, _ratios(run, result), _times(run, result), _ways(run), _missing(run["failed"])]


def ratio(cell: dict[str, Any], mine: str, other: str, kind: str) -> float:
    """Return the median over the rounds of `mine` / `other`, whose samples are in the order of the rounds. For an older measurement without
    samples, `over` has the ratios."""
    if other in cell[mine].get("over", {}):
        return cell[mine]["over"][other]
    pairs = zip(cell[mine]["samples"], cell[other]["samples"], strict=True)
    return statistics.median(ours[kind] / theirs[kind] for ours, theirs in pairs)


def best(cell: dict[str, Any], names: Iterable[str], kind: str) -> str | None:
    """Return the fastest of `names` in the cell, or None if none was measured."""
    return min((name for name in names if name in cell), key=lambda name: cell[name][kind], default=None)


def _title(run: dict[str, Any]) -> str:
    return run["model"] if run["kind"] == "classification" else f"{run['model']}, {run['kind']}"


def threads_phrase(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _ours(result: dict[str, Any]) -> list[str]:
    return [name for name, variant in result["variants"].items() if variant["ours"]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = f"|-|{'-:|' * (len(head) - 1)}"
    top, *below = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join([top, rule, *below, ""])


def _nearest(results: Sequence[dict[str, Any]]) -> str:
    rows = []
    for result in results:
        for run in result["runs"]:
            cells = [_nearest_peer(run["cells"].get(cell, {}), result, clock(run["threads"])) for cell in CELLS]
            rows.append([cpu_kind(result["machine"]), _title(run), str(run["threads"]), result["date"], *cells])
    return table(["CPU", "model", "threads", "measured", *CELLS], rows)


def _nearest_peer(cell: dict[str, Any], result: dict[str, Any], kind: str) -> str:
    ours = _ours(result)
    mine = DEFAULT if DEFAULT in cell else best(cell, ours, kind)
    peers = [name for name in cell if name in result["variants"] and name not in ours]
    if mine is None or not peers:
        return "failed"
    nearest = max(peers, key=lambda name: ratio(cell, mine, name, kind))
    return f"{_share(cell, mine, nearest, kind)} {nearest}"


def _setting(result: dict[str, Any]) -> str:
    machine, rounds, starts = result["machine"], result["rounds"], result.get("starts", 1)
    often = f"{rounds} round{'s' if rounds > 1 else ''}" + (f" in each of {starts} starts" if starts > 1 else "")
    lines = [
        f"`{result['command']}`\n",
        f"{result['date']}, {machine['cpu']}, {machine['cores']} usable core(s), {', '.join(machine['isa'])}; "
        f"{often}. {result.get('note', '')}".rstrip()
        + "\n",
        "Versions: "
        + "; ".join(
            f"{peer}: {', '.join(f'{name} {version}' for name, version in versions.items())}"
            for peer, versions in result["environments"].items()
        )
        + "\n",
    ]
    return "\n".join(lines)


def _ratios(run: dict[str, Any], result: dict[str, Any]) -> str:
    kind, ours, cells = clock(run["threads"]), _ours(result), run["cells"]
    bests = {cell: best(cells[cell], ours, kind) for cell in cells}
    rows = [["our best", *(bests[cell] or "none" for cell in cells)]]
    for name in result["variants"]:
        if name not in ours and any(name in cell for cell in cells.values()):
            rows.append([f"ours / {name}", *(_shares(cells[cell], bests[cell], name, kind) for cell in cells)])
    if {*SAME_RUNTIME} <= {*result["variants"]}:
        rows.append([" / ".join(SAME_RUNTIME), *(_share(cells[cell], *SAME_RUNTIME, kind) for cell in cells)])
    rows.append([AGAIN, *(_share(cells[cell], AGAIN, ours[0], kind, lost=False) for cell in cells)])
    return table(["", *cells], rows)


def _shares(cell: dict[str, Any], best: str | None, other: str, kind: str) -> str:
    """Return the ratio of our best form and, in brackets, of the default one; older results without the default have the first only."""
    default = f" ({_share(cell, DEFAULT, other, kind)})" if DEFAULT in cell and other in cell else ""
    return _share(cell, best, other, kind) + default


def _share(cell: dict[str, Any], mine: str | None, other: str, kind: str, lost: bool = True) -> str:
    if mine not in cell or other not in cell:
        return "failed"
    value = ratio(cell, mine, other, kind)
    return f"**{value:.2f} lost**" if lost and value >= 1 else f"{value:.2f}"


def _times(run: dict[str, Any], result: dict[str, Any]) -> str:
    def row(name: str) -> list[str]:
        comparison = run["agreement"][name]
        times = [_ms(run["cells"][cell].get(name)) for cell in run["cells"]]
        return [
            name,
            *times,
            f"{comparison['largest_difference']:.4f}",
            f"{comparison['correlation']:.3f}",
            f"{comparison['decisions']:.2f}",
        ]

    head = [
        "ms, wall (CPU)",
        *run["cells"],
        "largest logit difference to torch",
        "correlation of margins",
        "same decisions",
    ]
    return table(head, [row(name) for name in (*result["variants"], AGAIN) if name in run["agreement"]])


def _ms(cell: dict[str, Any] | None) -> str:
    return "failed" if cell is None else f"{digits(cell['wall'])} ({digits(cell['cpu'])})"


def digits(value: float) -> str:
    """Format with at least three significant digits, keeping all integer digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ways(run: dict[str, Any]) -> str:
    """List, for each cell that can be cut, the way of each candidate."""
    lines = []
    for cell, rows in run["cells"].items():
        takers: dict[int, list[str]] = {}
        for name, row in rows.items():
            takers.setdefault(row["way"], []).append(name)
        ways = "; ".join(f"{way_name(cell, way)}: {', '.join(takers[way])}" for way in sorted(takers))
        lines += [f"* {cell} as {ways}"] if len(CELLS[cell]) > 1 else []
    return "\n".join([*lines, ""])


def _missing(failed: dict[str, str]) -> str:
    lines = [f"* **{name}**: {reason}" for name, reason in failed.items()]
    return "\n".join(["Missing, and why:\n", *lines, ""]) if lines else ""


def _glossary(results: Sequence[dict[str, Any]]) -> str:
    """List each name with its descriptions, the newest first."""
    meant: dict[str, list[str]] = {}
    for result in sorted(results, key=lambda result: result["date"], reverse=True):
        for name, variant in result["variants"].items():
            what = meant.setdefault(name, [])
            what += [variant["what"]] if variant["what"] not in what else []
    lines = [f"* {name}: {'; in an older measurement: '.join(what)}" for name, what in meant.items()]
    return "\n".join(["## What was measured\n", *lines, ""])


def main() -> None:
    print_page(render)


if __name__ == "__main__":
    main()
