"""Render all measurements of text_to_answer.py on file as Markdown.

python benchmarks/peers/text_report.py reports/text-to-answer > reports/text-to-answer.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from filed import cpu_kind, print_page
from report import digits, table, threads_phrase
from text_measuring import AGAIN, FIRST
from text_ours import VARIANTS as OURS
from text_parts import MODEL, WHOLE

_HEAD = """# Text to answer

Texts in, answers out, tokenizer and all Python in between included, each candidate in a process and an environment of
its own. The model is MiniLM-L6 (6 x 384) with a head of two labels, the texts are made of the tokenizer's words.
Tokenizers use one thread and waiting threads sleep, in all of them. `{first}` is measured twice: the second shows the noise.
`make peers` measures it again and files the figures by the kind of CPU ([the files](text-to-answer/)); this page is drawn
from all that are on file.
"""
_SETTING = """## {kind}

`{command}`

{date}, {cpu}, {cores} usable core(s), {isa}. {count:,} texts: {mean:.0f} tokens on average, {median:.0f} in the middle, 99% have at
most {p99:.0f}, the longest {longest}. {note}
"""
_EXPLAINED = """* The ratio says how many times as fast `{first}` is, by {clock}. CPU time is that of all threads; other work
  on the machine disturbs it least.
* A way is the batch size that the user sets, or none. The fastest on {tried:,} texts (below) answered all of them. `sorted`
  is a way that the caller has to write: it is shown there, and not taken.
* MB is resident memory before and after the one call with all texts. Before it, those {tried:,} texts had been answered
  once in each way and once more.
"""
_SHORT = """### Short texts: where do 100 µs go?

One text of {words} words, answered {repeats:,} times by `{first}` with one thread; CPU time. The parts are the functions that
`predict` calls, in its order. Around the model there are {around:.0f} µs.

"""
GOAL = 4  # times as fast as the pipelines of optimum, with all texts in one call


def render(results: Sequence[dict[str, Any]]) -> str:
    """Return the whole page; a result is what `text_to_answer.py` writes."""
    return "\n".join([_HEAD.format(first=FIRST), *(part for result in results for part in _result(result))])


def _result(result: dict[str, Any]) -> list[str]:
    machine = {**result["machine"], "isa": ", ".join(result["machine"]["isa"])}
    setting = {**result, **result["texts"], **machine, "kind": cpu_kind(result["machine"])}
    parts = [_SETTING.format(**{"note": "", **setting}).rstrip() + "\n"]
    for run in result["runs"]:
        parts += [f"### {threads_phrase(run['threads'])}\n", *_run(run, result)]
    return [*parts, _short(result["short"]), _glossary(result)]


def _run(run: dict[str, Any], result: dict[str, Any]) -> list[str]:
    rule, ways = ("CPU time", "cpu") if run["threads"] == 1 else ("wall-clock time", "wall")
    explained = _EXPLAINED.format(first=FIRST, clock=rule, tried=run["tried"])
    return [
        f"Load average of the machine before: {run['load']:.1f}\n",
        f"#### {result['texts']['count']:,} texts in one call\n",
        _whole(run, ways),
        _goal(run, ways),
        explained,
        f"#### The ways, {run['tried']:,} texts: texts / {'CPU s' if ways == 'cpu' else 's'}\n",
        _ways(run, ways),
        f"#### Single texts, {result['requests']} requests, medians of {result['rounds']} rounds: ms p50 / p99 (answers / s)\n",
        _callers(run),
        *(f"* **{name}**: {reason}" for name, reason in run["failed"].items()),
        "",
    ]


def _whole(run: dict[str, Any], clock: str) -> str:
    head = [
        "",
        "way",
        "texts / CPU s",
        "texts / s",
        f"{FIRST} is faster by",
        "MB before, after",
        "correlation with torch",
    ]
    count = run["texts"]
    rows = []
    for name, cost in run["whole"].items():
        ratio = cost[clock] / run["whole"][FIRST][clock] if FIRST in run["whole"] else float("nan")
        memory = f"{cost['before_mb']:.0f}, {cost['after_mb']:.0f}"
        agreement = run["correlation"].get(name)
        rows.append(
            [
                name,
                run["taken"][name],
                digits(count / cost["cpu"]),
                digits(count / cost["wall"]),
                "" if name == FIRST else f"{ratio:.2f}x",
                memory,
                "" if agreement is None else f"{agreement:.3f}",
            ]
        )
    return table(head, rows)


def _goal(run: dict[str, Any], clock: str) -> str:
    """List which of the others are at least GOAL times slower than FIRST, and which are not."""
    if FIRST not in run["whole"]:
        return ""
    first = run["whole"][FIRST][clock]
    ratios = {name: cost[clock] / first for name, cost in run["whole"].items() if name not in (*OURS, AGAIN)}
    reached = [f"{name} ({ratio:.2f}x)" for name, ratio in ratios.items() if ratio >= GOAL]
    missed = [f"{name} ({ratio:.2f}x)" for name, ratio in ratios.items() if ratio < GOAL]
    return (
        f"The goal is {GOAL} times the speed of optimum's pipelines. That much faster than these: {', '.join(reached) or 'none'}. "
        f"**Not** that much: {', '.join(missed) or 'none'}.\n"
    )


def _ways(run: dict[str, Any], clock: str) -> str:
    names = [*dict.fromkeys(way for ways in run["ways"].values() for way in ways)]
    rows = [
        [name, *(digits(run["tried"] / ways[way][clock]) if way in ways else "" for way in names)]
        for name, ways in run["ways"].items()
        if name != AGAIN
    ]
    return table(["", *names], rows)


def _callers(run: dict[str, Any]) -> str:
    counts = [*run["callers"]]
    names = [*dict.fromkeys(name for latencies in run["callers"].values() for name in latencies)]
    rows = [[name, *(_latency(run["callers"][count].get(name)) for count in counts)] for name in names]
    return table(["", *(f"{count} caller{'s' if int(count) > 1 else ''}" for count in counts)], rows)


def _short(short: dict[str, Any]) -> str:
    parts = short["microseconds"]
    rows = [[name, f"{time:.0f}", f"{time / parts[WHOLE]:.0%}"] for name, time in parts.items()]
    return _SHORT.format(first=FIRST, **short, around=parts[WHOLE] - parts[MODEL]) + table(
        ["", "median CPU µs", "of all"], rows
    )


def _latency(latency: dict[str, Any] | None) -> str:
    if latency is None or "p50" not in latency:
        return "failed"
    times = f"{digits(latency['p50'])} / {digits(latency['p99'])} ({latency['per_second']:.0f})"
    return f"{times}, {latency['failed']} requests failed: {latency['raised']}" if latency["failed"] else times


def _glossary(result: dict[str, Any]) -> str:
    lines = ["### What was measured\n", *(f"* {name}: {what}" for name, what in result["variants"].items()), ""]
    for peer, ways in result["ways"].items():
        versions = ", ".join(f"{name} {version}" for name, version in result["versions"][peer].items())
        described = "; ".join(f"`{way}`: {what}" for way, what in ways.items())
        lines.append(f"* {peer}: {versions}. Ways: {described}")
    return "\n".join([*lines, ""])


def main() -> None:
    print_page(render)


if __name__ == "__main__":
    main()
