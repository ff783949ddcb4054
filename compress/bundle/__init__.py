"""Ship a run as a folder that anyone can run and check, verify such a folder, and push it to a hub or write it for a server."""

from __future__ import annotations

from .document import BundleInfo, read_bundle
from .push import check_push, push_bundle
from .shipping.checkpoints import checkpoints_of, copy_checkpoint, take_checkpoint
from .shipping.ship import ship
from .shipping.triton import checked_model_folder, write_triton_model
from .verifying.report import Check, Report
from .verifying.verify import verify

__all__ = [
    "BundleInfo",
    "Check",
    "Report",
    "check_push",
    "checked_model_folder",
    "checkpoints_of",
    "copy_checkpoint",
    "push_bundle",
    "read_bundle",
    "ship",
    "take_checkpoint",
    "verify",
    "write_triton_model",
]
