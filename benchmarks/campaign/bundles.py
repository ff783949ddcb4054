"""Make an int8 bundle of every finished run."""

from __future__ import annotations

from .state import Campaign


def make_bundles(campaign: Campaign) -> None:
    """Bundle every finished run, also after the time is out: it takes little time, and the bundles are what the campaign is for."""
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
