"""What a stage reads of plain text: its sequences, or its pairs of segments, and which of their tokens are masked. Needs no torch: a run
checks its text before anything is trained, and a cached run trains nothing."""

from __future__ import annotations

from typing import Any

from ...corpus import MaskedBatches, PairBatches, TextBatches, TokenShards, sentence_ends
from ...errors import CompressError
from ...losses import LOSSES
from ...losses.masked_lm import MaskedTokens
from ...spec.stages import OnText
from ...store import Artifact
from ...tokenization.word_starts import continuing
from ..plan import Node, Plan

_TEXT_LENGTH = 128  # tokens of a sequence of plain text, unless the recipe says otherwise


def text_of(plan: Plan, node: Node[Any], text: Artifact) -> tuple[TextBatches, TextBatches | None]:
    """Return the part of the tokenized `text` to train on, and the held-out share, if the stage reports a perplexity.

    Raises `CompressError` if the text is too short for the stage.
    """
    held_out = getattr(node.spec, "held_out", 0.0) if uses_mlm(node) else 0.0
    shards = TokenShards.open(text.path)
    try:
        return _sequences(plan, node, shards).held_out(held_out)
    except CompressError as error:
        words, most = ", ".join(plan.corpus.words) if plan.corpus else "none", node.spec.max_tokens
        cut = f", of which max_tokens takes {most:,} tokens: raise that first" if most and len(shards) >= most else ""
        raise CompressError(
            f"recipe {plan.recipe.name}, stage {node.stage}: {error}; the text is {words}{cut}"
        ) from None


def _sequences(plan: Plan, node: Node[OnText], shards: TokenShards) -> TextBatches:
    """Return full sequences, or pairs of segments if a loss of the stage needs those."""
    how: Any = {"length": text_length(plan, node), "batch_size": node.spec.batch_size, "seed": node.seed}
    labels: Any = next((loss.name for loss in stage_losses(node) if LOSSES[loss.name].reads == "segment_pairs"), None)
    if labels is None:
        return TextBatches(shards, **how, separate_documents=node.spec.attention == "document")
    return PairBatches(shards, **how, ends=sentence_ends(plan.teacher.tokenizer), labels=labels)


def text_length(plan: Plan, node: Node[OnText]) -> int:
    """Tokens of a sequence of plain text."""
    return node.spec.max_length or min(_TEXT_LENGTH, plan.positions_of(node))


def with_masking(plan: Plan, node: Node[OnText], text: TextBatches) -> MaskedBatches:
    """Return `text` with masked tokens, as the stage's masked-LM loss specifies."""
    loss = next((loss for loss in stage_losses(node) if isinstance(loss, MaskedTokens)), MaskedTokens())
    return MaskedBatches(
        text, masks=loss.masks, continues=continuing(plan.teacher.tokenizer) if loss.whole_words else None
    )


def uses_mlm(node: Node[Any]) -> bool:
    """Whether the stage's model learns to predict masked tokens."""
    return any(isinstance(loss, MaskedTokens) for loss in stage_losses(node))


def stage_losses(node: Node[Any]) -> list[Any]:
    return [loss for loss in getattr(node.spec, "losses", ()) if loss.weight > 0]
