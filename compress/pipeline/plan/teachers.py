"""Where a run's teacher comes from, and what is known of it before anything is loaded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ... import store
from ...catalog import is_path, names
from ...errors import CompressError
from ...files.paths import expand_home
from ...hub import is_commit, repository
from ...models.cards import Checkpoint, TeacherCard, load_teacher
from ...models.checkpoints.folders import config_labels, has_head, load_tokenizer, tokenizer_files
from ...models.checkpoints.location import fetch, locate, package_version, source_kind
from ...models.checkpoints.reading_settings import described_reading
from ...models.checkpoints.weights import weight_files
from ...models.dimensions import Dimensions, dimensions, read_config, usable_positions
from ...models.families import FAMILIES
from ...models.growth import check_growth
from ...models.random_models import random_config
from ...models.sentence_encoders.pooling import Pooling, read_pooling
from ...models.sentence_encoders.vector_layers import with_layers
from ...provenance import TeacherOrigin
from ...spec.kinds import KINDS, KindName
from ...tasks import EncodedParts, EncodedSpans, byte_level, encode_parts, wordpiece
from ...tasks.synthetic import GENERATOR_VERSION
from ...tokenization.special import special_ids

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ENSEMBLE = "ensemble"  # several teachers as one: the name of their node in plans, and of its table in distill stages


@dataclass(frozen=True)
class TeacherSource:
    """A teacher card whose checkpoint was located. `folder`: of the checkpoint; None for random weights. These have a `tokenizer_folder`,
    None for the tokenizer of the embedded tasks, and may be `grown_from` a smaller checkpoint. `notes`: lines on how it was found."""

    card: TeacherCard
    folder: Path | None
    tokenizer_folder: Path | None = None
    grown_from: Path | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def config(self) -> dict[str, Any]:
        if self.folder is None and self.card.random is not None:
            return random_config(self.card.random, **self._borrowed_config)
        return with_layers(read_config(self.folder or Path()), self.card.layers, f"teacher {self.card.name}")

    @cached_property
    def identity(self) -> str:
        """Identifies the checkpoint in keys: a hash of its files, or how its random weights are drawn."""
        words = self._tokenizer_words or f"wordpiece of generator {GENERATOR_VERSION}"
        if self.folder is None:
            grown = "" if self.grown_from is None else f" grown from {_join_hashes(self._weights)}"
            return f"random {self.config} {words}{grown}"
        return f"{_join_hashes(self._weights)} {self._tokenizer_words}"

    def check_unchanged(self) -> None:
        """Raise `CompressError` if its files are no longer those that keys identify. Reads all of them."""
        if replace(self).identity != self.identity:
            raise CompressError(
                f"{self.folder or self.grown_from or self.tokenizer_folder}: it changed since this command started; start it again"
            )

    @cached_property
    def _weights(self) -> dict[str, str]:
        """File name -> SHA-256, of the checkpoint that it is, or grows from."""
        folder = self.folder or self.grown_from
        return {} if folder is None else _hashes([*weight_files(folder), folder / "config.json"])

    @cached_property
    def _tokenizer_hashes(self) -> dict[str, str]:
        folder = self.folder or self.tokenizer_folder
        return {} if folder is None else _hashes(tokenizer_files(folder))

    @property
    def _tokenizer_words(self) -> str:
        """The hashes of its files, and what is unusual in how it reads texts; empty if it has no files."""
        folder = self.folder or self.tokenizer_folder
        reading = "" if folder is None else described_reading(folder)
        return f"{_join_hashes(self._tokenizer_hashes)} {reading}".strip()

    @property
    def origin(self) -> TeacherOrigin:
        """Where the checkpoint comes from, for the record; its files are hashed once, for the keys."""
        files, checkpoint = self._weights | self._tokenizer_hashes, self.card.checkpoint
        if checkpoint is None:
            kind, name = ("random", self.card.name) if self.grown_from is None else ("grown", self.card.name)
            return TeacherOrigin(kind=kind, name=name, files=files)
        kind = source_kind(checkpoint)
        if kind == "package" and checkpoint.package is not None:
            package = checkpoint.package.name
            return TeacherOrigin(kind=kind, name=package, revision=package_version(package), files=files)
        if kind == "hub":
            return TeacherOrigin(kind=kind, name=str(checkpoint.hub), revision=checkpoint.revision, files=files)
        return TeacherOrigin(kind="folder", name=(self.folder or Path()).resolve().name, files=files)

    @cached_property
    def vocabulary(self) -> str:
        """Hash of the tokenizer, for keys: teachers with the same vocabulary share a text's tokens."""
        return hashlib.sha256(self.tokenizer.to_str().encode()).hexdigest()

    def shares_tokenizer(self, student: TeacherSource | None) -> bool:
        """Whether a student that starts from that checkpoint, or from this one (None), tokenizes texts alike."""
        return student is None or student.vocabulary == self.vocabulary

    def parts_of(self, windows: EncodedSpans, max_length: int) -> EncodedParts:
        """Tokenize a student's windows, each of at most `max_length` tokens, with this teacher's tokenizer, into up to twice as many
        tokens."""
        return encode_parts(self.tokenizer, windows, min(usable_positions(self.config), 2 * max_length))

    def is_fine_tuned(self, kind: KindName) -> bool:
        """Whether it has a head of its own for tasks of `kind`, or needs none."""
        return self.folder is not None and (not KINDS[kind].learnt or has_head(self.folder, self.config, kind))

    @cached_property
    def pooling(self) -> tuple[Pooling, bool]:
        """How text vectors are made from its last states, and whether its files say so. CompressError: a pooling that is not supported."""
        return read_pooling(self.folder, self.config)

    @property
    def is_random_init(self) -> bool:
        """Whether its weights are drawn at random: neither read from a checkpoint nor grown from one."""
        return self.folder is None and self.grown_from is None

    @property
    def tokenizer(self) -> Tokenizer:
        """Its own tokenizer; for random weights the one that its card names, or its family's tokenizer of the embedded tasks."""
        folder = self.folder or self.tokenizer_folder
        if folder is not None:
            return load_tokenizer(folder)
        embedded = byte_level if FAMILIES[self.config["model_type"]].random.byte_level else wordpiece
        return embedded(int(self.config["vocab_size"]))

    @property
    def _borrowed_config(self) -> dict[str, Any]:
        """What its config takes from the small model that it grows from, or from the tokenizer that its card names."""
        if self.grown_from is not None:
            return {"small": read_config(self.grown_from)}
        if self.tokenizer_folder is None:
            return {}
        tokenizer = load_tokenizer(self.tokenizer_folder)
        return {"vocabulary": max(tokenizer.get_vocab().values()) + 1, "special": special_ids(tokenizer)}

    @property
    def labels(self) -> tuple[str, ...]:
        return config_labels(self.config)

    def dimensions(self, classes: int, kind: KindName = "classification") -> Dimensions:
        """Its sizes with a head for a task of `kind`."""
        return dimensions(self.config, classes=classes, kind=kind, folder=self.folder)


def by_model(first: TeacherSource, others: Sequence[TeacherSource]) -> dict[str, TeacherSource]:
    """Return the model names that plans give a run's teachers: `teacher`, `teacher-2`, `teacher-3`, …."""
    return {"teacher": first} | {f"teacher-{number}": other for number, other in enumerate(others, 2)}


def names_of(teachers: Mapping[str, TeacherSource]) -> dict[str, str]:
    """Return model name -> name for readers: the card's name, followed by the model name if an earlier teacher has the same, as folders
    may."""
    named: dict[str, str] = {}
    for model, source in teachers.items():
        name = source.card.name
        named[model] = f"{name} ({model})" if name in named.values() else name
    return named


def resolve_teacher(name_or_path: str) -> TeacherSource:
    """Resolve a card's name, a card's file, a checkpoint folder of the user's, or OWNER/NAME[@REVISION] of the hub."""
    checkpoint = checkpoint_source(name_or_path, "teacher")
    if checkpoint is not None:
        return checkpoint
    card = load_teacher(name_or_path)
    base = expand_home(name_or_path).parent if is_path(name_or_path) else Path()
    if card.random is None:
        return TeacherSource(card, locate(card, base))
    if card.random.grow_from is not None:
        return _grown(card, card.random.grow_from, base)
    words = None if card.random.tokenizer is None else _named_folder(card, "tokenizer", card.random.tokenizer, base)
    return TeacherSource(card, None, words)


def checkpoint_source(word: str, role: Literal["teacher", "student"]) -> TeacherSource | None:
    """Return the checkpoint that `--teacher` or `--student` names by its folder, or as OWNER/NAME[@REVISION] of the hub; None for a card.
    Raises `CompressError` if there is no such checkpoint."""
    folder, on_hub = expand_home(word), repository(word)
    if folder.is_dir() and (is_path(word) or word not in names("teachers" if role == "teacher" else "students")):
        note = (
            f"{role} {word}: read from the folder of that name here, not from the hub; for the hub's repository "
            f"give {word}@main"
        )
        return TeacherSource(_own_card(folder), folder, notes=() if on_hub is None else (note,))
    if on_hub is not None and not folder.exists() and not folder.parent.is_file():
        return _of_the_hub(role, *on_hub)
    if is_path(word) and folder.suffix not in (".yaml", ".yml"):
        problem = "a file" if folder.exists() else "no such folder"
        raise CompressError(f"{role} {word}: {problem}; expected the folder of a transformers checkpoint")
    return None


def _of_the_hub(role: str, name: str, revision: str | None) -> TeacherSource:
    """Return a repository as a card that pins the commit found."""
    here = f"no folder of that name is here; give another with --{role} DIR"
    try:
        folder = fetch(f"{role} {name}", name, revision or "main", here)
    except CompressError:
        owner = Path(name).parent
        if revision is None and owner.is_dir():
            raise CompressError(
                f"{role} {name}: no such folder in {owner}, and no such repository of the hub; give another with --{role} DIR"
            ) from None
        raise
    commit = folder.name if is_commit(folder.name) else revision or "main"
    place = Checkpoint(hub=name, revision=commit)
    card = TeacherCard(name=_slug(name.rpartition("/")[2]), title=name, licence="unknown", checkpoint=place)
    moving = (
        f"{role} {name}: {revision or 'main'} is commit {commit} now; give --{role} {name}@{commit} to stay with it"
    )
    return TeacherSource(card, folder, notes=() if is_commit(revision) else (moving,))


def pinned_word(word: str, teacher: TeacherSource) -> str:
    """Return the word that finds the same checkpoint later: for the hub it names the commit."""
    checkpoint = teacher.card.checkpoint
    if checkpoint is None or checkpoint.hub is None or word.partition("@")[0] != checkpoint.hub:
        return word
    return f"{checkpoint.hub}@{checkpoint.revision}"


def _grown(card: TeacherCard, word: str, base: Path) -> TeacherSource:
    folder = _named_folder(card, "grow_from", word, base)
    teacher = TeacherSource(card, None, folder, folder)
    try:
        check_growth(dimensions(read_config(folder), classes=2), teacher.dimensions(2), source=word)
    except CompressError as error:
        raise CompressError(f"teacher {card.name}: {error}") from None
    return teacher


def _named_folder(card: TeacherCard, field: str, word: str, base: Path) -> Path:
    """Return the folder, with a tokenizer, that a card of random weights names, relative to the card's file or to the working directory.
    Raises `CompressError` if there is none."""
    where = f"teacher {card.name}: random.{field}:"
    beside = base / expand_home(word)
    if is_path(word) and not beside.exists() and not expand_home(word).exists():
        kind = "--kind bpe " if card.random is not None and FAMILIES[card.random.architecture].random.byte_level else ""
        command = f"`compress vocab --corpus TEXT {kind}-o {word}`"
        contents = f" with a tokenizer, which {command} makes" if field == "tokenizer" else ""
        raise CompressError(f"{where} {word}: no such folder; name a card with a checkpoint, or a folder{contents}")
    try:
        source = resolve_teacher(str(beside.absolute()) if beside.is_dir() else word)
        folder = source.folder or (source.tokenizer_folder if field == "tokenizer" else None)
        if folder is None:
            weights = "random weights" if source.grown_from is None else "weights that are yet to grow"
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


def _hashes(files: list[Path]) -> dict[str, str]:
    return {path.name: store.hash_file(path) for path in files}


def _join_hashes(hashes: dict[str, str]) -> str:
    return " ".join(f"{name}={digest}" for name, digest in hashes.items())


def _own_card(folder: Path) -> TeacherCard:
    name = folder.resolve().name
    return TeacherCard(name=_slug(name), title=name, licence="unknown", checkpoint=Checkpoint(path=str(folder)))


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:64] or "teacher"
