"""The files by which sentence-transformers opens a bundle of a sentence encoder: it pools and normalises the token states itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import CheckFailed, CompressError
from ..models.dimensions import read_config
from ..models.sentence_encoders.folders import LAYERS, MODULES, POOLING, PROMPTS, TEXTS
from ..models.sentence_encoders.pooling import FIELD, MODES, Pooling
from ..models.sentence_encoders.vector_layers import AVERAGED, vector_words
from ..runtime.folder import read_json, read_settings


def pooling_of(path: Path, config: dict[str, Any]) -> Pooling:
    """Return how the model with the config at `path` pools its vectors: `mean` or `cls`. CompressError: it says neither."""
    mode = config.get(FIELD)
    if mode not in MODES:
        raise CompressError(f"{path}: {FIELD}: expected {' or '.join(MODES)}, found {mode!r}")
    return mode


def check_layers(checkpoint: Path) -> None:
    """Raise CompressError if vectors combine several layers' states, which tools that pool the checkpoint's last states
    would not see."""
    if (words := vector_words(read_config(checkpoint))) is not None:
        raise CompressError(
            f"{checkpoint / 'config.json'}: {AVERAGED}: vectors are {words}, and transformers would pool the last alone: ship without "
            "the checkpoint, for the graphs have all of it inside"
        )


def write_modules(folder: Path, config: dict[str, Any], max_length: int) -> None:
    """Write the files beside config.json. `max_length`: tokens, to which texts are truncated. Raises `CompressError` as
    `pooling_of` does."""
    path = folder / "config.json"
    pooling, width = pooling_of(path, config), read_settings(folder).width
    places = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{name}"}
        for number, (place, name) in enumerate(zip(places, LAYERS, strict=True))
    ]
    modes = {mode: name == pooling for name, mode in MODES.items()}
    (folder / POOLING).parent.mkdir()
    _write(folder / MODULES, modules)
    _write(folder / POOLING, {"word_embedding_dimension": width, **modes, "include_prompt": True})
    _write(folder / TEXTS, {"max_seq_length": max_length, "do_lower_case": False})
    prompts = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    _write(folder / PROMPTS, prompts)


def check_modules(folder: Path, recorded: Pooling | None) -> str:
    """Check that the pooling `recorded` in bundle.json, and the one that others read, agree with config.json. CheckFailed: they do not."""
    config = read_json(folder / "config.json")
    pooling, width = pooling_of(folder / "config.json", config), read_settings(folder).width
    if recorded != pooling:
        raise CheckFailed(f"bundle.json: pooling: expected {pooling}, as config.json has it; found {recorded}")
    module = read_json(folder / POOLING)
    modes = [name for name, mode in MODES.items() if module.get(mode)]
    if modes != [pooling] or module.get("word_embedding_dimension") != width:
        raise CheckFailed(
            f"{folder / POOLING}: expected {pooling} of {width} numbers, as config.json has it, found "
            f"{' and '.join(modes) or 'none'} of {module.get('word_embedding_dimension')}"
        )
    return f"{pooling} of {width} numbers"


def _write(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
