"""`from_pretrained` as every loader of ours calls it: fp32, from a folder alone, from safetensors alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import CompressError


def quiet_transformers() -> None:
    """Our own checks say what matters; the libraries' load reports and bars are noise on a user's terminal."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_pretrained(auto: Any, folder: Path, what: str, **fields: Any) -> tuple[Any, dict[str, Any]]:
    """The model that the transformers class `auto` makes of `folder`, and what transformers says of its loading.

    `what`: what the message calls it, e.g. `an encoder`; `fields`: of the config. Weights that are missing or of another
    shape are drawn at random: the caller decides which may be. Raises `CompressError` where there is no model in it.
    """
    from huggingface_hub.errors import StrictDataclassError

    from . import partial_albert  # noqa: F401 - makes its classes known

    quiet_transformers()
    try:
        return auto.from_pretrained(
            folder,
            **fields,
            dtype="float32",
            attn_implementation="sdpa",
            use_safetensors=True,
            local_files_only=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, StrictDataclassError) as error:
        reason = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise CompressError(f"{folder}: cannot be loaded as {what}: {reason}") from None
