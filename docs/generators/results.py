"""The table of results in the README, from a committed report."""

from __future__ import annotations

from pathlib import Path

from compress.report import collect, markdown_table

REPORT = "reports/glue-minilm"  # distilbert, tinybert-small, minilm, albert and int8, on several tasks
ROOT = Path(__file__).resolve().parents[2]


def results_table() -> str:
    """The report's table, its plot, and links to it."""
    folder = ROOT / REPORT
    results = collect([folder])
    tasks = ", ".join(dict.fromkeys(result.task.marked_title for result in results))
    plot = f"![{tasks}: score against latency]({REPORT}/plot.svg)"
    link = f"[The report]({REPORT}/report.md) has the exact commands, every setting and more shapes."
    return "\n\n".join([markdown_table(results, [folder], link=link), plot])
