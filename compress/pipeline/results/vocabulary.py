"""What a result says of a vocabulary that was cut down; on the reported splits, too, once the models are finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...models.checkpoints import load_tokenizer
from ...models.dimensions import Dimensions
from ...quantize.word_blocks import row_bytes
from ...recorded_vocabulary import TextRates, VocabularyRecord
from ...spec.stages import Vocabulary
from ...store import Artifact
from ...tasks import Split
from ...vocabulary import compare_splits
from ..plan import Plan
from .measure import Model


def vocabulary_record(
    plan: Plan, artifacts: Mapping[str, Artifact], models: Sequence[Model], reported: Mapping[str, Split]
) -> VocabularyRecord | None:
    """None where no stage cuts a vocabulary down. `reported`: the reported splits."""
    node = next((node for node in plan.nodes if isinstance(node.spec, Vocabulary)), None)
    if node is None:
        return None
    made, info = artifacts[node.id], artifacts[node.id].info
    before, after = (load_tokenizer(each.path) for each in (artifacts[node.inputs["model"]], made))
    dropped = info["tokens_before"] - info["tokens"]
    files = {
        model.label: model.onnx.stat().st_size + dropped * _row_bytes(artifacts[model.label], plan.sizes_of(node))
        for model in models
        if node.id in {needed.id for needed in plan.needed_for(model.label)}
    }
    return VocabularyRecord(
        model=models[-1].name,
        tokens=info["tokens"],
        tokens_before=info["tokens_before"],
        seen={name: TextRates(**rates) for name, rates in info["texts"].items()},
        reported={name: compare_splits(before, after, split).rates for name, split in reported.items()},
        files_before=files,
    )


def _row_bytes(graph: Artifact, sizes: Dimensions) -> int:
    """What a token takes in the file: a row of the table of words."""
    bits = 4 if graph.info.get("int4_gathers") else 8 if graph.info.get("int8_gathers") else 32
    return row_bytes(sizes.vocabulary, sizes.embedding, bits=bits)
