"""transformers' XLNet models for batches padded on the right, like all here.

The text classifier reads the last token, which the tokenizer makes <cls>. transformers takes the last position of the batch, which is that
token only with padding on the left. Attention uses only distances, so real tokens get the same states with padding on either side.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.modeling_outputs import (
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)


class _WithoutMemories:
    """An XLNet that keeps no states of a text for the next one."""

    def forward(
        self: Any,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the head's output. All inputs are [batch, length], padded on either side. `token_type_ids`: equal for tokens of one
        segment."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        output = self.transformer(
            input_ids,
            attention_mask=mask.to(self.dtype),
            token_type_ids=token_type_ids,
            output_hidden_states=output_hidden_states,
            use_mems=False,
            **kwargs,
        )
        return self._apply_head(output.last_hidden_state, mask, output.hidden_states)


# These have transformers' own names, which checkpoints use, and the same weights.


class XLNetForSequenceClassification(_WithoutMemories, transformers.XLNetForSequenceClassification):  # type: ignore[misc]
    """Logits [batch, label] from the last token."""

    def _apply_head(self, states: Tensor, mask: Tensor, hidden: Any) -> SequenceClassifierOutput:
        summary = self.sequence_summary(last_tokens(states, mask))
        return SequenceClassifierOutput(logits=self.logits_proj(summary), hidden_states=hidden)


class XLNetForMultipleChoice(_WithoutMemories, transformers.XLNetForMultipleChoice):  # type: ignore[misc]
    """Logits [pair, 1] from the last token; each pair of a context and an ending is scored separately."""

    def _apply_head(self, states: Tensor, mask: Tensor, hidden: Any) -> MultipleChoiceModelOutput:
        summary = self.sequence_summary(last_tokens(states, mask))
        return MultipleChoiceModelOutput(logits=self.logits_proj(summary), hidden_states=hidden)


class XLNetForTokenClassification(_WithoutMemories, transformers.XLNetForTokenClassification):  # type: ignore[misc]
    """Logits [batch, length, label]."""

    def _apply_head(self, states: Tensor, mask: Tensor, hidden: Any) -> TokenClassifierOutput:
        return TokenClassifierOutput(logits=self.classifier(states), hidden_states=hidden)


class XLNetForQuestionAnsweringSimple(_WithoutMemories, transformers.XLNetForQuestionAnsweringSimple):  # type: ignore[misc]
    """Start and end logits, [batch, length] each."""

    def _apply_head(self, states: Tensor, mask: Tensor, hidden: Any) -> QuestionAnsweringModelOutput:
        start, end = self.qa_outputs(states).unbind(-1)
        return QuestionAnsweringModelOutput(start_logits=start, end_logits=end, hidden_states=hidden)


def last_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """Return the state of each text's last token, [batch, 1, hidden], from states [batch, length, hidden]."""
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (places * mask).argmax(-1)
    return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1]))
