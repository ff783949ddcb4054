"""tokenizer_config.json for this package's tokenizers, so that transformers gives a model the same tokens and segments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...runtime.cutting import truncation_side
from ...tokenization.special import MASK, PAD, UNKNOWN, token_named
from ..families import FAMILIES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

GENERAL = "PreTrainedTokenizerFast"  # takes tokenizer.json as it is, in transformers 4 too
_SPECIAL = {  # by transformers' names: BERT's, XLNet's and RoBERTa's
    "unk": UNKNOWN,
    "sep": ("[SEP]", "<sep>", "</s>"),
    "pad": PAD,
    "cls": ("[CLS]", "<cls>", "<s>"),
    "mask": MASK,
    "bos": ("<s>",),
    "eos": ("</s>",),
}
_LONGEST_WORD = 100  # letters; a longer one is unknown


def tokenizer_settings_of(
    tokenizer: Tokenizer, *, family: str | None = None, segments: bool | None = None
) -> dict[str, Any]:
    """Return class, options and special tokens, for a model of `family` (None: no model yet); `segments`: whether it reads token types.

    transformers rebuilds BERT's own class from its options, ignoring tokenizer.json, so it is used only for tokenizers of exactly BERT's
    form. For the general class, the model's other inputs must be listed.
    """
    parts, special = json.loads(tokenizer.to_str()), _special_tokens(tokenizer)
    known = FAMILIES["bert" if family is None else family]
    own = known.tokenizer.wordpiece_class
    fits = own is not None and _is_berts(tokenizer, parts, special)
    inputs = ["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"]
    return {
        "tokenizer_class": own if fits else GENERAL,
        **_options(parts["normalizer"] or {}, fits),
        **({} if segments is None else {"model_input_names": inputs}),
        **({"padding_side": "left"} if known.tokenizer.pads_left else {}),
        **({"truncation_side": "left"} if truncation_side(tokenizer) == "left" else {}),
        **special,
    }


def _options(normalizer: dict[str, Any], fits: bool) -> dict[str, Any]:
    """Return the options. Those that differ from BERT's usual ones are only for its own class."""
    options = {} if normalizer.get("lowercase") is None else {"do_lower_case": normalizer["lowercase"]}
    if fits and normalizer["strip_accents"] is not None:
        options["strip_accents"] = normalizer["strip_accents"]
    if fits and not normalizer["handle_chinese_chars"]:
        options["tokenize_chinese_chars"] = False
    return options


def _is_berts(tokenizer: Tokenizer, parts: dict[str, Any], special: dict[str, str]) -> bool:
    """Whether `BertTokenizer` with suitable options gives the same tokens."""
    model, normalizer = parts["model"], parts["normalizer"] or {}
    return (
        model["type"] == "WordPiece"
        and (model["continuing_subword_prefix"], model["max_input_chars_per_word"]) == ("##", _LONGEST_WORD)
        and normalizer.get("type") == "BertNormalizer"
        and normalizer["clean_text"]
        and (parts["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer"
        and model["unk_token"] == special.get("unk_token")
        and _surrounds_as_bert(tokenizer, special)
    )


def _surrounds_as_bert(tokenizer: Tokenizer, special: dict[str, str]) -> bool:
    """Whether pairs are [CLS] A [SEP] B [SEP], with B and what follows it in the second segment."""
    text_ids, pair = tokenizer.encode("a", add_special_tokens=False).ids, tokenizer.encode("a", "a")
    first, last = (tokenizer.token_to_id(special.get(f"{name}_token", "")) for name in ("cls", "sep"))
    types = [0] * (len(text_ids) + 2) + [1] * (len(text_ids) + 1)
    return (pair.ids, pair.type_ids) == ([first, *text_ids, last, *text_ids, last], types)


def _special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    """Return special tokens by role; of two candidates, the one marked special, as in MPNet's vocabulary."""
    by_role = {}
    for what, tokens in _SPECIAL.items():
        number = token_named(tokenizer, tokens)
        if number is not None:
            by_role[f"{what}_token"] = tokenizer.id_to_token(number)
    return by_role
