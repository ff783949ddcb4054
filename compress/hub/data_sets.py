"""Load a data set of the hub at a commit, and at no other."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..errors import CompressError
from .checksums import drop_damaged
from .reach import cache_only, is_reachable, out_of_reach, quiet_client
from .refusals import reason


def load_splits(
    name: str, config: str | None, commit: str, splits: list[str], remedies: str, *, streaming: bool = False
) -> list[Any]:
    """Return `splits` of a data set, from the cache if it has this commit, without a request to the hub.

    `datasets` by itself takes a folder of that name in the working directory and, if the hub refuses or is out of reach, the commit that it
    cached last: neither needs to be the commit named. Raises `CompressError` with the reason, and, if the hub is out of reach, the
    `remedies`.
    """
    cached = find_cached(name, config, commit)
    reachable = cached is not None or is_reachable()
    try:
        with nullcontext() if reachable else cache_only(), quiet_data_sets():
            builder = _builder(name, config, commit) if cached is None else _cached_builder(name, cached)
            if str(builder.hash) == commit:
                return _read(builder, splits, streaming, new=cached is None and reachable)
            failed: Exception | None = None
    except Exception as error:  # the library raises a dozen unrelated types: network, layout, configuration
        failed = error
    if not reachable and (failed is None or isinstance(failed, OSError) or "find cache" in str(failed)):
        missing = f"commit {commit} is not in the hub's cache"
        raise CompressError(f"data set {name}: cannot be read: {missing}, {out_of_reach(remedies)}") from failed
    raise CompressError(f"data set {name}: cannot be read: {_failure_reason(failed, name, commit)}") from failed


def find_cached(name: str, config: str | None, commit: str) -> Path | None:
    """Return the folder in which `datasets` caches the prepared data set at this commit, None if there is none."""
    from datasets import config as settings
    from datasets.naming import camelcase_to_snakecase

    owner, _, short = name.rpartition("/")
    snake = camelcase_to_snakecase(short)
    root = Path(settings.HF_DATASETS_CACHE).expanduser() / (f"{owner}___{snake}" if owner else snake)
    folders = [*(root / (config or _default_config(name, commit))).glob(f"*/{commit}")]
    return next((path for path in folders if (path / settings.DATASET_INFO_FILENAME).is_file()), None)


def _default_config(name: str, commit: str) -> str:
    """Return the configuration that `datasets` takes where none is named: by its card in the hub's cache, else "default"."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    card = _snapshot(name, commit) / "README.md"
    if not card.is_file():
        return "default"
    try:
        data: Any = DatasetCard.load(card, ignore_metadata_errors=True).data
        return MetadataConfigs.from_dataset_card_data(data).get_default_config_name() or "default"
    except (OSError, ValueError):  # none that `datasets` takes: the download refuses it
        return "default"


@contextmanager
def quiet_data_sets() -> Iterator[None]:
    """Within the block, `datasets` and the hub's client give no warnings, and show progress bars on terminals alone."""
    import datasets

    level = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    try:
        with quiet_client():
            yield
    finally:
        datasets.logging.set_verbosity(level)


def error_text(error: BaseException) -> str:
    """Return the message of `datasets` about a configuration, split or file that it does not find, in one line."""
    text = " ".join(str(error).partition("Example of usage")[0].split()) or type(error).__name__
    if match := re.search(r"scripts are no longer supported, but found (\S+)", text):
        return (
            f"its {match[1]} is a loading script, which is code and is never run; look for a commit with data files, as the "
            "hub's own conversion has: the newest of the branch refs/convert/parquet"
        )
    return text.rstrip(".")


def _builder(name: str, config: str | None, commit: str) -> Any:
    import datasets

    return datasets.load_dataset_builder(f"hf://datasets/{name}", config, revision=commit)


def _cached_builder(name: str, folder: Path) -> Any:
    """Return the builder that `datasets` uses for prepared data, for this folder and not the last one that it prepared."""
    from datasets.packaged_modules.cache.cache import Cache

    config, version, commit = folder.parts[-3:]
    return Cache(repo_id=name, dataset_name=name.rpartition("/")[2], config_name=config, version=version, hash=commit)


def _read(builder: Any, splits: list[str], streaming: bool, *, new: bool) -> list[Any]:
    """Read the splits. `new`: check downloaded files before use, and remove what was made of damaged ones."""
    if streaming:
        return [builder.as_streaming_dataset(split=split) for split in splits]
    try:
        builder.download_and_prepare()
    finally:  # damage may be the reason for a failure
        if new and (damage := drop_damaged(_snapshot(builder.repo_id, str(builder.hash)))) is not None:
            shutil.rmtree(builder.cache_dir, ignore_errors=True)
            raise ValueError(damage)
    return builder.as_dataset(split=splits)


def _snapshot(name: str, commit: str) -> Path:
    """The folder in the hub's cache with the files of a data set."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"datasets--{name.replace('/', '--')}" / "snapshots" / commit


def _failure_reason(failed: Exception | None, name: str, commit: str) -> str:
    from datasets.exceptions import DatasetGenerationError

    if isinstance(failed, DatasetGenerationError):  # has no message of its own
        return f"its files cannot be read: {error_text(failed.__cause__ or failed)}"
    if isinstance(failed, ValueError | RuntimeError):  # about the data set itself
        return error_text(failed)
    if (refusal := _refusal(name, commit)) is not None:
        return refusal
    return reason(failed, name, commit, "dataset") if failed is not None else f"the hub did not give commit {commit}"


def _refusal(name: str, commit: str) -> str | None:
    """Return why the hub gives no file of the data set, by a direct request: `datasets` hides the reason behind its search for a cache."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError

    try:
        with quiet_client():
            get_hf_file_metadata(hf_hub_url(name, "README.md", repo_type="dataset", revision=commit))
    except EntryNotFoundError:
        return None
    except Exception as error:  # the client raises its own, httpx's and OS errors alike
        return reason(error, name, commit, "dataset")
    return None
