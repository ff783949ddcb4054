"""Ranker: errors about texts that cannot be encoded use its argument names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runtime_toys import bag

from compress.errors import CompressError
from compress.runtime import Ranker

HALF = "\ud800"


@pytest.mark.parametrize(
    ("query", "passages", "place"),
    [(HALF, ["a"], "query"), (HALF, [], "query"), ("a", ["b", HALF, "c"], r"passages\[1\]")],
)
def test_half_of_a_surrogate_pair_is_named_by_its_argument(
    tmp_path: Path, query: str, passages: list[str], place: str
) -> None:
    folder = bag(tmp_path / "ranker", logits_bias=(0.0,))
    config = json.loads((folder / "config.json").read_text()) | {"sentence_transformers": {}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CompressError, match=f"^{place}: expected Unicode text, found half of a surrogate pair"):
        Ranker(folder, threads=1).rank(query, passages)
