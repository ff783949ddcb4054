"""Read examples from an iterable, checked one by one and gathered in windows of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from ..errors import CompressError

Text = str | tuple[str, str]

FIRST = 256  # examples of a stream's first window: answers begin early, and sorting still pays
MOST = 4096  # examples, and
MOST_CHARACTERS = 1 << 24  # of a text in which answers have positions, which are float32 numbers
CHARACTERS = 1_000_000  # together with `MOST`, this bounds the memory of a window

Example = TypeVar("Example")


class Windowed(ABC, Generic[Example]):
    """Reads examples, checked by `_checked`, in windows. `name`: their name in messages."""

    name: ClassVar[str] = "texts"

    def windows(self, texts: object, most: int | None = None) -> Iterator[list[Example]]:
        """Yield windows in order, read only when they are requested.

        `most` examples each; by default few at first and then twice as many each time, or at once as many as bounded memory allows if
        `texts` is a sequence. When reading fails, what was read comes first and then the error; CompressError names the example.
        """
        source = self._source(texts)
        first = most or (MOST if isinstance(source, Sequence) else FIRST)
        return self._windows(source, first, most or MOST)

    def _source(self, texts: object) -> Iterable[object]:
        if isinstance(texts, str):
            return [texts]
        refusal = f"{self.name}: expected {self.name} in a list or a stream, found {type(texts).__name__}"
        if not isinstance(texts, Iterable) or isinstance(texts, (Mapping, bytes)):
            raise CompressError(refusal)
        if (dimensions := getattr(texts, "ndim", 1)) != 1:  # a data frame would be read as the names of its columns
            remedy = "give one column, or rows as lists" if dimensions else "give a list"
            raise CompressError(f"{refusal} of {dimensions} dimensions; {remedy}")
        return texts

    def _windows(self, source: Iterable[object], limit: int, most: int) -> Iterator[list[Example]]:
        window: list[Example] = []
        characters = 0
        try:
            for index, example in enumerate(source):
                window.append(self._checked(index, example))
                characters += self._characters(window[-1])
                if len(window) == limit or characters >= CHARACTERS:
                    yield window
                    window, characters, limit = [], 0, min(2 * limit, most)
        except Exception:
            if window:
                yield window
            raise
        if window:
            yield window

    @abstractmethod
    def _checked(self, index: int, example: object) -> Example:
        """Return the checked example. CompressError: the object at `index` is no example."""

    @abstractmethod
    def _characters(self, example: Example) -> int: ...


class TextReader(Windowed[Text]):
    """Reads texts or pairs. `columns` names an example's texts, one or two; None if unknown."""

    def __init__(self, columns: tuple[str, ...] | None) -> None:
        self.columns = columns
        self._accepted = {1: ["a text"], 2: ["a pair"], None: ["a text", "a pair"]}[columns and len(columns)]

    def _source(self, texts: object) -> Iterable[object]:
        if self.columns is not None and len(self.columns) == 2 and _is_bare_pair(texts):
            return [texts]
        return super()._source(texts)

    def _checked(self, index: int, example: object) -> Text:
        pair = _is_pair(example)
        kind = "a text" if isinstance(example, str) else "a pair" if pair else _type_name(example)
        if kind not in self._accepted:
            self._check_parts(index, example)
            names = "" if self.columns is None else f" ({', '.join(self.columns)})"
            raise CompressError(f"{self.name}[{index}]: expected {' or '.join(self._accepted)}{names}, found {kind}")
        text: Text = (example[0], example[1]) if pair else example  # type: ignore[index, assignment]
        for part in _texts_of(text):
            check_unicode(f"{self.name}[{index}]", part)
        return text

    def _check_parts(self, index: int, example: object) -> None:
        """Raise `CompressError` if `example` is a pair but for one of its parts, which is no text."""
        if "a pair" not in self._accepted or not isinstance(example, tuple | list) or len(example) != 2:
            return
        place = next(number for number, part in enumerate(example) if not isinstance(part, str))
        name = "" if self.columns is None else f" ({self.columns[place]})"
        raise CompressError(
            f"{self.name}[{index}][{place}]: expected a text{name}, found {type(example[place]).__name__}"
        )

    def _characters(self, example: Text) -> int:
        return sum(map(len, _texts_of(example)))


class PairReader(TextReader):
    """Pairs of texts: a question and its context."""

    name = "pairs"

    def _checked(self, index: int, example: object) -> tuple[str, str]:
        first, second = super()._checked(index, example)
        if len(second) >= MOST_CHARACTERS:
            raise CompressError(
                f"pairs[{index}]: {len(second):,} characters of {(self.columns or ('', 'context'))[1]}; expected less than "
                f"{MOST_CHARACTERS:,}, give parts of it"
            )
        return first, second


def check_unicode(place: str, text: str) -> None:
    """Raise `CompressError` if `text` cannot be encoded; `place` is its position for the message."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise CompressError(f"{place}: expected Unicode text, found half of a surrogate pair") from None


def _texts_of(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def _type_name(example: object) -> str:
    kind = type(example).__name__
    return f"{kind} of {len(example)}" if isinstance(example, tuple | list) else kind


def _is_pair(example: object) -> bool:
    return isinstance(example, (tuple, list)) and len(example) == 2 and all(isinstance(part, str) for part in example)


def _is_bare_pair(texts: object) -> bool:
    return isinstance(texts, tuple) and _is_pair(texts)
