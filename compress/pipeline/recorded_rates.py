"""The rates that trainings reached on this machine before, as the store records them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..models.dimensions import Dimensions
from ..store import Store
from ..store.manifest import NAME

_TRAININGS = 50  # the newest ones of a precision, whose rates are used
_READ = 1000  # manifests that are read at most to find them
_LIKE = 4.0  # models that differ in size by more than this factor are not compared


@dataclass(frozen=True)
class RecordedRate:
    """What a training reached: its `precision`, bytes of the model, and FLOP/s."""

    precision: str
    model_bytes: float
    flops_per_second: float


def recorded_rates(cache: Store, device: str) -> list[RecordedRate]:
    """Return the rates of the newest trainings of each precision in the store on this kind of device, newest first."""
    trainings = [rate for path in _newest(cache.root)[:_READ] if (rate := _read_rate(path, device)) is not None]
    counts: Counter[str] = Counter()
    newest = []
    for rate in trainings:
        counts[rate.precision] += 1
        if counts[rate.precision] <= _TRAININGS:
            newest.append(rate)
    return newest


def rate_like(known: Sequence[RecordedRate], model: Dimensions, precision: str) -> float | None:
    """Return the FLOP/s of the model nearest in size among those trained in `precision`; None if none is within a factor of `_LIKE`."""
    size = 4.0 * model.parameters
    near = [
        (abs(math.log(each.model_bytes / size)), each.flops_per_second) for each in known if each.precision == precision
    ]
    near = [(distance, rate) for distance, rate in near if distance <= math.log(_LIKE)]
    return min(near, key=lambda pair: pair[0])[1] if near else None


def _newest(root: Path) -> list[Path]:
    """Return the manifests, the newest first. Other processes may remove some meanwhile."""
    times: dict[Path, float] = {}
    for path in root.glob(f"*/{NAME}"):
        with suppress(OSError):
            times[path] = path.stat().st_mtime
    return sorted(times, key=lambda path: times[path], reverse=True)


def _read_rate(manifest: Path, device: str) -> RecordedRate | None:
    try:
        document = json.loads(manifest.read_bytes())
        info = document["info"]
        size, rate = float(document["files"]["model.safetensors"]["bytes"]), float(info["model_flops_per_second"])
        recorded = RecordedRate(str(info.get("precision")), size, rate)
        return recorded if size > 0 and rate > 0 and info.get("device") == device else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
