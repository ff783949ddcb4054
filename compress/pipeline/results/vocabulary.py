"""What a result records of a reduced vocabulary, including the reported splits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...fields import Spec
from ...models.checkpoints.folders import load_tokenizer
from ...quantize.word_blocks import row_bytes
from ...results.vocabulary import TextRates, VocabularyRecord
from ...spec.quantization import Quantize
from ...spec.stages import Vocabulary
from ...store import Artifact
from ...tasks import Split
from ...vocabulary import compare_splits
from ..plan import Plan
from .measure import Model

_WORDS = re.compile(r"(word|tok)_embeddings?/")  # in the name of the node that looks words up, in every family


def vocabulary_record(
    plan: Plan, artifacts: Mapping[str, Artifact], models: Sequence[Model], reported: Mapping[str, Split]
) -> VocabularyRecord | None:
    """Return the record, None if no stage reduces a vocabulary. `reported`: the reported splits."""
    node = next((node for node in plan.nodes if isinstance(node.spec, Vocabulary)), None)
    if node is None:
        return None
    artifact, info = artifacts[node.id], artifacts[node.id].info
    before, after = (load_tokenizer(each.path) for each in (artifacts[node.inputs["model"]], artifact))
    sizes = plan.sizes_of(node).embedding, info["tokens_before"], info["tokens"]
    specs = {other.id: other.spec for other in plan.nodes}
    files = {
        model.label: model.onnx.stat().st_size + _dropped_bytes(artifacts[model.label], specs[model.label], *sizes)
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


def _dropped_bytes(graph: Artifact, spec: Spec, width: int, before: int, after: int) -> int:
    """Return how much larger the file would be with all tokens. A table that has become short keeps 8 bits even if `word_bits` is 4."""
    bits = 32
    if isinstance(spec, Quantize) and not any(map(_WORDS.search, graph.info["stayed_fp32"])):
        bits = spec.word_bits
    return before * row_bytes(before, width, bits=bits) - after * row_bytes(after, width, bits=bits)
