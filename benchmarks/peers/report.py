"""Results of `run.py` -> Markdown: times, ratios of ours to each peer, and how far each is from torch.

python benchmarks/peers/report.py RESULT.json… > reports/peers.md
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inputs import CELLS, clock, way_name
from measuring import AGAIN
from ours import DEFAULT

SAME_RUNTIME = ("ours QDQ in OpenVINO", "OpenVINO int8")  # our file in the runtime that the peer is run by
_HEAD = """# Beside other runtimes

int8 (and fp32) models of the same weights, all candidates interleaved in one run, a process each in an environment
of its own; medians of the rounds. minilm-l6 has its trained weights under a random head, the others random ones: latency
does not depend on them, how far a candidate is from torch does. Waiting threads sleep, for all alike. `32x128` and
`ragged` ({sequences} sequences, {mean:.0f} tokens on average, at most {longest}) are cut into calls in the way that is
fastest for each candidate. A ratio is ours / peer, the median over rounds of both times in the same round: below 1 ours
is faster, and where it is not the cell says **lost**. It is that of our fastest form in the cell, and in brackets that of
`{default}`, the form that `compress run` ships. With one thread a time is CPU time, which a busy machine disturbs
least; with more it is wall-clock time.
"""


def render(results: Sequence[dict[str, Any]]) -> str:
    """The whole page; a result is what `run.py` writes."""
    parts = [_HEAD.format(**results[0]["ragged"], default=DEFAULT)]
    for result in results:
        parts.append(_setting(result))
        for run in result["runs"]:
            parts += [
                f"## {run['model']}, {_kind(run)}{threads_phrase(run['threads'])}\n",
                _ratios(run, result),
                _times(run, result),
            ]
            parts += [_ways(run), _failures(run["failed"])]
    parts.append(_glossary(results))
    return "\n".join(part for part in parts if part)


def ratio(ours: dict[str, Any], peer: dict[str, Any], kind: str) -> float:
    """Median over the rounds of ours / peer; both lists of samples are in the order of the rounds."""
    pairs = zip(ours["samples"], peer["samples"], strict=True)
    return statistics.median(mine[kind] / other[kind] for mine, other in pairs)


def best(cell: dict[str, Any], names: Iterable[str], kind: str) -> str | None:
    """The fastest of `names` in the cell, if any of them was measured."""
    return min((name for name in names if name in cell), key=lambda name: cell[name][kind], default=None)


def _kind(run: dict[str, Any]) -> str:
    """Results of before other kinds were measured do not say theirs, which is classification."""
    kind = run.get("kind", "classification")
    return "" if kind == "classification" else f"{kind}, "


def threads_phrase(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"


def _ours(result: dict[str, Any]) -> list[str]:
    return [name for name, variant in result["variants"].items() if variant["ours"]]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = f"|-|{'-:|' * (len(head) - 1)}"
    top, *below = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return "\n".join([top, rule, *below, ""])


def _setting(result: dict[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"`{result['command']}`\n\n{result['date']}, {machine['cpu']}, {machine['cores']} usable core(s), "
        f"{', '.join(machine['isa'])}; {result['rounds']} rounds\n"
    )


def _ratios(run: dict[str, Any], result: dict[str, Any]) -> str:
    kind, ours, cells = clock(run["threads"]), _ours(result), run["cells"]
    bests = {cell: best(cells[cell], ours, kind) for cell in cells}
    rows = [["our best", *(bests[cell] or "none" for cell in cells)]]
    for name in result["variants"]:
        if name not in ours:
            rows.append([f"ours / {name}", *(_shares(cells[cell], bests[cell], name, kind) for cell in cells)])
    if {*SAME_RUNTIME} <= {*result["variants"]}:
        rows.append([" / ".join(SAME_RUNTIME), *(_share(cells[cell], *SAME_RUNTIME, kind) for cell in cells)])
    rows.append([AGAIN, *(_share(cells[cell], AGAIN, ours[0], kind, lost=False) for cell in cells)])
    return table(["", *cells], rows)


def _shares(cell: dict[str, Any], best: str | None, other: str, kind: str) -> str:
    """Of our best form and, in brackets, of the default one; results of before it was timed have the first alone."""
    default = f" ({_share(cell, DEFAULT, other, kind)})" if DEFAULT in cell and other in cell else ""
    return _share(cell, best, other, kind) + default


def _share(cell: dict[str, Any], mine: str | None, other: str, kind: str, lost: bool = True) -> str:
    if mine not in cell or other not in cell:
        return "failed"
    value = ratio(cell[mine], cell[other], kind)
    return f"**{value:.2f} lost**" if lost and value >= 1 else f"{value:.2f}"


def _times(run: dict[str, Any], result: dict[str, Any]) -> str:
    def row(name: str) -> list[str]:
        found = run["agreement"][name]
        times = [_ms(run["cells"][cell].get(name)) for cell in run["cells"]]
        return [
            name,
            *times,
            f"{found['largest_difference']:.4f}",
            f"{found['correlation']:.3f}",
            f"{found['decisions']:.2f}",
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
    """Three that count, and none lost."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _ways(run: dict[str, Any]) -> str:
    """Per cell that can be cut: which candidates took which way."""
    lines = []
    for cell, found in run["cells"].items():
        takers: dict[int, list[str]] = {}
        for name, row in found.items():
            takers.setdefault(row["way"], []).append(name)
        told = "; ".join(f"{way_name(cell, way)}: {', '.join(takers[way])}" for way in sorted(takers))
        lines += [f"* {cell} as {told}"] if len(CELLS[cell]) > 1 else []
    return "\n".join([*lines, ""])


def _failures(failed: dict[str, str]) -> str:
    return "\n".join([*(f"* **{name}**: {reason}" for name, reason in failed.items()), ""]) if failed else ""


def _glossary(results: Sequence[dict[str, Any]]) -> str:
    variants = {name: variant["what"] for result in results for name, variant in result["variants"].items()}
    environments = {peer: versions for result in results for peer, versions in result["environments"].items()}
    lines = ["## What was measured\n", *(f"* {name}: {what}" for name, what in variants.items()), ""]
    for peer, versions in environments.items():
        lines.append(f"* {peer}: {', '.join(f'{name} {version}' for name, version in versions.items())}")
    return "\n".join([*lines, ""])


def main() -> None:
    print(render([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]), end="")


if __name__ == "__main__":
    main()
