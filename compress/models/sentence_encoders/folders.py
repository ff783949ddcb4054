"""What a sentence-transformers folder says about its vectors, besides config.json and the weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# Steps that make a vector, its pooling, how texts are read; prompts and how vectors are compared.
MODULES, POOLING = "modules.json", "1_Pooling/config.json"
TEXTS, PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"
LAYERS = ("Transformer", "Pooling", "Normalize")
_SAMPLE = "A Cased Text"


def pooling_file(folder: Path) -> Path:
    """Return the file that says how `folder` pools. Raises `CompressError` if it has modules not supported here, or its pooling is
    configured in an unexpected place."""
    path = folder / MODULES
    modules = read_document(path, list) or []
    kinds = [_module_kind(module) for module in modules]
    if other := [kind for kind in kinds if kind not in LAYERS]:
        raise CompressError(
            f"{path}: expected {', '.join(LAYERS)}; found {', '.join(other)}, which would be left out of the "
            "vectors: give a sentence encoder without these"
        )
    pools = [module for module, kind in zip(modules, kinds, strict=True) if kind == "Pooling"]
    named = [str(module["path"]) for module in pools if "path" in module]
    inside = [name for name in named if name.endswith("_Pooling") and not {"/", "\\"} & set(name)]
    if named and not inside:
        raise CompressError(
            f"{path}: Pooling: expected a folder beside it whose name ends with _Pooling, found {named[0]!r}"
        )
    return folder / inside[0] / "config.json" if inside else folder / POOLING


def _module_kind(module: Any) -> str:
    return str(module.get("type")).rpartition(".")[2] if isinstance(module, dict) else "?"


def vector_notes(folder: Path, tokenizer: Tokenizer, max_length: int) -> Iterator[str]:
    """Yield what sentence-transformers would do with the encoder in `folder` that is not done here, for texts of at most `max_length`
    tokens. Raises `CompressError` if a file cannot be read."""
    texts, prompts = (read_document(folder / name, dict) or {} for name in (TEXTS, PROMPTS))
    longest = texts.get("max_seq_length")
    if isinstance(longest, int) and longest != max_length:
        yield f"it cuts texts to {longest:,} tokens ({TEXTS}), and the task to {max_length:,} (max_length)"
    if texts.get("do_lower_case") and _keeps_case(tokenizer):
        yield f"it lower-cases texts ({TEXTS}), which is not done here: give texts in lower case"
    default, listed = prompts.get("default_prompt_name"), prompts.get("prompts")
    prompt = listed.get(default) if isinstance(listed, dict) else None
    if prompt:
        yield f"it puts {prompt!r} before texts ({PROMPTS}), which is not done here: give texts that begin with it"
    compared = prompts.get("similarity_fn_name") or "cosine"
    modules = read_document(folder / MODULES, list)
    if compared != "cosine" and modules is not None and "Normalize" not in map(_module_kind, modules):
        yield f"it compares vectors by {compared} ({PROMPTS}); here they have length 1 and are compared by their cosine"


def _keeps_case(tokenizer: Tokenizer) -> bool:
    return tokenizer.encode(_SAMPLE).ids != tokenizer.encode(_SAMPLE.lower()).ids


def read_document(path: Path, kind: type[Any]) -> Any:
    """Return the JSON of `path`; None if there is no such file. Raises `CompressError` if it cannot be read or is not a `kind`."""
    if not path.is_file():
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CompressError(f"{path}: cannot be read: {error}") from None
    if not isinstance(document, kind):
        raise CompressError(f"{path}: expected a JSON {'object' if kind is dict else 'list'}, found something else")
    return document
