"""Write a model repository of Triton Inference Server with a bundle's graph, for its onnxruntime backend."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...runtime.folder import find_model
from ...sessions.outputs import VECTORS
from ...spec.kinds import KINDS
from ..document import BundleInfo, read_bundle
from ..files import contents
from ..target import building, move_into_place, recover

CONFIG, LABELS, MODEL = "config.pbtxt", "labels.txt", "1/model.onnx"
MAX_BATCH = 32  # requests that the server may combine
_MARK = "# Written by `compress ship`"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CONFIG = """\
{mark}: {precision} of {run}.{needs}
name: "{name}"
backend: "onnxruntime"
max_batch_size: {max_batch}
input [
{inputs}
]
output [
{outputs}
]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ }}
parameters {{ key: "intra_op_thread_count" value: {{ string_value: "1" }} }}
"""


def checked_model_folder(bundle: Path, repository: Path, force: bool) -> Path:
    """Return where the model of `bundle` goes: `repository` with the name of the bundle's folder.

    CompressError: a name that a URL cannot hold, a target inside or around the bundle, or one with files that `force` may not
    replace: any but those of a model written here before.
    """
    bundle = Path(bundle).resolve()
    target = Path(repository).resolve() / bundle.name
    if not _NAME.fullmatch(bundle.name):
        raise CompressError(
            f"--triton: the model is named as the bundle's folder; expected letters, digits, `_`, `-` and `.`, found {bundle.name!r}"
        )
    if target == bundle or target in bundle.parents or bundle in target.parents:
        raise CompressError(
            f"--triton: {target} and the bundle {bundle} would be one inside the other; give another folder"
        )
    recover(target)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise CompressError(
            f"{target}: expected a folder to make, found {'a link' if target.is_symlink() else 'a file'}"
        )
    if target.is_dir() and any(target.iterdir()):
        _check_ours(target, force)
    return target


def _check_ours(target: Path, force: bool) -> None:
    if not force:
        raise CompressError(
            f"{target}: expected an empty or new folder, found files in it; `--force` replaces what ship wrote"
        )
    kinds = contents(target)
    foreign = [name for name, kind in kinds.items() if name not in (CONFIG, LABELS, MODEL) or kind != "file"]
    if foreign:
        raise CompressError(
            f"{target}: not replaced, because {foreign[0]!r} was not written by `compress ship`; move it away first"
        )
    if CONFIG not in kinds or not (target / CONFIG).read_bytes().startswith(_MARK.encode()):
        raise CompressError(
            f"{target}: not replaced, because its {CONFIG} was not written by `compress ship`; move it away first"
        )


def write_triton_model(bundle: Path, repository: Path, *, force: bool = False) -> Path:
    """Write `repository/NAME`, NAME being that of the bundle's folder: config.pbtxt, labels.txt and 1/model.onnx; return its
    path.

    The graph is the one that the bundle is opened with by default: int8 if it has one. `force` replaces a model written
    before, and nothing else. Raises `CompressError`: the bundle, the target.
    """
    bundle = Path(bundle).resolve()
    target, info = checked_model_folder(bundle, repository, force), read_bundle(bundle)
    precision, graph = find_model(bundle)
    with building(target) as folder:
        (folder / MODEL).parent.mkdir()
        shutil.copyfile(graph, folder / MODEL)
        if _names_labels(info):
            lines = [" ".join(label.split()) for label in info.labels]
            (folder / LABELS).write_text("\n".join(lines) + "\n", encoding="utf-8")
        (folder / CONFIG).write_text(_config(target.name, info, precision, graph), encoding="utf-8")
        move_into_place(folder, target, replaces=force)
    return target


def _names_labels(info: BundleInfo) -> bool:
    """Whether the server can name the labels of an output: it expects one answer for each text."""
    return bool(info.task.labels) and KINDS[info.task.kind].unit == "text"


def _config(name: str, info: BundleInfo, precision: str, graph: Path) -> str:
    import onnx

    model = onnx.load(str(graph), load_external_data=False).graph
    labels = f' label_filename: "{LABELS}"' if _names_labels(info) else ""
    file = info.graphs.get(precision)  # type: ignore[call-overload]
    needs = file.requires.onnxruntime if file else None
    return _CONFIG.format(
        mark=_MARK,
        precision=precision,
        run=" ".join(info.name.split()),
        needs=f" It needs ONNX Runtime {' '.join(needs.split())} or later." if needs else "",
        name=name,
        max_batch=MAX_BATCH,
        inputs=",\n".join(_tensor(value) for value in model.input),
        outputs=",\n".join(_tensor(value, labels) for value in _answers(model.output)),
    )


def _answers(outputs: Sequence[Any]) -> list[Any]:
    """Return the outputs; of a sentence encoder only the vectors, because the states would be sent with each answer."""
    return [value for value in outputs if value.name == VECTORS] or list(outputs)


def _tensor(value: Any, more: str = "") -> str:
    """Describe a graph's input or output without its first dimension, the batch, which is the server's; -1 is any length."""
    import onnx

    tensor = value.type.tensor_type
    kind = onnx.TensorProto.DataType.Name(tensor.elem_type).replace("FLOAT", "FP32")
    dims = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim[1:]]
    shape = ", ".join(map(str, dims))
    return f'  {{ name: "{value.name}" data_type: TYPE_{kind} dims: [ {shape} ]{more} }}'
