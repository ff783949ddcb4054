"""The checks of a bundle's graphs, one by one. They open the graphs, so they run in a separate process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CheckFailed, CompressError, readable
from ...runtime.folder import MODEL_FILES, unpadded_beside
from ...sessions.checks import check_graph_file, check_owner
from ..document import BundleInfo, GraphFile
from ..graph_files import graph_file
from .answers import answer_steps
from .report import Check, Step

if TYPE_CHECKING:
    import onnx

FIRST_RUN = "labels"  # the first check in which a runtime opens a graph


class Verification:
    """The checks of the graphs in a bundle whose files are the ones it lists, in order: `begin` returns the next one, `make`
    runs one. If one of the graphs is not sound, answers and scores are not checked."""

    def __init__(self, folder: Path, info: BundleInfo, *, simulate: bool = False, **scores: Any) -> None:
        """`scores`: task, data_dir, own and threads, as for `verify`, in JSON."""
        self._steps = self._all_steps(folder, info, simulate, scores)
        self._failed = False

    def begin(self) -> Step | None:
        return next(self._steps, None)

    def make(self, step: Step) -> Check:
        """Run the check. Anything that goes wrong with an untrusted graph is a failed check."""
        problem = ""
        try:
            return Check(name=step.name, passed=True, detail=readable(step.detail()))
        except (KeyboardInterrupt, SystemExit):
            raise
        except CompressError as error:
            problem = str(error)
        except BaseException as error:  # libraries raise anything, and a panic of tokenizers is not an Exception
            problem = f"{step.file}: {type(error).__name__}: {' '.join(str(error).split())}"
        self._failed = True
        return Check(name=step.name, passed=False, detail=readable(problem))

    def checks(self) -> list[Check]:
        """Run all checks in this process."""
        checks = []
        while (step := self.begin()) is not None:
            checks.append(self.make(step))
        return checks

    def _all_steps(self, folder: Path, info: BundleInfo, simulate: bool, scores: dict[str, Any]) -> Iterator[Step]:
        yield Step("models", "bundle.json", lambda: _expected_models(info))
        if not self._failed:
            yield from _graph_steps(folder, info)
        if not self._failed:
            yield Step("graphs", "bundle.json", lambda: _check_descriptions(folder, info))
        if not self._failed:
            yield from answer_steps(folder, info, simulate=simulate)
            yield from _score_steps(folder, info, **scores)


def _score_steps(
    folder: Path,
    info: BundleInfo,
    task: str | None = None,
    data_dir: str | None = None,
    own: dict[str, Any] | None = None,
    threads: int | None = None,
) -> Iterator[Step]:
    if task is None and data_dir is None and own is None:
        return
    from ...tasks import OwnFiles
    from .accuracy import load_measured

    files = None if own is None else OwnFiles.from_json(own)
    yield from load_measured(info, task, Path(data_dir) if data_dir else None, files).steps(folder, threads)


def _graph_steps(folder: Path, info: BundleInfo) -> Iterator[Step]:
    files = {precision: _model(folder, precision) for precision in info.models}
    for precision, path in files.items():
        yield Step(f"onnx {precision}", f"onnx/{path.name}", lambda path=path: _graph(path))
    for precision, path in files.items():
        unpadded = unpadded_beside(path)
        if unpadded.is_file():
            yield Step(f"onnx {precision} unpadded", f"onnx/{unpadded.name}", lambda path=path: _check_unpadded(path))


def _model(folder: Path, precision: str) -> Path:
    return folder / "onnx" / MODEL_FILES[precision]


def _expected_models(info: BundleInfo) -> str:
    """Refuse a graph that was not measured: a runtime would pick it up by its name."""
    expected = {f"onnx/{MODEL_FILES[precision]}" for precision in info.models}
    actual = {name for name in info.files if name.endswith(".onnx")}
    actual -= {unpadded_beside(Path(name)).as_posix() for name in expected}
    if actual != expected or not expected:
        raise CheckFailed(f"expected {sorted(expected)}, found {sorted(actual)}")
    return ", ".join(sorted(actual))


def _graph(path: Path) -> str:
    return f"{len(_sound_graph(path, set()).graph.node)} nodes, all weights inside, accepted by the ONNX checker"


def _check_unpadded(path: Path) -> str:
    """Check the unpadded form of the graph file `path`: its weights are there, and nowhere else."""
    from ...graphs.model_files import get_metadata

    unpadded = unpadded_beside(path)
    model = _sound_graph(unpadded, {path.name})
    check_owner(unpadded, get_metadata(model), path, path.read_bytes())
    return f"{len(model.graph.node)} nodes, weights in {path.name}, accepted by the ONNX checker"


def _sound_graph(path: Path, owners: set[str]) -> onnx.ModelProto:
    """Return the graph, without the weights of another file. CheckFailed: it is not sound, or names a file that is not one
    of `owners`."""
    import onnx

    from ...graphs.model_files import check_model

    # Before anything that would follow a location out of the folder.
    others = check_graph_file(path).locations - owners
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


def _check_descriptions(folder: Path, info: BundleInfo) -> str:
    """Check that `graphs` describes each file as it is."""
    expected: dict[str, GraphFile] = {name: graph_file(folder, name) for name in info.models}
    recorded: dict[str, GraphFile] = {**info.graphs}
    wrong = [name for name in {*expected, *recorded} if expected.get(name) != recorded.get(name)]
    if wrong:
        raise CheckFailed(
            f"bundle.json: graphs.{wrong[0]}: expected {expected.get(wrong[0])}, found {recorded.get(wrong[0])}"
        )
    return ", ".join(f"{name}: {graph.format}" for name, graph in expected.items())
