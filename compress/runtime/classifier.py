"""Texts in, predictions out: tokenize, batch by length, run the ONNX model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

from ..errors import CheckFailed, CompressError
from ..sessions import open_session
from .folder import find_model, read_settings, read_tokenizer

Text = str | tuple[str, str]

KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
WINDOW = 4096  # texts tokenized at once: bounds memory however many are given


@dataclass(frozen=True)
class Prediction:
    """The most probable label, its probability, and all of them by label.

    Regression: `score` is the model's output, `label` is None and `scores` is empty.
    """

    label: str | None
    score: float
    scores: dict[str, float] = field(default_factory=dict)


class Classifier:
    """A text classifier or regressor on the CPU. One instance may be used from several threads.

    `precision` is "int8" or "fp32"; left out, int8 where the folder has it. `threads` is for one model
    run (default: the usable cores). Raises `CompressError` naming the file that is missing or wrong.
    """

    def __init__(self, folder: str | Path, *, precision: str | None = None, threads: int | None = None) -> None:
        self.folder = Path(folder)
        self.settings = read_settings(self.folder)
        self.precision, self.model = find_model(self.folder, precision)
        self.tokenizer = read_tokenizer(self.folder / "tokenizer.json", self.settings)
        self._session = open_session(self.model, threads)
        self._inputs = _inputs(self._session, self.model)
        self._output = _output(self._session)

    @property
    def labels(self) -> tuple[str, ...]:
        """Class names in the order of the logits; one name for regression."""
        return self.settings.labels

    def predict(self, texts: Text | Sequence[Text], *, batch_size: int = 64, tokens: int = 4096) -> list[Prediction]:
        """One prediction per text, in order. See `logits` for what `texts` may be and for the batches."""
        outputs = self.logits(texts, batch_size=batch_size, tokens=tokens)
        broken = np.flatnonzero(~np.isfinite(outputs).all(axis=1))
        if broken.size:
            raise CheckFailed(f"{self.model}: gives a non-finite score for texts[{broken[0]}]; do not use this model")
        if self.settings.regression:
            return [Prediction(None, float(row[0])) for row in outputs]
        return [self._prediction(row) for row in softmax(outputs)]

    def logits(self, texts: Text | Sequence[Text], *, batch_size: int = 64, tokens: int = 4096) -> np.ndarray:
        """float32 [texts, classes], in the order given.

        `texts` holds strings, or pairs of strings where the task has two text columns; a single one may
        be given bare. Examples are batched by length: at most `batch_size` of them and at most `tokens`
        tokens with padding. An int8 model that quantizes activations on the fly scales them per batch, so its
        last digits depend on what shares a batch; `batch_size=1` makes each answer independent.
        """
        if batch_size < 1 or tokens < 1:
            raise CompressError(f"batch_size is {batch_size} and tokens {tokens}; expected at least 1 of each")
        examples = self._examples(texts)
        outputs = np.zeros((len(examples), len(self.labels)), np.float32)
        for start in range(0, len(examples), WINDOW):
            encodings = self._encode(examples, start, start + WINDOW)
            lengths = np.array([len(encoding) for encoding in encodings])
            for chunk in _chunks(lengths, batch_size, tokens):
                outputs[start + chunk] = self._run([encodings[i] for i in chunk])
        return outputs

    def _examples(self, texts: Text | Sequence[Text]) -> list[Text]:
        if isinstance(texts, str) or (self.columns == 2 and _is_pair(texts) and isinstance(texts, tuple)):
            texts = [texts]  # type: ignore[list-item]
        try:
            examples = list(texts)
        except TypeError:
            raise CompressError(f"texts: expected a list of texts, found {type(texts).__name__}") from None
        for index, example in enumerate(examples):
            self._check_example(index, example)
        return [example if isinstance(example, str) else (example[0], example[1]) for example in examples]

    @property
    def columns(self) -> int | None:
        """Texts per example, 1 or 2; None where the folder does not say."""
        return None if self.settings.columns is None else len(self.settings.columns)

    def _check_example(self, index: int, example: object) -> None:
        found = "a text" if isinstance(example, str) else "a pair" if _is_pair(example) else type(example).__name__
        accepted = {1: ["a text"], 2: ["a pair"], None: ["a text", "a pair"]}[self.columns]
        if found not in accepted:
            names = "" if self.settings.columns is None else f" ({', '.join(self.settings.columns)})"
            raise CompressError(f"texts[{index}]: expected {' or '.join(accepted)}{names}, found {found}")

    def _encode(self, examples: list[Text], start: int, stop: int) -> list[tokenizers.Encoding]:
        try:
            return self.tokenizer.encode_batch_fast(examples[start:stop])  # type: ignore[arg-type]
        except TypeError:
            bad = next(i for i, example in enumerate(examples) if i >= start and not _is_unicode(example))
            raise CompressError(f"texts[{bad}]: expected Unicode text, found half of a surrogate pair") from None

    def _run(self, encodings: list[tokenizers.Encoding]) -> np.ndarray:
        shape = (len(encodings), max(len(encoding) for encoding in encodings))
        batch = {name: np.zeros(shape, dtype) for name, dtype in self._inputs.items()}
        batch["input_ids"] += self.settings.pad_id
        for row, encoding in enumerate(encodings):
            values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
            values["token_type_ids"] = encoding.type_ids
            for name, array in batch.items():
                array[row, : len(encoding)] = values[name]
        try:
            outputs = np.asarray(self._session.run([self._output], batch)[0])
        except Exception as error:  # the binding's own types share no base but Exception
            raise CompressError(f"{self.model}: ONNX Runtime failed: {' '.join(str(error).split())}") from None
        if outputs.shape != (len(encodings), len(self.labels)):
            raise CompressError(
                f"{self.model}: expected scores [{len(encodings)}, {len(self.labels)}] (config.json has "
                f"{len(self.labels)} labels), found {list(outputs.shape)}; the model and config.json do not belong together"
            )
        return outputs

    def _prediction(self, probabilities: np.ndarray) -> Prediction:
        scores = dict(zip(self.labels, map(float, probabilities), strict=True))
        best = self.labels[int(probabilities.argmax())]
        return Prediction(best, scores[best], scores)


def softmax(logits: np.ndarray) -> np.ndarray:
    """float64 [texts, classes]; each row sums to 1."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _inputs(session: onnxruntime.InferenceSession, path: Path) -> dict[str, type]:
    found = {item.name: item.type for item in session.get_inputs()}
    for name, kind in found.items():
        if name not in KNOWN_INPUTS or kind not in INTEGERS:
            raise CompressError(
                f"{path}: expected integer inputs among {', '.join(KNOWN_INPUTS)}, found {name}: {kind}"
            )
    if "input_ids" not in found:
        raise CompressError(f"{path}: expected an input `input_ids`, found {', '.join(found) or 'none'}")
    return {name: INTEGERS[kind] for name, kind in found.items()}


def _output(session: onnxruntime.InferenceSession) -> str:
    names = [item.name for item in session.get_outputs()]
    return "logits" if "logits" in names else names[0]


def _chunks(lengths: np.ndarray, most: int, tokens: int) -> Iterator[np.ndarray]:
    """Indices in batches, shortest first: at most `most` examples, padded size at most `tokens`."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        full = end == len(order) or end - start == most or (end - start + 1) * lengths[order[end]] > tokens
        if full:
            yield order[start:end]
            start = end


def _is_pair(example: object) -> bool:
    return isinstance(example, tuple | list) and len(example) == 2 and all(isinstance(part, str) for part in example)


def _is_unicode(example: Text) -> bool:
    try:
        "".join(example).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
