"""transformers classes for static models: `StaticConfig`, `StaticModel` and its three heads.

transformers lacks them; `register` adds them to its Auto classes, so that such a checkpoint is loaded, trained and saved like any other.
"""

from __future__ import annotations

from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMultipleChoice,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput, TokenClassifierOutput


@strict
class StaticConfig(PreTrainedConfig):
    """`hidden_size`: width of the token vectors. `texts`: per example, 1 or 2. `window`: tokens on each side that a tagger also reads.
    `special_token_ids`: tokens that do not count. `separator_token_id`: the token before a pair's second text. `max_position_embeddings`:
    the longest text in tokens."""

    model_type = "static"

    vocab_size: int = 30522
    hidden_size: int = 256
    intermediate_size: int = 256
    max_position_embeddings: int = 512
    hidden_dropout_prob: float | int = 0.1
    initializer_range: float = 0.02
    texts: int = 1
    window: int = 0
    special_token_ids: list[int] | tuple[int, ...] = ()
    separator_token_id: int | None = None
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True

    @property
    def num_hidden_layers(self) -> int:
        return 0


class _Static(PreTrainedModel):
    config_class = StaticConfig
    base_model_prefix = "static"

    def _init_weights(self, module: nn.Module) -> None:
        """Initialise linear layers as torch does, and the table with variance 1, like token vectors (`token_vectors`)."""
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight)
        elif isinstance(module, nn.Linear):
            module.reset_parameters()


class StaticModel(_Static):
    """Maps tokens to their vectors, and to the means of these."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.word_embeddings = value

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        attention_mask: Int[Tensor, "batch length"] | None = None,
        **unused: Any,
    ) -> BaseModelOutputWithPooling:
        """Return token vectors and pooled means.

        `last_hidden_state` [batch, length, hidden]: each token's vector, 0 for special tokens and padding, so that the mean over all real
        tokens has the direction of the mean over words. `pooler_output` [batch, hidden]; for pairs [batch, 4 · hidden]: u, v, |u - v|, u ·
        v of the two texts' means. A mean is over real tokens that are not special; 0 if there are none. The second text starts after the
        first separator, even if that is part of the first text.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        vectors, words = self.word_embeddings(input_ids), _is_word(input_ids, mask, self.config)
        pooled = _compare_means(_means(vectors, _by_text(input_ids, words, self.config)))
        states = vectors * words[..., None].to(vectors.dtype)
        return BaseModelOutputWithPooling(last_hidden_state=states, pooler_output=pooled, hidden_states=())


def _is_word(ids: Tensor, mask: Tensor, config: Any) -> Tensor:
    """Return whether each token is real and not special: bool [batch, length]."""
    words = mask > 0
    for special in config.special_token_ids:
        words = words & (ids != special)
    return words


def _by_text(ids: Tensor, words: Tensor, config: Any) -> Tensor:
    """Return whether each token counts for each text: bool [batch, texts, length]."""
    if config.texts == 1:
        return words[:, None]
    second = (ids == config.separator_token_id).long().cumsum(dim=1) > 0
    return torch.stack([words & ~second, words & second], dim=1)


def _means(vectors: Float[Tensor, "batch length hidden"], counted: Tensor) -> Float[Tensor, "batch texts hidden"]:
    """Return means over the tokens that are `counted` [batch, texts, length]."""
    weights = counted.to(vectors.dtype)
    return weights @ vectors / weights.sum(dim=2, keepdim=True).clamp(min=1)


def _compare_means(means: Float[Tensor, "batch texts hidden"]) -> Float[Tensor, "batch features"]:
    if means.shape[1] == 1:
        return means[:, 0]
    first, second = means.unbind(dim=1)
    return torch.cat([first, second, (first - second).abs(), first * second], dim=-1)


class StaticForSequenceClassification(_Static):
    """A hidden layer with ReLU, and the outputs, on the pooled output of `StaticModel`."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.static = StaticModel(config)
        features = config.hidden_size * (4 if config.texts == 2 else 1)
        self.pre_classifier = nn.Linear(features, config.intermediate_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.intermediate_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        attention_mask: Int[Tensor, "batch length"] | None = None,
        **unused: Any,
    ) -> SequenceClassifierOutput:
        pooled = self.static(input_ids, attention_mask).pooler_output
        hidden = self.dropout(self.pre_classifier(self.dropout(pooled)).relu())
        return SequenceClassifierOutput(logits=self.classifier(hidden), hidden_states=())


class StaticForMultipleChoice(StaticForSequenceClassification):
    """The same with one output, for a pair of a context and an ending: [pair, length] to logits [pair, 1]."""


class StaticForTokenClassification(_Static):
    """A hidden layer with ReLU, and the outputs, for each token from its vector and its neighbours', left to right (a window, as in
    Collobert et al. 2011, arXiv:1103.0398, §3.3.1). Neighbours that are special or beyond the text are 0."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.static = StaticModel(config)
        self.pre_classifier = nn.Linear(config.hidden_size * (2 * config.window + 1), config.intermediate_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.intermediate_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Int[Tensor, "batch length"],
        attention_mask: Int[Tensor, "batch length"] | None = None,
        **unused: Any,
    ) -> TokenClassifierOutput:
        states = self.static(input_ids, attention_mask).last_hidden_state
        read = self.dropout(_windows(states, self.config.window))
        hidden = self.dropout(self.pre_classifier(read).relu())
        return TokenClassifierOutput(logits=self.classifier(hidden), hidden_states=())


def _windows(
    states: Float[Tensor, "batch length hidden"], size: int
) -> Float[Tensor, "batch length window_times_hidden"]:
    """Return the states of `size` tokens on the left, the token and `size` on the right, concatenated."""
    length = states.shape[1]
    padded = nn.functional.pad(states, (0, 0, size, size))
    return torch.cat([padded[:, first : first + length] for first in range(2 * size + 1)], dim=-1)


def register() -> None:
    """Register static models with transformers' Auto classes; calling it again has no effect."""
    AutoConfig.register(StaticConfig.model_type, StaticConfig, exist_ok=True)
    AutoModel.register(StaticConfig, StaticModel, exist_ok=True)
    AutoModelForSequenceClassification.register(StaticConfig, StaticForSequenceClassification, exist_ok=True)
    AutoModelForTokenClassification.register(StaticConfig, StaticForTokenClassification, exist_ok=True)
    AutoModelForMultipleChoice.register(StaticConfig, StaticForMultipleChoice, exist_ok=True)
