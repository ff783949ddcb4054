"""A user's own files in place of a task, and their options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, cast

from ...errors import CompressError, nearest
from ...files.paths import expand_home, unambiguous_path
from ...spec.kinds import KINDS, KindName
from ..reading.plain_text import text_file

_OTHER_NAMES = {  # of kinds, elsewhere
    **dict.fromkeys(
        ("multiclass", "multi-class", "binary", "text-classification", "sequence-classification"), "classification"
    ),
    **dict.fromkeys(("ner", "pos", "token-classification"), "tagging"),
    **dict.fromkeys(("qa", "question-answering", "squad"), "span"),
    **dict.fromkeys(("reranking", "text-ranking"), "ranking"),
    **dict.fromkeys(("sentence-similarity", "feature-extraction", "similarity"), "embedding"),
    "multiple-choice": "choice",
}


@dataclass(frozen=True)
class OwnFiles:
    """A user's own files in place of a task.

    `train` and `dev`: .csv, .tsv, .jsonl or .parquet with the same columns, SQuAD's .json, or .conll, .txt, .bio, .iob or .iob2 with a word
    per line; for an embedding task `train` may be plain text (.txt, .gz, .xz or .zst).
    `text`, `pair`, `label`: columns of the texts, of the second texts of pairs, and of labels, scores or answers. For multilabel, `label`
    may be several columns of 0 and 1, separated by commas. For choice, `pair` is of endings and may be several columns, and `text` may be
    two, the second of what each ending begins with.
    `kind`: by default span if labels are answers, tagging if texts are lists of words or labels are spans, multilabel if labels are lists,
    choice if second texts are lists of endings or in several columns, ranking if columns are called query and passage, document
    or doc and labels are numbers, regression if they are numbers with a decimal point, else classification.
    `max_length`: tokens. `name`: of the task; by default the training file's, or its folder's.
    """

    train: Path
    dev: Path
    text: str = "text"
    pair: str | None = None
    label: str = "label"
    kind: KindName | None = None
    max_length: int | None = None
    name: str | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.pair is None else (self.text, self.pair)

    def to_json(self) -> dict[str, Any]:
        """Return the fields for a process with another working directory."""
        return asdict(self) | {name: str(expand_home(getattr(self, name)).absolute()) for name in ("train", "dev")}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Return the files from what `to_json` returned."""
        paths: dict[str, Any] = {name: Path(fields[name]) for name in ("train", "dev")}
        return cls(**fields | paths)


def own_files(
    *,
    train: str | Path | None,
    dev: str | Path | None,
    text: str | None,
    pair: str | None,
    label: str | None,
    kind: str | None,
    max_length: int | None,
    corpus: Sequence[str] = (),
) -> OwnFiles | None:
    """Return the files named in a command or call, with the default columns `text` and `label`; None if there are none.

    `corpus`: plain text that an embedding task without `train` is trained on. Raises `CompressError` for one file without the other, for
    folders, and for options without files.
    """
    trained = "--train"
    if train is None and corpus and kind == "embedding":
        train, trained = text_file(corpus), "--corpus"
    if train is None and dev is None:
        _check_no_options(text=text, pair=pair, label=label, kind=kind, max_length=max_length)
        return None
    if train is None:
        other = "; --corpus can replace it only with --kind embedding" if corpus else ""
        raise CompressError(f"--train: expected a file of labelled examples beside --dev, found none{other}")
    if dev is None:
        raise CompressError(
            f"--dev: expected a file of labelled examples beside {trained}, on which scores are reported; found none; if there is one "
            "file alone, move part of its rows to another"
        )
    for option, path in ((trained, train), ("--dev", dev)):
        if expand_home(path).is_dir():
            raise CompressError(f"{option}: expected a file of labelled examples, found the folder {path}")
    if kind is not None:
        _check_kind(kind)
    if max_length is not None and max_length < 1:
        raise CompressError(f"--max-length: expected at least 1 token, found {max_length}")
    for option, path in ((trained, train), ("--dev", dev)):
        if not expand_home(path).exists():
            raise CompressError(f"{option}: {path}: no such file")
    text, label = "text" if text is None else text, "label" if label is None else label
    return OwnFiles(
        unambiguous_path(train), unambiguous_path(dev), text, pair, label, cast(KindName | None, kind), max_length
    )


def _check_no_options(**options: str | int | None) -> None:
    """Raise `CompressError` for an option that describes files, when there are none."""
    name = next((name for name, value in options.items() if value is not None), None)
    if name is not None:
        field = "text" if name == "pair" else name
        raise CompressError(
            f"--{name.replace('_', '-')} describes files of your own: expected --train FILE and --dev FILE with it; "
            f"a task file has `{field}` instead"
        )


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        *names, last = KINDS
        usual = _OTHER_NAMES.get(kind.lower().replace("_", "-"))
        near = f"; that is `{usual}` here" if usual else nearest(kind, list(KINDS))
        raise CompressError(f"--kind: expected {', '.join(names)} or {last}, found {kind!r}{near}")
