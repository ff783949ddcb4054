"""The int8 bundle of every run that was finished."""

from __future__ import annotations

from .state import Campaign


def make_bundles(campaign: Campaign) -> None:
    """Also after the time is out: it is short, and the reason for the rest."""
    piece = campaign.arguments.piece_mib
    for step in [step for step in campaign.steps.values() if step["state"] == "done" and "run" in step["answer"]]:
        name = step["answer"]["run"]
        what = {
            "run": str(campaign.out / "runs" / name),
            "store": str(campaign.out / "runs" / ".store"),
            "out": str(campaign.out / "bundles" / name),
            "made": step["what"],
            "piece_bytes": None if piece is None else int(piece * 2**20),
        }
        campaign.step(f"bundle {name}", "bundle", what, max(campaign.left, 120.0))
