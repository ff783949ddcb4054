"""bundle.json: what a bundle contains, where it came from, and the answers that it must reproduce."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator

from ..errors import CheckFailed, CompressError
from ..fields import Spec
from ..files.regular import read_regular
from ..provenance import Code, Corpus, TeacherOrigin
from ..results import Latency, Machine, ModelResult, TaskInfo
from ..results.teachers import Choice, EnsembleScore
from ..results.vocabulary import VocabularyRecord
from ..runtime.folder import refuse_run
from ..runtime.listed_hashes import BLANK_DIGEST, digest_of
from ..spec.kinds import KINDS

NAME, CARD = "bundle.json", "README.md"
SCHEMA = 1
MOST_BYTES = 16 << 20  # limit of a bundle.json; ours have some tens of kilobytes
UNANSWERABLE = "unanswerable"  # of config.json, for questions: that of `task` in bundle.json

Precision = Literal["fp32", "int8", "avx2", "qdq"]
DTYPES = {"fp32": "fp32", "int8": "q8"}  # their names in transformers.js
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Record(Spec):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class FileEntry(_Record):
    bytes: Annotated[int, Field(ge=0)]
    sha256: Sha256


class Probe(_Record):
    """Our fixed texts, and the logits or vectors of each model for them, one text at a time; for a question the start and
    end of the answer, in characters, its score, and that of no answer."""

    texts: tuple[tuple[str, ...], ...]
    logits: dict[Precision, tuple[tuple[float, ...], ...]]


class Requires(_Record):
    """What is needed to open a graph, judging by its opset, IR version and operators."""

    onnxruntime: str | None = Field(description="oldest release that works; null if not known")
    opset: int
    ir_version: int


class GraphFile(_Record):
    """A graph of the bundle. `unpadded`: its form for padded batches, whose weights are those in `file`."""

    file: str
    format: Literal["fp32", "dynamic", "static", "qdq"] = Field(
        description="fp32; int8 with activation ranges of each run (dynamic), calibrated ranges (static), or those in portable operators "
        "(qdq)"
    )
    unpadded: str | None = None
    requires: Requires


class BundleInfo(_Record):
    schema_version: Literal[1] = SCHEMA
    name: str = Field(description="name of the run it was made from")
    title: str | None = Field(None, description="title of the model card, if it is not `name`")
    created: str = Field(description="ISO 8601, UTC")
    model: str = Field(description="which of the run's models, e.g. `student`")
    teacher: str
    base_model: str | None = Field(
        None, description="as given when shipping, or hub id of the checkpoint that the weights started from"
    )
    licence: str | None = Field(
        None, description="as given when shipping, or licence of the weights that it started from, from their card"
    )
    dataset: str | None = Field(None, description="hub id of the task's data set, if it has one")
    task: TaskInfo
    text_columns: Annotated[tuple[str, ...], Field(min_length=1, max_length=3)]
    labels: tuple[str, ...] = Field(description="labels of the outputs; empty if these are the components of a vector")
    max_length: Annotated[int, Field(ge=1)] = Field(
        description="in tokens, with special tokens; longer texts are cut, or read in windows if the model labels words or finds spans"
    )
    pooling: Literal["mean", "cls"] | None = Field(
        None,
        description="how a text's vector is computed from those of its tokens: their mean, or the first token's; null for other models",
    )
    null_score_diff_threshold: float | None = Field(
        None,
        description="for questions that may have no answer: margin by which the score of no answer must exceed that of the best "
        "span; null: 0",
    )
    models: dict[Precision, ModelResult] = Field(description="as measured in the run: scores, latency, size")
    graphs: dict[Precision, GraphFile] = Field(description="file of each of `models`")
    fastest: Precision | None = Field(
        None,
        description="the one of `models` with the least CPU time (p50) on ONNX Runtime at the first shape; null if not measured",
    )
    baseline: ModelResult
    noise: tuple[Latency, ...] = Field((), description="A/A control: the baseline measured against itself")
    measured_on: Machine
    verified_on: Machine = Field(description="machine on which the probe's logits were computed")
    versions: dict[str, str]
    code: Code | None = Field(
        default=None, description="the code that put the run's result together; older bundles have none"
    )
    shipped_by: Code | None = Field(default=None, description="the code that made the bundle")
    origin: TeacherOrigin | None = Field(default=None, description="of the teacher")
    student_origin: TeacherOrigin | None = Field(
        default=None, description="only of a student that started from a checkpoint of its own, not from its teacher"
    )
    ensemble: EnsembleScore | None = Field(
        default=None, description="scores of several teachers, whose mean the student learnt; null if there is one"
    )
    choices: tuple[Choice, ...] = Field(
        (),
        description="which of several fine-tunings of a teacher was chosen on the tuning split; empty if there was one",
    )
    corpus: Corpus | None = Field(default=None, description="plain text that stages read")
    vocabulary: VocabularyRecord | None = Field(
        default=None,
        description="only of a model with a reduced vocabulary: how many tokens it keeps, and how many texts are tokenized as before",
    )
    recipe: dict[str, Any] = Field(description="the resolved recipe")
    probe: Probe
    files: dict[str, FileEntry] = Field(description="every file but this one")
    digest: Sha256 = Field(BLANK_DIGEST, description="SHA-256 of this file's text with 64 zeros in place of the digest")

    @model_validator(mode="after")
    def _agree(self) -> BundleInfo:
        if self.fastest is not None and self.fastest not in self.models:
            raise ValueError(f"`fastest`: expected one of {sorted(self.models)}, found {self.fastest}")
        if not self.labels and KINDS[self.task.kind].unit != "pair":
            raise ValueError(f"`labels`: expected one or more of a {self.task.kind} task, found none")
        return self


def write_bundle(info: BundleInfo, folder: Path) -> Path:
    """Write `folder/bundle.json` with its own digest, and return its path."""
    blank = info.model_copy(update={"digest": BLANK_DIGEST})
    text = json.dumps(blank.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    path = folder / NAME
    # Bytes: Windows would write other line ends than the digest is of.
    path.write_bytes(_insert_digest(text, digest_of(text, BLANK_DIGEST)).encode())
    return path


def read_bundle(folder: Path) -> BundleInfo:
    """Return the document of a bundle. CompressError: there is none. CheckFailed: it was altered or is something else.

    The digest detects damage. It is no signature: whoever changes a bundle on purpose can write a new one.
    """
    path = folder / NAME
    text = _read(path)
    try:
        info = BundleInfo.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        # A key may hold line breaks.
        where = " ".join(".".join(str(part) for part in first["loc"]).split()) or "the file"
        raise CheckFailed(
            f"{path}: not a bundle of schema {SCHEMA}: {where}: {first['msg'].removeprefix('Value error, ')}"
        ) from None
    if digest_of(text, info.digest) != info.digest:
        raise CheckFailed(f"{path}: was altered: its text does not match its own digest; ship or download it again")
    return info


def _insert_digest(text: str, digest: str) -> str:
    before, separator, after = text.rpartition(BLANK_DIGEST)
    return before + digest + after if separator else text


def _read(path: Path) -> str:
    """Read a file up to a size limit; never a link, a pipe or a device."""
    if path.is_symlink() or not path.exists():
        refuse_run(path.parent)
        problem = "no such file; `compress ship` makes bundles"
        if path.is_symlink():
            problem = "a link, as in the hub's cache; download the bundle with `hf download --local-dir`, or copy it with `cp -rL`"
        raise CompressError(f"{path}: expected a bundle's own file, found {problem}")
    try:
        return read_regular(path, "a bundle's own file", MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckFailed(f"{path}: cannot be read: {error}") from None
    except CompressError as error:
        raise CheckFailed(str(error)) from None
