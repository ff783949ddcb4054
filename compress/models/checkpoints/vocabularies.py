"""Make a tokenizer from a vocabulary, if a checkpoint has no tokenizer.json.

transformers makes it, in a temporary folder with only the vocabulary and the allowed part of its settings. From the checkpoint's own folder
it would also read files that can lead to custom code.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ...files.regular import read_regular
from ...runtime.folder import read_json
from ..dimensions import read_config
from ..families import FAMILIES
from ..families.fields import FLAG, MOST_TOKENS, TOKENIZER_CLASS, Field, allowed_values
from .pretrained import quiet_transformers, transformers_config
from .reading_settings import CONFIG

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PIECES = ("spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
VOCABULARIES = ("vocab.txt", "vocab.json", *_PIECES)
_DEBERTAS = "spm.model"
MERGES = "merges.txt"
SPECIAL, ADDED = "special_tokens_map.json", "added_tokens.json"
SETTINGS = (CONFIG, SPECIAL, ADDED)

_STEMS = tuple(dict.fromkeys(family.tokenizer.stem for family in FAMILIES.values()))
_CLASSES = (
    "TokenizersBackend",
    *(f"{stem}Tokenizer{fast}" for stem in (*_STEMS, "PreTrained") for fast in ("", "Fast")),
)
_FLAGS = (
    "do_lower_case",
    "strip_accents",
    "tokenize_chinese_chars",
    "keep_accents",
    "remove_space",
    "add_prefix_space",
)
_OPTIONS = {**dict.fromkeys(_FLAGS, FLAG), TOKENIZER_CLASS: Field(lambda name: True, "what `_check_class` takes")}
_TEXT = Field(lambda value: isinstance(value, str) and value != "", "a token")
_TOKENS = tuple(f"{name}_token" for name in ("unk", "sep", "pad", "cls", "mask", "bos", "eos"))
_TOKEN_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_MOST_BYTES = 1 << 28  # of a vocabulary
_MARKED, _UNMARKED = {"__type": "AddedToken"}, {}


def converted_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer. Raises `CompressError` for a folder without a vocabulary, for settings of wrong types, and for a vocabulary
    that transformers cannot convert."""
    from transformers import AutoTokenizer

    if not any((folder / name).exists() for name in VOCABULARIES):  # transformers would make an empty one
        hint = ""
        if (folder / _DEBERTAS).exists():  # transformers 5 drops its character rules, which 4 keeps
            hint = (
                f"; found {_DEBERTAS}: have DebertaV2TokenizerFast of transformers 4 write a tokenizer.json beside it"
            )
        raise CompressError(
            f"{folder}: expected tokenizer.json, or a vocabulary it can be made from such as vocab.txt{hint}"
        )
    config = read_config(folder)
    _read(folder / "vocab.json", _check_numbers)
    settings = {name: _read(folder / name, check) for name, check in _CHECKS.items()}
    settings[CONFIG].setdefault(TOKENIZER_CLASS, config.get(TOKENIZER_CLASS))
    _check_class(folder, settings[CONFIG].get(TOKENIZER_CLASS))
    quiet_transformers()
    try:
        with TemporaryDirectory() as place:
            _copy(folder, Path(place), settings)
            tokenizer = AutoTokenizer.from_pretrained(place, config=transformers_config(config), local_files_only=True)
    except Exception as error:  # tokenizers raises bare Exception
        reason = _missing_package(folder) or str(error).split("\n")[0]
        raise CompressError(f"{folder}: no tokenizer can be made from its vocabulary: {reason}") from None
    # transformers ignores a vocabulary file that is not of the model's family.
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        named = next(name for name in VOCABULARIES if (folder / name).exists())
        raise CompressError(
            f"{folder}: a {config['model_type']} reads no words from {named}; give the checkpoint its own vocabulary, or a tokenizer.json"
        )
    return tokenizer.backend_tokenizer


def _missing_package(folder: Path) -> str | None:
    """Return the missing package, if any; transformers' own message names another."""
    name = next((name for name in _PIECES if (folder / name).exists()), None)
    if name is None or find_spec("sentencepiece") is not None:
        return None
    return f"{name} needs the package sentencepiece to be read: install it, or give the checkpoint a tokenizer.json"


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """Return the allowed part of tokenizer_config.json; {} if there is none. Raises `CompressError` for values of wrong types."""
    return _read(folder / CONFIG, _config)


def _copy(folder: Path, place: Path, settings: dict[str, dict[str, Any]]) -> None:
    for name in (*VOCABULARIES, MERGES):
        if (folder / name).exists():
            (place / name).write_bytes(read_regular(folder / name, "a vocabulary", _MOST_BYTES))
    for name, document in settings.items():
        if document:
            (place / name).write_text(json.dumps(document), encoding="utf-8")


def _check_class(folder: Path, name: Any) -> None:
    if name is not None and name not in _CLASSES:
        raise CompressError(
            f"{folder}: {TOKENIZER_CLASS}: expected that of {', '.join(_STEMS)}; found {reprlib.repr(name)}: give the checkpoint a "
            "tokenizer.json, as its own library writes it"
        )


def _read(path: Path, check: Callable[[Path, dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return the allowed part of a settings file; {} if there is none."""
    return check(path, read_json(path, optional=True))


def _config(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    kept = _special_tokens(path, document, marked=_MARKED) | allowed_values(path, document, _OPTIONS)
    if (added := document.get("added_tokens_decoder")) is not None:
        numbered = isinstance(added, dict) and all(_is_number(key) for key in added)
        _check_value(path, "added_tokens_decoder", added, numbered, "tokens by their numbers")
        kept["added_tokens_decoder"] = {
            key: _token(path, f"added_tokens_decoder.{key}", value) for key, value in added.items()
        }
    return kept


def _special(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Return the allowed part; the flag `special` is dropped, because transformers sets it itself and fails if the file has it too."""
    return _special_tokens(path, document, flags=tuple(flag for flag in _TOKEN_FLAGS if flag != "special"))


def _special_tokens(path: Path, document: dict[str, Any], **form: Any) -> dict[str, Any]:
    """Return the special tokens by role."""
    kept = {name: _token(path, name, document[name], **form) for name in _TOKENS if document.get(name) is not None}
    name = "additional_special_tokens"
    if (more := document.get(name)) is not None:
        _check_value(path, name, more, isinstance(more, list), "a list of tokens")
        kept[name] = [_token(path, f"{name}[{number}]", value, **form) for number, value in enumerate(more)]
    return kept


def _check_numbers(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """Check tokens and their numbers; tokenizers allocates a table as long as the largest number."""
    for name, value in document.items():
        right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS
        _check_value(path, reprlib.repr(name), value, right, "the number of a token")
    return document


def _token(
    path: Path, name: str, value: Any, *, flags: Sequence[str] = _TOKEN_FLAGS, marked: Mapping[str, str] = _UNMARKED
) -> Any:
    """Return a token: a string, or an AddedToken of transformers, `marked` as such, with the `flags` that say how it matches in a text."""
    if not isinstance(value, dict):
        return _check_value(path, name, value, _TEXT.allows(value), _TEXT.expected)
    fields = {"content": _TEXT, **dict.fromkeys(flags, FLAG)}
    return {
        **marked,
        **allowed_values(path, {**value, "content": value.get("content") or ""}, fields, inside=f"{name}."),
    }


def _is_number(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 9


def _check_value(path: Path, name: str, value: Any, right: bool, expected: str) -> Any:
    if not right:
        raise CompressError(f"{path}: {name}: expected {expected}; found {reprlib.repr(value)}")
    return value


_CHECKS = {CONFIG: _config, SPECIAL: _special, ADDED: _check_numbers}
