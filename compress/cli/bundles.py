"""`ship`, `verify` and `predict`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CheckFailed, CompressError

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads. Default: the usable cores.")]


def ship(
    run: Annotated[Path, typer.Argument(help="A finished run's folder.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The bundle's folder; new.", show_default=False)],
    model: Annotated[str | None, typer.Option(help="Which of the run's models. Default: the last one made.")] = None,
    store: Annotated[Path | None, typer.Option(help="The store of artefacts. Default: .store beside the run.")] = None,
    with_checkpoint: Annotated[bool, typer.Option("--with-checkpoint", help="Add the weights in safetensors.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")] = False,
) -> None:
    """Write the bundle: fp32 and int8 ONNX, tokenizer, config, model card, hashes."""
    from ..bundle import ship as write_bundle

    folder = run.parent if run.name == "result.json" else run
    store = store or folder.resolve().parent / ".store"
    typer.echo(write_bundle(folder, out, store=store, model=model, force=force, with_checkpoint=with_checkpoint))


def verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle's folder.", show_default=False)],
    task: Annotated[str | None, typer.Option(help="Recompute the scores on this task's reported split.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the task's data; recomputes the scores.")] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Check a bundle on this CPU: hashes, ONNX checker, labels, answers, and scores where data is given."""
    from ..bundle import verify as check_bundle

    report = check_bundle(bundle, task=task, data_dir=data_dir, threads=threads)
    if json:
        typer.echo(report.model_dump_json(indent=1))
    else:
        for check in report.checks:
            typer.echo(f"{'ok  ' if check.passed else 'FAIL'}  {check.name}: {check.detail}")
        for note in report.notes:
            typer.echo(f"note  {note}")
    failed = sum(not check.passed for check in report.checks)
    if failed:
        raise CheckFailed(f"{bundle}: {failed} of {len(report.checks)} checks failed")


def predict(
    bundle: Annotated[Path, typer.Argument(help="A bundle's folder.", show_default=False)],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts; none, or -, reads lines from stdin.")
    ] = None,
    pair: Annotated[
        list[str] | None, typer.Option("--pair", help="The second text of each pair, in the same order.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="int8 or fp32. Default: int8 where the bundle has it.")] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Answer with a bundle: label and score, tab-separated. Lines on stdin may hold a pair, tab-separated."""
    from ..runtime import Classifier

    classifier = Classifier(bundle, precision=precision, threads=threads)
    examples = _examples(texts, pair, classifier.columns)
    for text, answer in zip(examples, classifier.predict(examples), strict=True):
        if json:
            import json as encoder

            typer.echo(
                encoder.dumps(
                    {"text": text, "label": answer.label, "score": answer.score, "scores": answer.scores},
                    ensure_ascii=False,
                )
            )
        elif answer.label is None:
            typer.echo(f"{answer.score:.4f}")
        else:
            typer.echo(f"{answer.label}\t{answer.score:.4f}")


def _examples(texts: list[str] | None, pair: list[str] | None, columns: int | None) -> list[str | tuple[str, str]]:
    if not texts or texts == ["-"]:
        lines = [line.rstrip("\r\n") for line in sys.stdin]
        if columns != 2:
            return list(lines)
        return [_split(line, number) for number, line in enumerate(lines, 1)]
    if pair is None:
        return list(texts)
    if len(pair) != len(texts):
        raise CompressError(f"--pair: expected {len(texts)}, one for each text; found {len(pair)}")
    return list(zip(texts, pair, strict=True))


def _split(line: str, number: int) -> tuple[str, str]:
    first, tab, second = line.partition("\t")
    if not tab:
        raise CompressError(f"stdin:{number}: expected two texts with a tab between them; found {line[:40]!r}")
    return first, second
