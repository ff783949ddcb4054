"""What tokenizer_config.json says of how transformers reads texts: on which side it cuts those that are too long, whether it
distinguishes the two texts of a pair, how BERT's own tokenizers treat letters, and whether RoBERTa's put a space before a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import normalizers, pre_tokenizers

from ...errors import CompressError
from ...runtime.cutting import truncation_side
from ...runtime.folder import open_tokenizer, read_json
from ...tokenization.segments import without_segments
from ...tokenization.truncation import set_truncation_side
from ..dimensions import has_segments, read_config
from ..families import FAMILIES
from ..families.fields import FLAG, TOKENIZER_CLASS, Field, allowed_values, one_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG = "tokenizer_config.json"
_SIDE, _INPUTS, _SEGMENTS = "truncation_side", "model_input_names", "token_type_ids"
# Options of BERT's own tokenizers, with transformers' defaults -> BertNormalizer's settings.
_LETTERS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
_DEFAULTS = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}
_SPACE, _ROBERTAS = "add_prefix_space", ("RobertaTokenizer", "RobertaTokenizerFast")
# Classes with BERT's normalizer and these options. Others, and those that transformers no longer has, go by tokenizer.json.
_BERTS = (
    *("Bert", "DistilBert", "Electra", "MPNet", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert", "Funnel"),
    *("DPRContextEncoder", "DPRQuestionEncoder", "DPRReader"),
)
_FIELDS = {
    **dict.fromkeys((*_LETTERS, _SPACE), FLAG),
    _SIDE: one_of("left", "right"),
    _INPUTS: Field(
        lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value), "a list of names"
    ),
}
_BACKEND = "backend"  # a field that only transformers 5 writes
_INPUTS_OF = {"TokenizersBackend": ["input_ids", "attention_mask"]}  # of a class that only transformers 5 writes
_NEW_INPUTS_OF = {key: ["input_ids", "attention_mask"] for key in ("AlbertTokenizer", "XLNetTokenizer")}


def read_as_transformers(folder: Path, tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer of the checkpoint in `folder` so that it cuts where transformers cuts, and gives the tokens and segments that
    transformers gives. It cuts no text itself (`set_truncation_side`).

    Raises `CompressError` for settings that cannot be followed.
    """
    if letters := _other_letters(folder, tokenizer):
        tokenizer.normalizer = normalizers.BertNormalizer(**letters)
    if space := _other_space(folder, tokenizer):
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(**space)
    set_truncation_side(tokenizer, _settings(folder).get(_SIDE) or truncation_side(tokenizer))
    if not _leaves_segments_out(folder):
        return tokenizer
    try:
        return without_segments(tokenizer)
    except CompressError as error:
        raise CompressError(f"{folder / 'tokenizer.json'}: {error}") from None


def described_reading(folder: Path) -> str:
    """Return in words, for keys, what is unusual in how texts are read: long ones are cut on the left, segments that the model has
    are left out, or letters or the beginnings of texts are not treated as tokenizer.json says; empty if nothing is."""
    stored = _stored_tokenizer(folder / "tokenizer.json")
    side = _settings(folder).get(_SIDE) or ("right" if stored is None else truncation_side(stored))
    letters, space = ({} if stored is None else changed(folder, stored) for changed in (_other_letters, _other_space))
    parts = {"cut on the left": side == "left", "without segments": _leaves_segments_out(folder)}
    parts |= {f"letters as {letters}": bool(letters), f"beginnings as {space}": bool(space)}
    return ", ".join(words for words, holds in parts.items() if holds)


def _stored_tokenizer(path: Path) -> Tokenizer | None:
    """Return the tokenizer in a file; None if there is none, or none that can be read, which loading refuses."""
    try:
        return open_tokenizer(path) if path.exists() else None
    except CompressError:
        return None


def _other_letters(folder: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the settings of BERT's normalizer with which transformers reads texts; {} if they are those of `tokenizer`.

    transformers' classes for BERT's tokenizers take them from tokenizer_config.json, or have defaults, whatever tokenizer.json says.
    With another class, or without a class or an option in the configuration, tokenizer.json counts.
    """
    stored = tokenizer.normalizer
    settings, named = _settings(folder), _named_class(folder)
    if not isinstance(stored, normalizers.BertNormalizer) or (
        named and named.removesuffix("Fast").removesuffix("Tokenizer") not in _BERTS
    ):
        return {}
    options = (_DEFAULTS if named else {}) | {option: settings[option] for option in _LETTERS if option in settings}
    own = {name: getattr(stored, name) for name in ("clean_text", *_LETTERS.values())}
    wanted = own | {_LETTERS[option]: value for option, value in options.items()}
    return {} if wanted == own else wanted


def _other_space(folder: Path, tokenizer: Tokenizer) -> dict[str, Any]:
    """As `_other_letters`, for the space that RoBERTa's own class puts before a text, or does not: its default."""
    stored = tokenizer.pre_tokenizer
    settings, named = _settings(folder), _named_class(folder)
    family = read_json(folder / "config.json", optional=True).get("model_type")
    if not isinstance(stored, pre_tokenizers.ByteLevel) or (named or family) not in (*_ROBERTAS, "roberta"):
        return {}
    own = {name: getattr(stored, name) for name in (_SPACE, "trim_offsets", "use_regex")}
    wanted = own | {_SPACE: settings.get(_SPACE, own[_SPACE] if named is None else False)}
    return {} if wanted == own else wanted


def _named_class(folder: Path) -> str | None:
    documents = (read_json(folder / name, optional=True) for name in (CONFIG, "config.json"))
    return next((str(named) for document in documents if (named := document.get(TOKENIZER_CLASS))), None)


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    return allowed_values(path, read_json(path, optional=True), _FIELDS)


def _leaves_segments_out(folder: Path) -> bool:
    """Whether transformers gives the model no segments, although it has several."""
    document = read_json(folder / CONFIG, optional=True)
    listed = allowed_values(folder / CONFIG, document, _FIELDS).get(_INPUTS)
    inputs = listed or _inputs_of_class(document)
    if inputs is None or _SEGMENTS in inputs:
        return False
    family = str(read_json(folder / "config.json", optional=True).get("model_type"))
    return family in FAMILIES and has_segments(read_config(folder))


def _inputs_of_class(document: dict[str, Any]) -> list[str] | None:
    """Return the inputs that transformers' class gives a model, where the configuration lists none; None if that is not known."""
    known = _INPUTS_OF | (_NEW_INPUTS_OF if _BACKEND in document else {})
    return known.get(str(document.get(TOKENIZER_CLASS)).removesuffix("Fast"))
