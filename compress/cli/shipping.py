"""The commands `ship` and `checkpoint`, which take a bundle or a checkpoint from a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CompressError
from .options import LIMITS, UngroupedJson, path_argument, path_option
from .requests import LimitOptions
from .signatures import takes_records

if TYPE_CHECKING:
    from ..model_choice import Limits
    from ..report.shipment import Shipment

CONTENTS, CARD, HUB, TRITON = "Contents", "Model card", "Hugging Face hub", "Triton Inference Server"
Run = Annotated[Path, path_argument("RUN", help="A finished run's folder.")]
RunOrNone = Annotated[Path | None, path_argument("RUN", help="A finished run's folder; omit it with --from.")]
From = Annotated[
    Path | None,
    path_option(
        "--from",
        metavar="REPORT_OR_RUN",
        help="Folder of a report, a run or several runs of one task: ship the model that `compress report` recommends under the "
        "limits. Runs that a report names are looked for in it, beside it and in `runs`.",
        rich_help_panel=LIMITS,
    ),
]
Store = Annotated[Path | None, path_option(help="Artefact store. Default: .store beside the run.")]
Model = Annotated[
    str | None, typer.Option(help="Model to ship. Default: the last one the run made.", rich_help_panel=CONTENTS)
]
Precision = Annotated[
    list[str] | None,
    typer.Option(
        help="fp32, int8, avx2 or qdq; repeat for several. Default: all that the run has.", rich_help_panel=CONTENTS
    ),
]
WithCheckpoint = Annotated[
    bool, typer.Option("--with-checkpoint", help="Add the weights as safetensors.", rich_help_panel=CONTENTS)
]
Licence = Annotated[
    str | None,
    typer.Option(
        "--license", help="License of the model. Default: that of the weights it started from.", rich_help_panel=CARD
    ),
]
BaseModel = Annotated[
    str | None,
    typer.Option(
        "--base-model",
        help="Hub id of the base model. Default: that of the weights the model started from.",
        rich_help_panel=CARD,
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", help="Title of the card. Default: the run's name.", rich_help_panel=CARD)
]
Push = Annotated[
    str | None,
    typer.Option(
        metavar="OWNER/NAME",
        help="Also verify the bundle and commit it to this repository, created if missing. The token comes from HF_TOKEN or "
        "`hf auth login`.",
        rich_help_panel=HUB,
    ),
]
Private = Annotated[
    bool, typer.Option("--private", help="Make the repository private, if it is new.", rich_help_panel=HUB)
]
Triton = Annotated[
    Path | None,
    path_option(
        metavar="MODEL_REPOSITORY",
        help="Also write the bundle's default graph and its config.pbtxt to this model repository, under the name of the "
        "bundle's folder.",
        rich_help_panel=TRITON,
    ),
]


@takes_records
def ship(
    out: Annotated[Path, path_option("--out", "-o", help="New bundle folder.", show_default=False)],
    run: RunOrNone = None,
    source: From = None,
    *,
    limits: LimitOptions,
    store: Store = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier ship wrote.")] = False,
    model: Model = None,
    precision: Precision = None,
    with_checkpoint: WithCheckpoint = False,
    licence: Licence = None,
    base_model: BaseModel = None,
    name: Name = None,
    push: Push = None,
    private: Private = False,
    triton: Triton = None,
    json: UngroupedJson = False,
) -> None:
    """Write the bundle: ONNX files, tokenizer, config, model card and hashes."""
    from ..bundle import push_bundle, write_triton_model
    from ..bundle import ship as write_bundle

    _check_destinations(out, push, triton, private=private, force=force)
    shipment = _what_ships(run, source, limits.limits(), model, tuple(precision or ()))
    bundle = write_bundle(
        shipment.folder,
        out,
        store=store_of(shipment.folder, store),
        model=shipment.model,
        precisions=shipment.precisions,
        force=force,
        with_checkpoint=with_checkpoint,
        licence=licence,
        base_model=base_model,
        name=name,
    )
    notes = _notes(shipment.folder)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    places: dict[str, Any] = {"bundle": str(bundle), "triton": None, "pushed": None}
    _print_place(bundle, json)
    if triton is not None:
        places["triton"] = str(write_triton_model(bundle, triton, force=force))
        _print_place(places["triton"], json)
    if push is not None:
        places["pushed"] = push_bundle(bundle, push, private=private)
        _print_place(places["pushed"], json)
    if json:
        import json as encoder

        typer.echo(encoder.dumps(places | {"why": shipment.why, "notes": notes} | _contents(bundle), indent=1))


def _check_destinations(out: Path, push: str | None, triton: Path | None, *, private: bool, force: bool) -> None:
    """Raise `CompressError`, before anything is written, if the bundle could not be pushed or written for Triton afterwards."""
    from ..bundle import check_push, checked_model_folder

    if private and push is None:
        raise CompressError("--private is for a repository of the hub: expected --push OWNER/NAME with it, found none")
    if push is not None:
        check_push(push)
    if triton is not None:
        checked_model_folder(out, triton, force)


def _print_place(place: Path | str, json: bool) -> None:
    if not json:
        typer.echo(place)


def _contents(bundle: Path) -> dict[str, Any]:
    """Return what the bundle holds: whose model it is, the graph of each precision, and the sizes of the files, in bytes."""
    from ..bundle import read_bundle

    info = read_bundle(bundle)
    files = {path.relative_to(bundle).as_posix(): path.stat().st_size for path in bundle.rglob("*") if path.is_file()}
    return {
        "run": info.name,
        "task": info.task.name,
        "kind": info.task.kind,
        "model": info.model,
        "graphs": {precision: graph.model_dump(exclude={"requires"}) for precision, graph in info.graphs.items()},
        "fastest": info.fastest,
        "files": dict(sorted(files.items())),
        "bytes": sum(files.values()),
    }


def store_of(run: Path, store: Path | None) -> Path:
    """Return the folder of the run's artefacts: `store`, or the one beside the run."""
    from ..store import STORE

    return store or run.resolve().parent / STORE


def _notes(run: Path) -> list[str]:
    """Return what the run noted on its data and models, such as that one has learnt nothing."""
    from ..results import read_result

    return list(read_result(run).settings.get("notices") or ())


def _what_ships(
    run: Path | None, source: Path | None, limits: Limits | None, model: str | None, precisions: tuple[str, ...]
) -> Shipment:
    """Return the run, model and precisions that the user names; or those that the limits choose in --from, which are printed with the
    reason. Raises `CompressError`."""
    from ..report.shipment import Shipment, shipment_of
    from ..results import RESULT

    if source is None:
        if run is None:
            raise CompressError("expected a run's folder, or --from REPORT_OR_RUN with limits; found neither")
        if limits is not None:
            raise CompressError(
                f"{run}: limits choose among the models of --from; give --from {run}, or leave them out"
            )
        return Shipment(run.parent if run.name == RESULT else run, model, precisions, None)
    options = [name for name, value in (("RUN", run), ("--model", model), ("--precision", precisions)) if value]
    if options:
        raise CompressError(f"--from chooses the run and its model by the limits; leave out {' and '.join(options)}")
    from ..model_choice import Limits

    shipment = shipment_of(source, limits or Limits())
    typer.echo(shipment.why, err=True)
    return shipment


def checkpoint(
    run: Run,
    out: Annotated[Path, path_option("--out", "-o", help="New checkpoint folder.", show_default=False)],
    stage: Annotated[
        str | None,
        typer.Option(help="Stage to use, e.g. pretrained, teacher or encoder. Default: the last that trained."),
    ] = None,
    store: Store = None,
) -> None:
    """Copy a checkpoint from a run as safetensors, for another run's --teacher or for transformers."""
    from ..bundle import checkpoints_of, take_checkpoint

    place = take_checkpoint(run, out, store=store_of(run, store), name=stage)
    *others, last = checkpoints_of(run)
    if stage is None and others:
        typer.echo(f"note: weights of stage {last}; for another give --stage {' or '.join(others)}", err=True)
    typer.echo(place)
