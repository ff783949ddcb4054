"""Verify that a bundle is whole, safe to open, and answers on this CPU as it did where it was made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ... import machine
from ...errors import CheckFailed, CompressError
from ...files.paths import expand_home
from ...runtime.model_folder import check_threads
from ..document import BundleInfo, read_bundle
from ..files import file_problems
from ..target import check_name, recover
from .graph_checks import FIRST_RUN
from .isolated import isolated_checks
from .report import Check, Report, check

if TYPE_CHECKING:
    from ...tasks import OwnFiles
    from .accuracy import Measured

_NOTHING_RUN = "nothing in it was run: the later checks were not made"


def verify(
    bundle: str | Path,
    *,
    task: str | Path | None = None,
    data_dir: str | Path | None = None,
    own: OwnFiles | None = None,
    tuning: str | Path | None = None,
    threads: int | None = None,
    simulate: bool = False,
) -> Report:
    """Run every check that can be made, passed or not; later ones are skipped if a file is not what it should be.

    `task` (a built-in name or a task file), `data_dir` (GLUE files) or `own` (a user's files, as in the run): also check the scores.
    `tuning`: the run's file of that name, by which the data are compared with the recorded ones.
    `simulate`: also compute in NumPy what the int8 files answer on x86 CPUs of the other kind, with or without VNNI. First restores a
    bundle if `ship --force` was killed while replacing it. Reads nothing outside `bundle` but the data. Raises `CompressError` when
    there is no bundle or no such data.
    """
    check_threads(threads)
    folder = expand_home(bundle)
    task = None if task is None else str(task)
    check_name(folder)
    recover(folder)
    if not folder.is_dir():
        raise CompressError(f"{folder}: expected a bundle's folder, found {'a file' if folder.exists() else 'nothing'}")
    folder = folder.resolve()
    try:
        info = read_bundle(folder)
    except CheckFailed as error:
        return _report(folder, [Check(name="bundle.json", passed=False, detail=str(error))], None)
    data = None if data_dir is None else expand_home(data_dir)
    held_out = None if tuning is None else expand_home(tuning)
    measured = _load_measured(info, task, data, own, held_out)
    checks = [Check(name="bundle.json", passed=True, detail="matches its own digest"), _file_check(folder, info)]
    if not checks[-1].passed:
        return _report(folder, checks, info, _NOTHING_RUN)
    options = {"task": task, "data_dir": str(data.resolve()) if data else None, "threads": threads}
    options |= {"own": None if own is None else own.to_json()}
    checks += isolated_checks(folder, {**options, "simulate": simulate})
    if not any(one.name == FIRST_RUN for one in checks):
        return _report(folder, checks, info, _NOTHING_RUN)
    return _report(folder, checks, info, *(measured.notes() if measured else ()))


def _load_measured(
    info: BundleInfo, task: str | None, data_dir: Path | None, own: OwnFiles | None, tuning: Path | None
) -> Measured | None:
    if task is None and data_dir is None and own is None:
        if tuning is not None:
            raise CompressError("--tuning: expected --task, --data-dir, or --train and --dev with it, found none")
        return None
    from .accuracy import load_measured

    return load_measured(info, task, data_dir, own, tuning)


def _report(folder: Path, checks: list[Check], info: BundleInfo | None, *notes: str) -> Report:
    here = machine.isa()
    if info is not None and info.verified_on.isa != here:
        there = ", ".join(info.verified_on.isa)
        notes += (f"made on a CPU with {there}; this one has {', '.join(here)}: int8 answers may differ a little",)
    recorded_version, installed_version = (
        (info.versions if info else {}).get("onnxruntime"),
        machine.versions().get("onnxruntime"),
    )
    if recorded_version != installed_version and info is not None:
        notes += (f"made with onnxruntime {recorded_version}, checked with {installed_version}",)
    return Report(bundle=str(folder), isa=here, checks=tuple(checks), notes=notes)


def _file_check(folder: Path, info: BundleInfo) -> Check:
    def check_files() -> str:
        if wrong := file_problems(folder, info.files):
            raise CheckFailed("; ".join(wrong))
        return f"{len(info.files)} files, {sum(entry.bytes for entry in info.files.values()):,} bytes"

    return check("files", check_files)
