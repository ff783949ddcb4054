"""Is a bundle whole, safe to open, and does it answer on this CPU as it did where it was made?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .. import machine
from ..errors import CheckFailed, CompressError
from ..runtime.folder import MODEL_FILES, packed_beside
from ..sessions import check_graph_file, check_owner, external_locations
from .answers import answer_checks
from .document import BundleInfo, GraphFile, read_bundle
from .files import problems
from .graph_files import graph_file
from .report import Check, Report, check

if TYPE_CHECKING:
    import onnx

    from .accuracy import Measured


def verify(
    bundle: Path,
    *,
    task: str | None = None,
    data_dir: Path | None = None,
    threads: int | None = None,
    simulate: bool = False,
) -> Report:
    """Every check that can be made, passed or not; later ones are left out where a file is not what it should be.

    `task` (a built-in name or a task file) or `data_dir` (GLUE files) asks for the scores too; `simulate` for what the
    int8 files answer on x86 CPUs of the other kind, with or without VNNI, computed in NumPy. Reads
    nothing outside `bundle` but the data. Raises `CompressError` when there is no bundle or no such data.
    """
    folder = Path(bundle)
    if not folder.is_dir():
        raise CompressError(f"{folder}: expected a bundle's folder, found {'a file' if folder.exists() else 'nothing'}")
    folder = folder.resolve()
    try:
        info = read_bundle(folder)
    except CheckFailed as error:
        return _report(folder, [Check(name="bundle.json", passed=False, detail=str(error))], None)
    measured = _measured(info, task, data_dir)
    checks = [Check(name="bundle.json", passed=True, detail="matches its own digest")]
    for group in (_file_checks, _graph_checks):
        checks += group(folder, info)
        if not all(one.passed for one in checks):
            return _report(folder, checks, info, "nothing in it was run: the later checks were not made")
    checks += answer_checks(folder, info, simulate=simulate)
    if measured is None:
        return _report(folder, checks, info)
    return _report(folder, checks + measured.checks(folder, threads), info, *measured.notes())


def _measured(info: BundleInfo, task: str | None, data_dir: Path | None) -> Measured | None:
    if task is None and data_dir is None:
        return None
    from .accuracy import measured

    return measured(info, task, data_dir)


def _report(folder: Path, checks: list[Check], info: BundleInfo | None, *notes: str) -> Report:
    here = machine.isa()
    if info is not None and info.verified_on.isa != here:
        there = ", ".join(info.verified_on.isa)
        notes += (f"made on a CPU with {there}; this one has {', '.join(here)}: int8 answers may differ a little",)
    theirs, ours = (info.versions if info else {}).get("onnxruntime"), machine.versions().get("onnxruntime")
    if theirs != ours and info is not None:
        notes += (f"made with onnxruntime {theirs}, checked with {ours}",)
    return Report(bundle=str(folder), isa=here, checks=tuple(checks), notes=notes)


def _file_checks(folder: Path, info: BundleInfo) -> list[Check]:
    def found() -> str:
        if wrong := problems(folder, info.files):
            raise CheckFailed("; ".join(wrong))
        return f"{len(info.files)} files, {sum(entry.bytes for entry in info.files.values()):,} bytes"

    return [check("files", found)]


def _graph_checks(folder: Path, info: BundleInfo) -> list[Check]:
    checks = [check("models", lambda: _expected_models(info))]
    if checks[0].passed:
        files = {p: _model(folder, p) for p in info.models}
        checks += [check(f"onnx {p}", lambda path=path: _graph(path)) for p, path in files.items()]
        packed = {p: path for p, path in files.items() if packed_beside(path).is_file()}
        checks += [check(f"onnx {p} packed", lambda path=path: _packed(path)) for p, path in packed.items()]
    if all(one.passed for one in checks):
        checks.append(check("graphs", lambda: _named(folder, info)))
    return checks


def _model(folder: Path, precision: str) -> Path:
    return folder / "onnx" / MODEL_FILES[precision]


def _expected_models(info: BundleInfo) -> str:
    """No graph that was not measured: a runtime would pick it up by its name."""
    expected = {f"onnx/{MODEL_FILES[precision]}" for precision in info.models}
    found = {name for name in info.files if name.endswith(".onnx")}
    found -= {packed_beside(Path(name)).as_posix() for name in expected}
    if found != expected or not expected:
        raise CheckFailed(f"expected {sorted(expected)}, found {sorted(found)}")
    return ", ".join(sorted(found))


def _graph(path: Path) -> str:
    return f"{len(_sound(path, set()).graph.node)} nodes, all weights inside, accepted by the ONNX checker"


def _packed(path: Path) -> str:
    """Of the graph file `path`: the packed form has its weights there, and nowhere else."""
    from ..graphs import get_metadata

    packed = packed_beside(path)
    model = _sound(packed, {path.name})
    check_owner(packed, get_metadata(model), path, path.read_bytes())
    return f"{len(model.graph.node)} nodes, weights in {path.name}, accepted by the ONNX checker"


def _sound(path: Path, owners: set[str]) -> onnx.ModelProto:
    """The graph, without the weights of another file. CheckFailed: it is none, or names a file that is not one of `owners`."""
    import onnx

    from ..graphs import check_model

    check_graph_file(path)  # before anything that would follow a location out of the folder
    others = external_locations(path) - owners
    if others:
        expected = f"in {' or '.join(owners)}" if owners else "in the file"
        raise CheckFailed(f"{path}: expected all weights {expected}, found some in {sorted(others)[0]!r}")
    try:
        model = onnx.load(str(path), load_external_data=False)
        check_model(path)
    except CompressError:
        raise
    except Exception as error:  # protobuf, the checker's C++ and text decoding raise types of their own
        raise CheckFailed(f"{path}: not a sound ONNX file: {' '.join(str(error).split())}") from None
    return model


def _named(folder: Path, info: BundleInfo) -> str:
    """`graphs` says of each file what it is; a bundle of before it had the field says nothing."""
    found: dict[str, GraphFile] = {name: graph_file(folder, name) for name in info.models}
    said: dict[str, GraphFile] = {**info.graphs}
    wrong = [name for name in {*found, *said} if found.get(name) != said.get(name)]
    if said and wrong:
        raise CheckFailed(f"bundle.json: graphs.{wrong[0]}: expected {found.get(wrong[0])}, found {said.get(wrong[0])}")
    return ", ".join(f"{name}: {graph.layout}" for name, graph in found.items())
