"""Checkpoint folders: check, load and save. Safetensors only: a pickle is never opened."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ...runtime.folder import label_names, open_tokenizer, whole_number
from ...runtime.kinds import ANSWER_KINDS, output_names
from ...runtime.kinds.multilabel import MULTI_LABEL
from ...spec.kinds import KindName
from ...tokenization.truncation import untruncated
from ..dimensions import has_segments, read_config, usable_positions
from ..families import FAMILIES
from ..families.fields import MOST_TOKENS
from ..heads import HEADS, auto_class, without_pooler
from ..sentence_encoders.pooling import vector_fields
from .pretrained import check_loading, load_pretrained, quiet_transformers
from .reading_settings import read_as_transformers
from .tokenizer_settings import tokenizer_settings_of
from .vocabularies import MERGES, SETTINGS, VOCABULARIES, converted_tokenizer
from .weights import tensor_names

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import nn

_IN_NO_VOCABULARY = "\U000103a0"  # Old Persian: a rare letter that normalizers keep


_OF_TEXT = ("ForMaskedLM", "ForPreTraining", "ForNextSentencePrediction")  # heads trained on plain text


def has_head(folder: Path, config: dict[str, Any], kind: KindName) -> bool:
    """Whether the checkpoint carries a trained head for tasks of `kind`."""
    head = HEADS[kind]
    named = any(map(head.is_of, config.get("architectures", ())))
    return named and _decides_as(config, kind) and any(name.startswith(head.trained) for name in tensor_names(folder))


def _decides_each(config: dict[str, Any]) -> bool:
    """Whether the outputs are independent labels; without a `problem_type`, transformers takes them as classes."""
    return config.get("problem_type") == MULTI_LABEL


def _decides_as(config: dict[str, Any], kind: KindName) -> bool:
    return _decides_each(config) == (ANSWER_KINDS[kind].problem_type == MULTI_LABEL)


def other_head(config: dict[str, Any], kind: KindName) -> str | None:
    """Return the class in config.json whose head does not fit tasks of `kind`, or None: one for another kind, one not supported here, such
    as BertForMultipleChoice, or one with the wrong `problem_type`."""
    named = [name for name in config.get("architectures", ()) if "For" in name]
    heads = [name for name in named if HEADS[kind].is_of(name)]
    other = next((name for name in named if name not in heads and not name.endswith(_OF_TEXT)), None)
    if other is not None or not heads or _decides_as(config, kind):
        return other
    return f"{heads[0]} whose labels {'are decided one by one' if _decides_each(config) else 'exclude each other'}"


def config_labels(config: dict[str, Any]) -> tuple[str, ...]:
    """Return the class names in id order, from the checkpoint's config."""
    return label_names(Path("config.json"), config)


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that determine what a checkpoint's tokenizer does, apart from what `described_reading` says."""
    names = ("tokenizer.json", "vocab.txt")
    if not (folder / "tokenizer.json").exists():
        names = (*VOCABULARIES, MERGES, *SETTINGS)
    return [path for name in names if (path := folder / name).exists()]


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the checkpoint's fast tokenizer, which neither truncates nor pads. It carries the side to truncate on, and gives the segments
    that transformers gives (`read_as_transformers`).

    Raises `CompressError` if there is none, it cannot be read, it fails on unknown words, or its token numbers are not unique and below
    `MOST_TOKENS`.
    """
    path = folder / "tokenizer.json"
    tokenizer = open_tokenizer(path) if path.exists() else converted_tokenizer(folder)
    tokenizer = read_as_transformers(folder, tokenizer)
    tokenizer.no_padding()
    place = path if path.exists() else folder
    _check_unknown(place, tokenizer)
    _check_numbers(place, tokenizer)
    return tokenizer


def _check_numbers(place: Path, tokenizer: Tokenizer) -> None:
    """Check that token numbers are unique and in range: a copy of the tokenizer would keep only one of two tokens with the same number."""
    numbers = Counter(tokenizer.get_vocab(with_added_tokens=False).values())
    if doubled := [number for number, count in numbers.items() if count > 1]:
        raise CompressError(f"{place}: expected a number of its own for each token; found {doubled[0]} for several")
    if (largest := largest_number(tokenizer)) >= MOST_TOKENS:
        raise CompressError(f"{place}: expected numbers of tokens below {MOST_TOKENS}; found {largest}")


def _check_unknown(place: Path, tokenizer: Tokenizer) -> None:
    """Check that unknown words can be encoded: a vocabulary without its unknown token fails at the first one, in training or in use."""
    try:
        tokenizer.encode(_IN_NO_VOCABULARY, _IN_NO_VOCABULARY)
    except Exception as error:  # tokenizers raises bare Exception
        raise CompressError(f"{place}: the tokenizer cannot encode words that it does not know: {error}") from None


def largest_number(tokenizer: Tokenizer) -> int:
    """Return the largest token number, including special tokens put around texts, which need not be in the vocabulary."""
    return max([*tokenizer.get_vocab().values(), *tokenizer.encode("a", "a").ids], default=0)


def pad_id(config: dict[str, Any]) -> int:
    return whole_number(Path("config.json"), config, "pad_token_id", 0)


def load_classifier(
    folder: Path,
    *,
    kind: KindName,
    labels: tuple[str, ...],
    trained: bool,
    config: Mapping[str, Any] | None = None,
    activation: str | None = None,
) -> nn.Module:
    """Return a transformers model in fp32 with a head for tasks of `kind` and the label names `labels`.

    `trained`: the head is the checkpoint's own; otherwise it may be new. `config`: replaces the config in `folder`, e.g. with fewer layers;
    for embedding tasks it also says how vectors are made (`vector_fields`). `activation`: of the feed-forward layers, instead of the
    checkpoint's. Raises `CompressError` if any other weight is missing or has another shape, as it would be random.
    """
    from ..sentence_encoders.layer_mix import add_mix

    head = HEADS[kind]
    fields = vector_fields(folder, config or read_config(folder)) if head.bare else label_fields(kind, labels)
    if activation is not None:
        fields = {**fields, FAMILIES[read_config(folder)["model_type"]].own_name("hidden_act"): activation}
    model, loading = load_pretrained(auto_class(head), folder, "a classifier", **fields)
    new = () if trained and not head.bare else head.new
    check_loading(folder, loading, lambda name: any(part in name for part in new))
    if head.bare:
        add_mix(model)
    return without_pooler(model, head)


def load_encoder(folder: Path) -> nn.Module:
    """Return an `AutoModel` in fp32 and evaluation mode; a pooler that the checkpoint lacks is random.

    Raises `CompressError` if any other weight is missing or has another shape.
    """
    from transformers import AutoModel

    model, loading = load_pretrained(AutoModel, folder, "an encoder")
    check_loading(folder, loading, lambda name: "pooler." in name)
    return model.eval()


def label_fields(kind: KindName, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return the transformers config fields that describe a model's outputs; {} for vectors, whose outputs have no names."""
    if HEADS[kind].bare:
        return {}
    names = output_names(kind, labels)
    return {
        "num_labels": len(names),
        "id2label": dict(enumerate(names)),
        "label2id": {name: index for index, name in enumerate(names)},
        "problem_type": ANSWER_KINDS[kind].problem_type,
    }


def save_checkpoint(model: Any, tokenizer: Tokenizer, out: Path) -> None:
    """Write config, safetensors and tokenizer to `out`. transformers loads the folder without this package if the class is its own."""
    from ..sentence_encoders.layer_mix import written_mix

    quiet_transformers()
    out.mkdir(parents=True, exist_ok=True)
    with written_mix(model):
        model.save_pretrained(out)
    for path in out.glob("*.safetensors"):  # written readable by the owner alone, unlike the other files
        path.chmod((out / "config.json").stat().st_mode & 0o777)
    config = model.config.to_dict()
    settings = {"family": config["model_type"], "segments": has_segments(config)}
    save_tokenizer(tokenizer, out, max_length=usable_positions(config), **settings)


def save_tokenizer(
    tokenizer: Tokenizer,
    out: Path,
    *,
    family: str | None = None,
    segments: bool | None = None,
    max_length: int | None = None,
) -> None:
    """Write tokenizer.json and tokenizer_config.json (`tokenizer_settings_of`), for texts of up to `max_length` tokens."""
    out.mkdir(parents=True, exist_ok=True)
    text = untruncated(tokenizer).to_str(pretty=True)  # tokenizer_config.json has the side
    (out / "tokenizer.json").write_text(text, encoding="utf-8")  # `save` raises no OSError
    fields = tokenizer_settings_of(tokenizer, family=family, segments=segments)
    fields |= {} if max_length is None else {"model_max_length": max_length}
    (out / "tokenizer_config.json").write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
