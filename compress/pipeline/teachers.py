"""Where a run's teacher comes from, and what is known of it before anything is loaded."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import store
from ..catalog import is_path, load_teacher, names
from ..corpus import special_ids
from ..errors import CompressError
from ..models.checkpoints import (
    config_labels,
    is_classifier,
    load_tokenizer,
    tokenizer_files,
    weight_files,
)
from ..models.dimensions import Dimensions, dimensions, read_config
from ..models.growing import check_growth
from ..models.locations import locate
from ..models.random_models import random_config
from ..places import from_home
from ..spec.cards import Checkpoint, TeacherCard
from ..tasks import byte_level, wordpiece
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
            return random_config(self.card.random, **self._borrowed)
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
    def vocabulary(self) -> str:
        """What stands for its tokenizer in keys: teachers of one vocabulary share a text's tokens."""
        return hashlib.sha256(self.tokenizer.to_str().encode()).hexdigest()

    @cached_property
    def fine_tuned(self) -> bool:
        """Whether it carries a classification head of its own."""
        return self.folder is not None and is_classifier(self.folder, self.config)

    @property
    def tokenizer(self) -> Tokenizer:
        """Its own; of a teacher of random weights that which its card names, or its family's of the embedded tasks."""
        folder = self.folder or self.words
        if folder is not None:
            return load_tokenizer(folder)
        embedded = byte_level if self.config["model_type"] == "roberta" else wordpiece
        return embedded(int(self.config["vocab_size"]))

    @property
    def _borrowed(self) -> dict[str, Any]:
        """What its config has of the small model that it grows from, or of the tokenizer that its card names."""
        if self.small is not None:
            return {"small": read_config(self.small)}
        if self.words is None:
            return {}
        tokenizer = load_tokenizer(self.words)
        return {"vocabulary": max(tokenizer.get_vocab().values()) + 1, "special": special_ids(tokenizer)}

    @property
    def labels(self) -> tuple[str, ...]:
        return config_labels(self.config)

    def dimensions(self, classes: int) -> Dimensions:
        return dimensions(self.config, classes=classes)


def resolve_teacher(name_or_path: str) -> TeacherSource:
    """A card's name, a card's file, or a checkpoint folder of the user's."""
    folder = from_home(name_or_path)
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
    beside = base / from_home(word)
    if is_path(word) and not beside.exists() and not from_home(word).exists():
        kind = "--kind bpe " if card.random is not None and card.random.architecture == "roberta" else ""
        command = f"`compress vocab --corpus TEXT {kind}-o {word}`"
        made = f" with a tokenizer, which {command} makes" if field == "tokenizer" else ""
        raise CompressError(f"{where} {word}: no such folder; name a card with a checkpoint, or a folder{made}")
    try:
        found = resolve_teacher(str(beside.absolute()) if beside.is_dir() else word)
        folder = found.folder or (found.words if field == "tokenizer" else None)
        if folder is None:
            weights = "random weights" if found.small is None else "weights that are yet to grow"
            lacking = (
                f"{weights} and no tokenizer of its own" if field == "tokenizer" else f"{weights} and no checkpoint"
            )
            raise CompressError(f"{word} has {lacking}; name a card with a checkpoint, or a folder")
        tokenizer = load_tokenizer(folder)
        if field == "tokenizer":
            special_ids(tokenizer)
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
