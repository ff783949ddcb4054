"""transformers' XLNet models for batches that are padded on the right, as all are here.

One of texts classifies by the last token, which its tokenizer makes <cls>. transformers takes the last place of the batch, which is
that token only where texts are padded on the left. Attention knows but distances, so what real tokens compute is the same on
either side.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.modeling_outputs import (
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)


class XLNetForSequenceClassification(transformers.XLNetForSequenceClassification):
    """Under transformers' own name, by which checkpoints call it; its weights are the same."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """All [batch, length], padded on either side. `token_type_ids`: equal for tokens of one segment."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        output = _encoded(self, input_ids, mask, token_type_ids, output_hidden_states, **kwargs)
        summary = self.sequence_summary(last_tokens(output.last_hidden_state, mask))
        return SequenceClassifierOutput(logits=self.logits_proj(summary), hidden_states=output.hidden_states)


class XLNetForTokenClassification(transformers.XLNetForTokenClassification):
    """As transformers has it, but that the states of a text are not kept for the next one."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> TokenClassifierOutput:
        """All [batch, length]; logits [batch, length, label]. `token_type_ids`: equal for tokens of one segment."""
        output = _encoded(self, input_ids, attention_mask, token_type_ids, output_hidden_states, **kwargs)
        logits = self.classifier(output.last_hidden_state)
        return TokenClassifierOutput(logits=logits, hidden_states=output.hidden_states)


class XLNetForQuestionAnsweringSimple(transformers.XLNetForQuestionAnsweringSimple):
    """As transformers has it, but that the states of a text are not kept for the next one."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> QuestionAnsweringModelOutput:
        """All [batch, length], the logits of start and of end too. `token_type_ids`: equal for tokens of one segment."""
        output = _encoded(self, input_ids, attention_mask, token_type_ids, output_hidden_states, **kwargs)
        start, end = self.qa_outputs(output.last_hidden_state).unbind(-1)
        return QuestionAnsweringModelOutput(start_logits=start, end_logits=end, hidden_states=output.hidden_states)


def _encoded(
    model: Any,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
    output_hidden_states: bool | None,
    **kwargs: Any,
) -> Any:
    """What the encoder of `model` gives."""
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    return model.transformer(
        input_ids,
        attention_mask=mask.to(model.dtype),
        token_type_ids=token_type_ids,
        output_hidden_states=output_hidden_states,
        use_mems=False,  # of the texts before
        **kwargs,
    )


def last_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """Of states [batch, length, hidden] that of each text's last token, [batch, 1, hidden]."""
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (places * mask).argmax(-1)
    return states.gather(1, last[:, None, None].expand(-1, 1, states.shape[-1]))
