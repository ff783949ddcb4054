"""Ship a run as a folder that anyone can run and check; check such a folder."""

from __future__ import annotations

from .checkpoints import copy_checkpoint, take_checkpoint
from .document import BundleInfo, read_bundle
from .report import Check, Report
from .ship import ship
from .verify import verify

__all__ = ["BundleInfo", "Check", "Report", "copy_checkpoint", "read_bundle", "ship", "take_checkpoint", "verify"]
