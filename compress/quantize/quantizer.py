"""A quantization method as one record: what recipes and plans need to know, and the function that writes its int8 file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import CompressError
from ..spec.quantization import Quantize

if TYPE_CHECKING:
    from .evaluator import Evaluator
    from .inc_tuning import Program
    from .qat_params import Trained
    from .sampling import Feed

STATIC_FORMATS = ("static", "qdq")  # activation ranges are fixed before a run
NOT_SEARCHED = frozenset({"max_drop", "max_flips"})
NOT_CALIBRATED = frozenset(
    {"calibration_examples", "calibration", "percentile", "alpha", "outlier_splitting", "bias_correction"}
)
_CALIBRATION = frozenset({"calibration_examples", "calibration", "percentile", "calibration_text"})
_OF_THE_FILES = {"portable", "avx2", "calibration_text"}  # which files to write; keys hold the text's content


@dataclass(frozen=True)
class Quantizer:
    """A method of `quantize`. Importing one imports neither onnx nor torch.

    `quantize` writes the file of an `Int8Job`, checks it and returns its part of the stage's record. `int8_format`: of its
    int8 file. `unused`: fields of the spec that its files do not depend on. `other_files`: precision, `avx2` or `qdq` -> the
    method that makes that file beside the `int8` one; the method itself if none is named.

    `smooths`: its files may have SmoothQuant's factors. `trains`: its ranges are those of a `quantize_aware` stage.
    `evaluates`: it needs the tuning split. `counts_flips`: and further texts, if `max_flips` needs more. `depends_on`: which
    properties of this machine its choice depends on, besides the model. `needs_matmuls`: it is useless for a model that has
    only tables. `packages`: required distributions, installed by pip as `requirement`, whose versions change its file.
    `problem`: what it cannot do of a spec, if anything.
    """

    name: str
    summary: str
    quantize: Callable[[Int8Job], dict[str, Any]]
    int8_format: Literal["dynamic", "static", "qdq"] = "static"
    unused: frozenset[str] = frozenset()
    other_files: Mapping[str, str] = field(default_factory=dict)
    smooths: bool = False
    trains: bool = False
    evaluates: bool = False
    counts_flips: bool = False
    depends_on: frozenset[Literal["isa", "cpu"]] = frozenset()
    needs_matmuls: bool = False
    packages: tuple[str, ...] = ()
    requirement: str = ""
    problem: Callable[[Quantize], str | None] = lambda spec: None

    def calibrates(self, int8_format: str) -> bool:
        """Whether the ranges of a file in this format come from texts."""
        return int8_format in STATIC_FORMATS and not self.trains

    def described(self, spec: Quantize, int8_format: str) -> dict[str, Any]:
        """Return the settings that a file depends on, and no others. Files and keys call the int8 format `format`."""
        unused = self.unused | (set() if spec.calibration == "percentile" else {"percentile"})
        return {**spec.model_dump(mode="json", exclude=_OF_THE_FILES | unused), "format": int8_format}

    def read_fields(self, spec: Quantize, int8_format: str) -> frozenset[str]:
        """Return the fields that a file in this format depends on; for a method that `trains`, also those that set the
        initial ranges."""
        unread = self.unused - (_CALIBRATION if self.trains else set())
        unread |= set() if self.trains or self.calibrates(int8_format) else {"calibration_text"}
        unread |= set() if spec.calibration == "percentile" else {"percentile"}
        return frozenset(Quantize.model_fields) - unread

    def check_packages(self) -> None:
        """Raise CompressError if a package is missing. Imports none."""
        modules = [name.replace("-", "_") for name in self.packages]
        missing = [name for name in modules if importlib.util.find_spec(name) is None]
        if missing:
            raise CompressError(
                f"quantize.method: {self.name} needs {' and '.join(missing)}, found none installed; "
                f"pip install '{self.requirement}'"
            )


@dataclass(frozen=True)
class Int8Job:
    """An int8 file to make: `path`, from the fp32 file `source`.

    `feeds`: padded batches of calibration texts. `evaluator`: for methods that need one. `trained`: results of a
    `quantize_aware` stage. `read_program`: (names of the graph's inputs, opset) -> the same checkpoint in torch.
    """

    quantizer: Quantizer
    source: Path
    path: Path
    spec: Quantize
    int8_format: str
    feeds: Sequence[Feed] = ()
    evaluator: Evaluator | None = None
    trained: Trained | None = None
    read_program: Callable[[Sequence[str], int], Program] | None = None

    def described(self) -> dict[str, Any]:
        return self.quantizer.described(self.spec, self.int8_format)

    def required_evaluator(self) -> Evaluator:
        """Return the evaluator. CompressError: there is none."""
        if self.evaluator is None:
            raise CompressError(
                f"{self.source}: `method: {self.quantizer.name}` needs texts that were held out of training, and there are none"
            )
        return self.evaluator
