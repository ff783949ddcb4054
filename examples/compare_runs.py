"""Compare the final models of two runs on one task: size, latency, and whether their scores differ by more than chance."""

from __future__ import annotations

import argparse
from pathlib import Path

import scripts

from compress import CompressError
from compress.report.grouping.predictions import load_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import PREDICTIONS, ModelResult, Result, read_result
from compress.stats.significance import paired_bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs=2, type=Path, help="the folders of two finished runs", metavar="RUN")
    folders = parser.parse_args().runs

    results = [read_result(folder) for folder in folders]
    if results[0].task.data.fingerprint != results[1].task.data.fingerprint:
        raise CompressError("the two runs are not of the same task and data")
    for result in results:
        print(describe(result, result.final))

    first, second = (answers(result, folder / PREDICTIONS) for result, folder in zip(results, folders, strict=True))
    points, low, high = paired_bootstrap(metric_of([first, second]), first.outputs, second.outputs, first.gold)
    verdict = "not distinguishable" if low <= 0 <= high else "distinguishable"
    print(f"the second against the first: {points:+.2f} points ({low:+.2f} to {high:+.2f}), {verdict}")


def answers(result: Result, file: Path) -> Scored:
    (outputs,), gold = load_answers(file, result, [result.final.predictions])
    return Scored(result, result.final, outputs, gold, file)


def describe(result: Result, model: ModelResult) -> str:
    parts = [f"{model.headline:.2f} points", f"{model.file_bytes / 1e6:.2f} MB"]
    if model.onnx is not None:
        latency = model.onnx.latency[0]
        parts.append(f"{latency.p50:.3f} ms for {latency.batch} × {latency.length} tokens")
    return f"{result.run}, {model.name} {model.precision}: {', '.join(parts)}"


if __name__ == "__main__":
    scripts.run(main)
