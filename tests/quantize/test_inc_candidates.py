"""Which matmuls neural-compressor's search leaves in fp32 first."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification

from compress.export.fast import build_fast
from compress.models.families import FAMILIES
from compress.pruning.removal import without_units
from compress.quantize.inc_tuning import _candidates, _layer_part
from compress.quantize.node_selection import select_nodes
from compress.quantize.qat_params import deduplicate_weights

SECOND = "bert.encoder.layer.{}.output.dense"


def test_candidates_of_a_pruned_model_are_its_feed_forward_layers_by_name(tiny_checkpoint) -> None:
    """The first layer has fewer heads, and fewer neurons than the hidden size, so that shapes would identify the wrong
    matmuls."""
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("bert"))
    heads, width = model.config.num_attention_heads, model.config.intermediate_size
    graph = build_fast(without_units(model, [range(1), range(heads)], [range(16), range(width)]).eval())
    assert graph is not None
    deduplicate_weights(graph)
    second = [SECOND.format(layer) for layer in (0, 1)]
    first = [f"bert.encoder.layer.{layer}.intermediate.dense" for layer in (0, 1)]
    plan = select_nodes(graph, (), embeddings=True, source=Path("pruned"))
    assert _candidates(graph, plan.int8) == [(), (second[0],), tuple(second), (*second, *first)]


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet"])
def test_parts_are_known_by_the_names_that_their_family_gives_them(family: str) -> None:
    known = FAMILIES[family]
    layer = f"{family}.{known.layers.path.format(11)}"
    assert {part: _layer_part(f"{layer}.{name}") for part, name in known.layers.parts.items()} == {
        part: part for part in known.layers.parts
    }
    assert (
        _layer_part("classifier") is None and _layer_part("deberta.encoder.layer.0.attention.self.query_proj") is None
    )
