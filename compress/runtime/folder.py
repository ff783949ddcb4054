"""Settings of a bundle's folder: which model file, labels, text columns, lengths, tokenizer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from ..errors import CompressError
from ..files.regular import read_regular
from .kinds import ANSWER_KINDS, AnswerKind, output_names
from .kinds.kind import Unit
from .kinds.ranking import RANKING, is_cross_encoder
from .passages import MOST_THRESHOLD, THRESHOLD

MODEL_FILES = {
    "int8": "model_quantized.onnx",
    "fp32": "model.onnx",
    "avx2": "model_quint8_avx2.onnx",
    "qdq": "model_qdq.onnx",
}
UNPADDED = "_unpadded.onnx"
# Unit of transformers' classes by the end of their names; the others answer a text.
_UNITS: dict[str, Unit] = {
    "ForTokenClassification": "word",
    "ForQuestionAnswering": "question",
    "ForQuestionAnsweringSimple": "question",
    "ForMultipleChoice": "choice",
    "Model": "pair",
}
# Families that count positions from the row after the padding's: that many rows of the table belong to no token of a text.
POSITIONS_AFTER_PADDING = ("camembert", "mpnet", "roberta", "xlm-roberta")
_WIDTHS = ("hidden_size", "dim", "d_model")  # the families' names for the width of a token's vector
MOST_JSON, _MOST_TOKENIZER = 64 << 20, 1 << 30  # bytes
_MOST_LABELS, _MOST_LENGTH = 10**6, 10**6  # of numbers that a file may hold: what is made of them takes memory
EXPECTED = "expected a bundle (its layout is in docs/bundle.md)"


@dataclass(frozen=True)
class Settings:
    """A folder's settings for its model. `columns`: names of an example's texts, None if unknown; for a choice the last one holds the
    endings. `impossible`: a question may have no answer; `threshold`: the margin by which no answer must beat the best span; `width`:
    length of a vector, for a model that makes vectors and has no `labels`."""

    labels: tuple[str, ...]
    kind: AnswerKind
    columns: tuple[str, ...] | None
    max_length: int
    pad_id: int
    truncation_side: str
    impossible: bool = False
    threshold: float = 0.0
    width: int = 0


def find_model(folder: Path, precision: str | None = None) -> tuple[str, Path]:
    """Return (precision, file) under `onnx/` or beside the configuration; int8 first if `precision` is None.

    In a bundle the default is the first form that bundle.json lists: if its file is missing, no other is used in its place.
    """
    if precision is not None and precision not in MODEL_FILES:
        raise CompressError(f"precision: expected int8, fp32, avx2 or qdq, found {precision!r}")
    wanted = [precision] if precision else _default_precision(folder) or list(MODEL_FILES)
    there = {name: path for name in MODEL_FILES if (path := _model_file(folder, name))}
    for name in wanted:
        if name in there:
            return name, there[name]
    expected = " or ".join(f"onnx/{MODEL_FILES[name]}" for name in wanted)
    others = f"; it has {' and '.join(there)}" if there else "; `compress ship` makes bundles"
    raise CompressError(f"{folder}: expected {expected}, found neither there nor in the folder itself{others}")


def _model_file(folder: Path, precision: str) -> Path | None:
    """Return the file of a precision, if the folder has it."""
    places = (folder / "onnx" / MODEL_FILES[precision], folder / MODEL_FILES[precision])
    return next((path for path in places if path.is_file()), None)


def _default_precision(folder: Path) -> list[str]:
    """Return the precision in which a bundle is opened by default; empty if nothing lists its precisions."""
    models = read_json(folder / "bundle.json", optional=True).get("models")
    return [name for name in MODEL_FILES if isinstance(models, dict) and name in models][:1]


def unpadded_beside(model: Path) -> Path:
    """Return the path of the unpadded form of a model file, which may not exist; its weights are in the model file."""
    return model.with_name(f"{model.stem}{UNPADDED}")


def read_settings(folder: Path) -> Settings:
    """Read labels, text columns and lengths from config.json, tokenizer_config.json and, if there is one, bundle.json."""
    if not folder.is_dir():
        raise CompressError(f"{folder}: expected a bundle's folder, found {'a file' if folder.exists() else 'nothing'}")
    config = read_json(folder / "config.json")
    bundle = read_json(folder / "bundle.json", optional=True)
    tokenizer = read_json(folder / "tokenizer_config.json", optional=True)
    unit = _unit(folder, config, bundle)
    labels = () if unit in ("pair", "choice") else label_names(folder / "config.json", config)
    labels = output_names("choice", labels) if unit == "choice" else labels
    return Settings(
        labels=labels,
        kind=_answer_kind(folder, config, bundle, unit, len(labels)),
        columns=_columns(folder / "bundle.json", bundle, unit),
        max_length=_max_length(folder, bundle, tokenizer, config),
        pad_id=whole_number(folder / "config.json", config, "pad_token_id", 0),
        truncation_side="left" if tokenizer.get("truncation_side") == "left" else "right",
        impossible=bool(_task(bundle).get("unanswerable")),
        threshold=_threshold(folder / "config.json", config) if unit == "question" else 0.0,
        width=_width(folder / "config.json", config) if unit == "pair" else 0,
    )


def _answer_kind(folder: Path, config: dict[str, Any], bundle: dict[str, Any], unit: Unit, outputs: int) -> AnswerKind:
    """Return the first kind that fits, among those whose models have the class that config.json names."""
    problem, ranks = config.get("problem_type"), _ranks(config, bundle, outputs)
    kinds = [kind for kind in ANSWER_KINDS.values() if kind.unit == unit and (ranks or kind is not RANKING)]
    for kind in kinds:
        if kind.fits(problem, outputs):
            return kind
    known = " or ".join(dict.fromkeys(str(kind.problem_type) for kind in kinds))
    raise CompressError(f"{folder / 'config.json'}: problem_type: expected {known}, found {problem}")


def _task(bundle: dict[str, Any]) -> dict[str, Any]:
    return task if isinstance(task := bundle.get("task"), dict) else {}


def _ranks(config: dict[str, Any], bundle: dict[str, Any], outputs: int) -> bool:
    """Whether one output is the relevance of a passage, and no other score: by bundle.json, or, if there is none, by config.json."""
    task = _task(bundle)
    return task.get("kind") == "ranking" if task else is_cross_encoder(config, outputs)


def _unit(folder: Path, config: dict[str, Any], bundle: dict[str, Any]) -> Unit:
    """Return the unit by the model's class; if config.json names none, by the kind of task in bundle.json."""
    kind = ANSWER_KINDS.get(str(_task(bundle).get("kind")))
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        return "text" if kind is None else kind.unit
    ends = [end for end in _UNITS if str(architectures[0]).endswith(end)]
    unit: Unit = _UNITS[ends[0]] if ends else "text"
    if kind is not None and kind.unit != unit:
        raise CompressError(
            f"{folder / 'config.json'}: architectures: found {architectures[0]}, which does not belong to a task of the kind "
            f"{_task(bundle)['kind']}, as bundle.json has it; ship or download the bundle again"
        )
    return unit


def _columns(path: Path, bundle: dict[str, Any], unit: Unit) -> tuple[str, ...] | None:
    """Return the names of an example's texts in the bundle.json at `path`. CompressError: more than the model reads."""
    columns = bundle.get("text_columns")
    if not isinstance(columns, list) or not columns:
        return None
    most = 3 if unit == "choice" else 2
    if len(columns) > most:
        raise CompressError(
            f"{path}: text_columns: expected at most {most} for this kind of model, found {len(columns)}; ship or download the bundle again"
        )
    return tuple(map(str, columns))


def _threshold(path: Path, config: dict[str, Any]) -> float:
    """Return the threshold above which no answer is given, by the config at `path`; 0 if it is missing."""
    threshold = config.get(THRESHOLD)
    if threshold is None:
        return 0.0
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not abs(threshold) <= MOST_THRESHOLD:
        raise CompressError(
            f"{path}: {THRESHOLD}: expected a number from {-MOST_THRESHOLD:g} to {MOST_THRESHOLD:g}, found {threshold!r}"
        )
    return float(threshold)


def _width(path: Path, config: dict[str, Any]) -> int:
    """Return the length of the model's vectors, by the config at `path`."""
    name = next((name for name in _WIDTHS if config.get(name) is not None), _WIDTHS[0])
    if width := whole_number(path, config, name, 0):
        return width
    raise CompressError(f"{path}: {name}: expected the numbers of a token's vector, found {config.get(name)!r}")


def refuse_run(folder: Path) -> None:
    """Raise `CompressError` if the folder is a run, for readers of bundles and checkpoints."""
    if (folder / "result.json").is_file():
        raise CompressError(
            f"{folder}: is a run; `compress ship {folder} -o DIR` makes a bundle of it, `compress checkpoint` a checkpoint"
        )


def read_json(path: Path, optional: bool = False, expected: str = EXPECTED) -> dict[str, Any]:
    """Return a JSON object; {} when it is `optional` and absent. `expected`: what it belongs to, for the message."""
    if not path.exists():
        if optional:
            return {}
        refuse_run(path.parent)
        raise CompressError(f"{path}: no such file; {expected}")
    data = read_regular(path, "a JSON file", MOST_JSON)
    try:
        document = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CompressError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(document, dict):
        raise CompressError(f"{path}: expected a JSON object, found {type(document).__name__}")
    return document


def label_names(path: Path, config: dict[str, Any]) -> tuple[str, ...]:
    """Return the class names in id order from the config at `path` (`LABEL_0` … if it has none)."""
    names = config.get("id2label")
    if names is None or names == {}:
        # As transformers does.
        count = whole_number(path, config, "num_labels", 2)
        if count > _MOST_LABELS:
            raise CompressError(f"{path}: num_labels: expected at most {_MOST_LABELS:,} without names, found {count:,}")
        names = {str(i): f"LABEL_{i}" for i in range(count)}
    if not isinstance(names, dict) or not names or set(names) != {str(i) for i in range(len(names))}:
        raise CompressError(f"{path}: id2label: expected names for the ids 0, 1, 2 …, found {names!r}")
    labels = tuple(str(names[str(i)]) for i in range(len(names)))
    if len(set(labels)) != len(labels):
        raise CompressError(f"{path}: id2label: expected different names, found {list(labels)}")
    return labels


def whole_number(path: Path, config: dict[str, Any], name: str, default: int) -> int:
    """Return a field of the config at `path`; `default` if it is missing or null."""
    value = config.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or not 0 <= value < 2**31:
        raise CompressError(f"{path}: {name}: expected a whole number, found {value!r}")
    return value


def _max_length(folder: Path, bundle: dict[str, Any], tokenizer: dict[str, Any], config: dict[str, Any]) -> int:
    """Return the bundle's own length; else the smaller of the tokenizer's limit and the positions; else 512."""
    if "max_length" in bundle:
        if isinstance(bundle["max_length"], int) and 0 < bundle["max_length"] < _MOST_LENGTH:
            return bundle["max_length"]
        raise CompressError(f"{folder / 'bundle.json'}: max_length: expected tokens, found {bundle['max_length']!r}")
    positions = config.get("max_position_embeddings")
    if config.get("model_type") in POSITIONS_AFTER_PADDING and isinstance(positions, int | float):
        positions -= whole_number(folder / "config.json", config, "pad_token_id", 1) + 1  # 1: transformers' default
    limits = (tokenizer.get("model_max_length"), positions)
    return min(
        [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < _MOST_LENGTH], default=512
    )


def read_tokenizer(path: Path, settings: Settings) -> tokenizers.Tokenizer:
    """Return the tokenizer, truncating the longer text first to `settings.max_length`, never padding."""
    if not path.exists():
        raise CompressError(f"{path}: no such file; {EXPECTED}")
    tokenizer = open_tokenizer(path)
    unit, columns = settings.kind.unit, settings.columns
    pair = unit in ("question", "choice") or (unit != "pair" and columns is not None and len(columns) == 2)
    special = tokenizer.num_special_tokens_to_add(pair)
    if settings.max_length <= special:  # tokenizers would then silently not cut at all
        raise CompressError(
            f"{path}: max_length is {settings.max_length}; expected more than the {special} special tokens"
        )
    tokenizer.no_padding()  # some files fix a length, which would cost time on every text
    tokenizer.enable_truncation(settings.max_length, strategy="longest_first", direction=settings.truncation_side)
    return tokenizer


def open_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer as the file has it. CompressError: it cannot be read, or is none."""
    data = read_regular(path, "a tokenizer's file", _MOST_TOKENIZER)
    try:
        return tokenizers.Tokenizer.from_buffer(data)
    except Exception as error:  # tokenizers raises bare Exception
        raise CompressError(f"{path}: not a tokenizer: {error}") from None
