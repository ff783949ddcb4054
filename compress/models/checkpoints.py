"""Checkpoint folders: check, load and save. Safetensors only: a pickle is never opened."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from ..runtime.folder import label_names, whole_number
from .dimensions import usable_positions
from .pretrained import load_pretrained, quiet_transformers

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import nn

WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_IN_NO_VOCABULARY = "\U000103a0"  # Old Persian: a letter, which normalizers leave, and rare enough
_VOCABULARIES = ("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
_BERT_TOKENIZER = ("bert", "distilbert")  # families that come with it
_NEW_IN_A_CLASSIFIER = ("classifier.", "pre_classifier.", "pooler.")


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a checkpoint, each opened once to see that it is whole.

    Raises `CompressError` for a missing, pickled or truncated one.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickles = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt") for path in folder.glob(pattern))
        found = (
            f"found {pickles[0]}, a pickle, which can run code when loaded: convert it to safetensors"
            if pickles
            else "none"
        )
        raise CompressError(f"{folder}: expected {WEIGHTS}; {found}")
    for name in sorted(_shards(folder) - {path.name for path in files}):
        raise CompressError(f"{folder / name}: no such file; {_INDEX} says that it holds part of the weights")
    for path in files:
        _tensor_names(path)
    return files


def _shards(folder: Path) -> set[str]:
    """Names of the files that the index of a sharded checkpoint lists."""
    path = folder / _INDEX
    if not path.exists():
        return set()
    try:
        return set(json.loads(path.read_text(encoding="utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise CompressError(f"{path}: not the index of a sharded checkpoint: {error!r}") from None


def _tensor_names(path: Path) -> set[str]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return set(file.keys())
    except (SafetensorError, OSError) as error:
        raise CompressError(f"{path}: not a whole safetensors file: {error}") from None


def tensor_names(folder: Path) -> set[str]:
    return set().union(*(_tensor_names(path) for path in weight_files(folder)))


def layers_in(folder: Path) -> int:
    """Layers that the weights number, 0 where they number none, as ALBERT's do. transformers drops those beyond the config's
    without a word."""
    numbers = (re.search(r"\.layer\.(\d+)\.", name) for name in tensor_names(folder))
    return max((int(found[1]) + 1 for found in numbers if found), default=0)


def is_classifier(folder: Path, config: dict[str, Any]) -> bool:
    """Whether the checkpoint carries a trained sequence-classification head."""
    architectures = config.get("architectures") or []
    if not isinstance(architectures, list):
        raise CompressError(f"{folder}/config.json: architectures: expected a list of names, found {architectures!r}")
    named = any(str(name).endswith("ForSequenceClassification") for name in architectures)
    return named and any(name.startswith("classifier.") for name in tensor_names(folder))


def config_labels(config: dict[str, Any]) -> tuple[str, ...]:
    """Class names in id order, as the checkpoint's config gives them."""
    return label_names(Path("config.json"), config)


def tokenizer_files(folder: Path) -> list[Path]:
    """The files that decide what the tokenizer of a checkpoint does."""
    names = ("tokenizer.json", "vocab.txt")
    if not (folder / "tokenizer.json").exists():
        names = (*_VOCABULARIES, "merges.txt", "tokenizer_config.json", "special_tokens_map.json")
    return [path for name in names if (path := folder / name).exists()]


def load_tokenizer(folder: Path) -> Tokenizer:
    """The checkpoint's fast tokenizer, without its stored truncation and padding.

    Raises `CompressError` where there is none, it cannot be read, or it fails at a word that it does not know.
    """
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if path.exists():
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # tokenizers raises bare Exception
            raise CompressError(f"{path}: not a tokenizer: {error}") from None
    else:
        tokenizer = _converted_tokenizer(folder)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    _check_unknown(path if path.exists() else folder, tokenizer)
    return tokenizer


def _check_unknown(place: Path, tokenizer: Tokenizer) -> None:
    """A vocabulary without its unknown token fails at the first word that it does not know: in training, or in use."""
    try:
        tokenizer.encode(_IN_NO_VOCABULARY)
    except Exception as error:  # tokenizers raises bare Exception
        raise CompressError(f"{place}: the tokenizer cannot encode words that it does not know: {error}") from None


def _converted_tokenizer(folder: Path) -> Tokenizer:
    from transformers import AutoTokenizer

    if not any((folder / name).exists() for name in _VOCABULARIES):  # transformers would make an empty one
        raise CompressError(f"{folder}: expected tokenizer.json, or a vocabulary it can be made from such as vocab.txt")
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True).backend_tokenizer
    except Exception as error:  # tokenizers raises bare Exception
        reason = str(error).split("\n")[0]
        raise CompressError(f"{folder}: no tokenizer can be made from its vocabulary: {reason}") from None


def pad_id(config: dict[str, Any]) -> int:
    return whole_number(Path("config.json"), config, "pad_token_id", 0)


def load_classifier(folder: Path, *, labels: tuple[str, ...], trained: bool) -> nn.Module:
    """An `AutoModelForSequenceClassification` in fp32 for `labels` (() for regression).

    `trained`: the head is the checkpoint's own; otherwise it may be new. Raises `CompressError` when any other
    weight is missing or of another shape: it would be random.
    """
    from transformers import AutoModelForSequenceClassification

    weight_files(folder)
    auto = AutoModelForSequenceClassification
    model, loading = load_pretrained(auto, folder, "a classifier", **label_fields(labels))
    _check_loading(folder, loading, () if trained else _NEW_IN_A_CLASSIFIER)
    return model


def load_encoder(folder: Path) -> nn.Module:
    """An `AutoModel` in fp32, in evaluation mode; a pooler that the checkpoint lacks is random.

    Raises `CompressError` when any other weight is missing or of another shape.
    """
    from transformers import AutoModel

    weight_files(folder)
    model, loading = load_pretrained(AutoModel, folder, "an encoder")
    _check_loading(folder, loading, ("pooler.",))
    return model.eval()


def _check_loading(folder: Path, loading: dict[str, Any], new: tuple[str, ...]) -> None:
    """Raise for weights that transformers drew at random, those that may be `new` left aside."""
    mismatched = {name for name, *_ in loading["mismatched_keys"]}
    for names, what in ((loading["missing_keys"], "lacks"), (mismatched, "has other sizes than config.json for")):
        body = sorted(name for name in names if not any(part in name for part in new))
        if body:
            raise CompressError(f"{folder}: the checkpoint {what} {len(body)} of the model's weights, e.g. {body[0]}")


def label_fields(labels: tuple[str, ...]) -> dict[str, Any]:
    """What a transformers config says of the classes; one output named `score` for regression."""
    names = labels or ("score",)
    return {
        "num_labels": len(names),
        "id2label": dict(enumerate(names)),
        "label2id": {name: index for index, name in enumerate(names)},
        "problem_type": "single_label_classification" if labels else "regression",
    }


def save_checkpoint(model: Any, tokenizer: Tokenizer, out: Path) -> None:
    """A folder that transformers loads with nothing of ours: config, safetensors, tokenizer."""
    quiet_transformers()
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out)
    for path in out.glob("*.safetensors"):  # written for their owner alone; the other files are not
        path.chmod((out / "config.json").stat().st_mode & 0o777)
    config = model.config
    save_tokenizer(tokenizer, out, family=config.model_type, max_length=usable_positions(config.to_dict()))


def save_tokenizer(
    tokenizer: Tokenizer, out: Path, *, family: str | None = None, max_length: int | None = None
) -> None:
    """tokenizer.json and tokenizer_config.json, for a model of `family` (None: no model yet) and texts of `max_length` tokens.

    transformers loads BERT's own class only for BERT's own kind of tokenizer: it has no other model than WordPiece.
    """
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    lower = _lower_cases(tokenizer)
    bert = family in (None, *_BERT_TOKENIZER) and json.loads(tokenizer.to_str())["model"]["type"] == "WordPiece"
    fields = {
        "tokenizer_class": "BertTokenizer" if bert else "PreTrainedTokenizerFast",
        **({} if max_length is None else {"model_max_length": max_length}),
        **({} if lower is None else {"do_lower_case": lower}),
        **_special_tokens(tokenizer),
    }
    (out / "tokenizer_config.json").write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")


def _lower_cases(tokenizer: Tokenizer) -> bool | None:
    normalizer = json.loads(tokenizer.to_str()).get("normalizer") or {}
    return normalizer.get("lowercase")


def _special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    names = {
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
    if tokenizer.token_to_id("[CLS]") is None:
        names = {
            "unk_token": "<unk>",
            "sep_token": "</s>",
            "pad_token": "<pad>",
            "cls_token": "<s>",
            "mask_token": "<mask>",
        }
        names |= {"bos_token": "<s>", "eos_token": "</s>"}
    return {name: token for name, token in names.items() if tokenizer.token_to_id(token) is not None}
