"""Where a run's teacher comes from, and what is known of it before anything is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import store
from ..catalog import is_path, load_teacher, names
from ..errors import CompressError
from ..models.checkpoints import (
    config_labels,
    is_classifier,
    load_tokenizer,
    random_config,
    tokenizer_files,
    weight_files,
)
from ..models.dimensions import Dimensions, dimensions, read_config
from ..models.growing import check_growth
from ..models.locations import locate
from ..spec.cards import Checkpoint, TeacherCard
from ..tasks import wordpiece
from ..tasks.synthetic import GENERATOR_VERSION

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class TeacherSource:
    """A teacher card with its checkpoint found. `folder` is None for a teacher of random weights; `words` is the folder of
    its tokenizer, where that is not the embedded tasks'; `small` the checkpoint that the weights are grown from."""

    card: TeacherCard
    folder: Path | None
    words: Path | None = None
    small: Path | None = None

    @cached_property
    def config(self) -> dict[str, Any]:
        if self.folder is None and self.card.random is not None:
            small = None if self.small is None else read_config(self.small)
            return random_config(self.card.random, vocabulary=self._vocabulary, small=small)
        return read_config(self.folder or Path())

    @cached_property
    def identity(self) -> str:
        """What stands for the checkpoint in keys: a hash of its files, or of how it is drawn."""
        if self.folder is None:
            words = (
                f"wordpiece of generator {GENERATOR_VERSION}"
                if self.words is None
                else _hashes(tokenizer_files(self.words))
            )
            grown = "" if self.small is None else f" grown from {_weights(self.small)}"
            return f"random {self.config} {words}{grown}"
        return f"{_weights(self.folder)} {_hashes(tokenizer_files(self.folder))}"

    @cached_property
    def fine_tuned(self) -> bool:
        """Whether it carries a classification head of its own."""
        return self.folder is not None and is_classifier(self.folder, self.config)

    @property
    def tokenizer(self) -> Tokenizer:
        """Its own; of a teacher of random weights that which its card names, or that of the embedded tasks."""
        folder = self.folder or self.words
        return wordpiece(int(self.config["vocab_size"])) if folder is None else load_tokenizer(folder)

    @property
    def _vocabulary(self) -> int | None:
        return None if self.words is None else load_tokenizer(self.words).get_vocab_size()

    @property
    def labels(self) -> tuple[str, ...]:
        return config_labels(self.config)

    def dimensions(self, classes: int) -> Dimensions:
        return dimensions(self.config, classes=classes)


def resolve_teacher(name_or_path: str) -> TeacherSource:
    """A card's name, a card's file, or a checkpoint folder of the user's."""
    folder = Path(name_or_path).expanduser()
    if folder.is_dir() and (is_path(name_or_path) or name_or_path not in names("teachers")):
        return TeacherSource(_own_card(folder), folder)
    if is_path(name_or_path) and folder.suffix not in (".yaml", ".yml"):
        read_config(folder)
    card = load_teacher(name_or_path)
    if card.random is None:
        return TeacherSource(card, locate(card))
    base = folder.parent if is_path(name_or_path) else Path()
    if card.random.grow_from is not None:
        return _grown(card, card.random.grow_from, base)
    words = None if card.random.tokenizer is None else _named(card, "tokenizer", card.random.tokenizer, base)
    return TeacherSource(card, None, words)


def _grown(card: TeacherCard, word: str, base: Path) -> TeacherSource:
    folder = _named(card, "grow_from", word, base)
    found = TeacherSource(card, None, folder, folder)
    try:
        check_growth(dimensions(read_config(folder), classes=2), found.dimensions(2), source=word)
    except CompressError as error:
        raise CompressError(f"teacher {card.name}: {error}") from None
    return found


def _named(card: TeacherCard, field: str, word: str, base: Path) -> Path:
    """The folder that a card of random weights names, beside the card's file or from where the command runs, with a
    tokenizer. Raises `CompressError` where there is none."""
    where = f"teacher {card.name}: random.{field}:"
    beside = base / Path(word).expanduser()
    if is_path(word) and not beside.exists() and not Path(word).expanduser().exists():
        raise CompressError(f"{where} {word}: no such folder; name a card with a checkpoint, or a folder")
    try:
        folder = resolve_teacher(str(beside.absolute()) if beside.is_dir() else word).folder
        if folder is None:
            raise CompressError(
                f"{word} has random weights and no tokenizer of its own; name a card with a checkpoint, or a folder"
            )
        load_tokenizer(folder)
    except CompressError as error:
        raise CompressError(f"{where} {error}") from None
    return folder


def _weights(folder: Path) -> str:
    return _hashes([*weight_files(folder), folder / "config.json"])


def _hashes(files: list[Path]) -> str:
    return " ".join(f"{path.name}={store.hash_file(path)}" for path in files)


def _own_card(folder: Path) -> TeacherCard:
    slug = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("-._")[:64] or "teacher"
    return TeacherCard(
        name=slug, title=folder.resolve().name, licence="unknown", checkpoint=Checkpoint(path=str(folder))
    )
