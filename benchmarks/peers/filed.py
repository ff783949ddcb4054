"""Measurements on file: one JSON for each kind of CPU, so that results from another machine add to the existing ones."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compress.errors import CompressError
from compress.files.atomic import write_text

Result = dict[str, Any]  # what one call of `run.py` or `text_to_answer.py` measures
_VENDORS = ("amd", "intel", "apple", "ampere", "arm", "neoverse")


def cpu_kind(machine: dict[str, Any]) -> str:
    """Return the vendor and vector extensions of a `Machine`, e.g. `intel-avx2-avx512f-avx512_vnni`: they decide which kernels run."""
    words = re.findall("[a-z]+", machine["cpu"].lower())
    vendor = next((word for word in _VENDORS if word in words), "".join(words[:1]) or "cpu")
    return "-".join([vendor, *machine["isa"]])


def file_result(result: Result, folder: Path) -> Path:
    """Add `result` to the file of its kind of CPU. It replaces earlier runs of the same head, model and threads; all others stay."""
    path = folder / f"{cpu_kind(result['machine'])}.json"
    kept = [*_without(_results(path), {_key(run) for run in result["runs"]}), result]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"results": kept}) + "\n")
    return path


def filed(folder: Path) -> list[Result]:
    """Return all measurements on file, by kind of CPU, the newest first in each. Raises `CompressError` if there are none."""
    results = [result for path in sorted(folder.glob("*.json")) for result in reversed(_results(path))]
    if not results:
        raise CompressError(f"{folder}: no measurements on file; make some with `make peers`")
    return sorted(results, key=lambda result: (cpu_kind(result["machine"]), -int(result["date"].replace("-", ""))))


def print_page(render: Callable[[list[Result]], str]) -> None:
    """Print the page of the folder given on the command line."""
    try:
        print(render(filed(Path(sys.argv[1]))), end="")
    except CompressError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def _results(path: Path) -> list[Result]:
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.is_file() else []


def _without(results: list[Result], again: set[tuple[Any, ...]]) -> Iterator[Result]:
    for result in results:
        runs = [run for run in result["runs"] if _key(run) not in again]
        if runs:
            yield {**result, "runs": runs}


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    """Return the key of a run; runs on texts have only one model."""
    return run.get("kind"), run.get("model"), run["threads"]
