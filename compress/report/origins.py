"""What results say they come from: code, teacher, plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..provenance import Code
from ..results import Result


def origins(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Rows (name, text); results of before these were recorded have none."""
    yield from by_run("Code", ((result.run, str(result.code)) for result in results if result.code))
    yield from _built_by_others(results)
    teachers = ((result.teacher, str(result.origin)) for result in results if result.origin)
    yield from ((f"Weights of {name}", text) for name, text in dict.fromkeys(teachers))
    corpora = [result.corpus for result in results if result.corpus]
    for text in dict.fromkeys(f"{', '.join(each.names)}, SHA-256 {each.fingerprint[:12]}" for each in corpora):
        yield "Plain text", text


def codes(results: Sequence[Result]) -> list[Code]:
    """Every code that a result, one of its stages or a measurement is of, once."""
    found: list[Code | None] = []
    for result in results:
        found += [result.code, result.timed_by, *(part.code for part in (*result.stages, *result.models))]
    return [code for number, code in enumerate(found) if code is not None and code not in found[:number]]


def _built_by_others(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Stages and measurements that were in the store already, made by other code than put the result together."""
    parts: dict[str, list[str]] = {}
    for result in (result for result in results if result.code):
        for name, code in _parts(result):
            if code is None or code.source != (result.code and result.code.source):
                parts.setdefault("code that was not recorded" if code is None else str(code), []).append(name)
    for code, names in parts.items():
        yield f"Made earlier, by {code}", ", ".join(dict.fromkeys(names))


def _parts(result: Result) -> Iterator[tuple[str, Code | None]]:
    yield from ((stage.kind, stage.code) for stage in result.stages)
    yield from ((f"scores of {model.predictions}", model.code) for model in result.models)
    if any(model.onnx for model in result.models):
        yield "latencies", result.timed_by


def by_run(name: str, found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """A row for each different text of `found`, run -> text, with its runs where there are several."""
    runs: dict[str, list[str]] = {}
    for run, text in found:
        runs.setdefault(text, []).append(run)
    for text, several in runs.items():
        yield (name if len(runs) == 1 else f"{name} ({', '.join(several)})"), text
