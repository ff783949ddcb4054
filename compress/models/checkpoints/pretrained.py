"""Load models from checkpoint folders: fp32, from the allowed part of config.json and from safetensors alone.

transformers is given objects and never the folder, where it would also look for adapters, generation settings, custom code and other weight
formats, any of which can make it access a hub.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import CompressError
from ...processes.shared_settings import restore_at_end
from ..dimensions import dimensions, read_config
from ..families import FAMILIES
from ..families.fields import TOKENIZER_CLASS
from ..usable_classes import usable_class
from .weights import count_weights, load_weights

_TOO_MANY = 4  # times the weights in the checkpoint; more would be allocated before they are found missing


def quiet_transformers() -> None:
    """Silence the libraries' load reports and progress bars; our own checks report what matters."""
    from transformers.utils import logging

    restore_at_end("transformers", _logging_state)
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _logging_state() -> Callable[[], None]:
    """Return a function that restores the verbosity and progress bars of transformers."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()

    def restore() -> None:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

    return restore


def load_pretrained(
    auto: Any, folder: Path, what: str, *, attention: str | None = None, **fields: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the model that the transformers class `auto` makes of `folder`, and transformers' loading info.

    `what`: its name in the message, e.g. `an encoder`; `attention`: transformers' name of the implementation, default the family's;
    `fields`: override the config. Weights that are missing or have another shape are random; the caller decides which may be. Raises
    `CompressError` if the folder cannot be loaded.
    """
    import torch

    config = read_config(folder)
    _check_size(folder, config)
    state = load_weights(folder)
    quiet_transformers()
    try:
        full_config = transformers_config({**config, **fields})
        with torch.device("meta"):
            kind = usable_class(type(auto.from_config(full_config)), full_config)
        model, loading = kind.from_pretrained(
            None,
            config=full_config,
            state_dict=state,
            dtype=torch.float32,
            attn_implementation=attention or FAMILIES[config["model_type"]].attention.implementation,
            local_files_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except Exception as error:  # transformers raises many unrelated types
        reason = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise CompressError(f"{folder}: cannot be loaded as {what}: {reason}") from None
    model.config.name_or_path = ""  # transformers sets it to the text "None"
    return model, loading


def check_loading(folder: Path, loading: dict[str, Any], is_new: Callable[[str], bool] = lambda name: False) -> None:
    """Raise `CompressError` for weights that transformers initialised at random, except those that may be new."""
    mismatched = {name for name, *_ in loading["mismatched_keys"]}
    for names, what in ((loading["missing_keys"], "lacks"), (mismatched, "has other sizes than config.json for")):
        if body := sorted(name for name in names if not is_new(name)):
            raise CompressError(f"{folder}: the checkpoint {what} {len(body)} of the model's weights, e.g. {body[0]}")


def transformers_config(fields: Mapping[str, Any]) -> Any:
    """Return transformers' config of a model with these fields, which include its `model_type`. If that type is this package's own, it is
    registered with the Auto classes."""
    from transformers import AutoConfig

    if (register := FAMILIES[fields["model_type"]].register_classes) is not None:
        register()
    return AutoConfig.for_model(**{name: value for name, value in fields.items() if name != TOKENIZER_CLASS})


def _check_size(folder: Path, config: Mapping[str, Any]) -> None:
    """Check roughly that the config's sizes fit the weights; missing weights are found later, by name."""
    expected, actual = dimensions(dict(config), classes=1, folder=folder).parameters, count_weights(folder)
    if expected > _TOO_MANY * actual:
        raise CompressError(
            f"{folder / 'config.json'}: expected the sizes of the model that the weights belong to: a model of "
            f"these sizes has {expected:,} weights, and the checkpoint {actual:,}"
        )
