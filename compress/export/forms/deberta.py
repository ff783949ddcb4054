"""DeBERTa-v2 and -v3 in a form that exports to ONNX: it computes what the classifier does, disentangled attention included.

transformers multiplies the table of relative positions by two matrices in every layer of every run, for each text of a
batch, and finds the bucket of a distance by logarithms, which two runtimes round differently. None of that depends on the
text: here the positions' keys and queries are weights, and the buckets a table of integers. He et al. 2021,
arXiv:2006.03654, §3.1.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...models.heads import head_of
from ...models.sentence_encoders.pooling import Pooling, pooling_of, read_states, sentence_vectors


class DebertaForm(nn.Module):
    """The form of `model`, a classifier of texts or of tokens, or an encoder alone. It shares the other weights of `model`,
    under the same module names."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.deberta, head = _Encoder(model.base_model), head_of(model)
        self.pooling: Pooling | None = pooling_of(model) if head.bare else None
        self.read = partial(read_states, model)
        if not head.bare:
            self.pooler = nn.Identity() if head.per_token else model.pooler
            self._last = head.on_tokens or "classifier"
            setattr(self, self._last, getattr(model, self._last))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Any:
        """Return logits [batch, class], or [batch, length, label], or the last states and vectors [batch, hidden], from
        [batch, length] tensors."""
        states = self.deberta(input_ids, attention_mask, token_type_ids)
        if self.pooling is not None:
            return self.read(states), sentence_vectors(states, attention_mask, self.pooling)
        return getattr(self, self._last)(self.pooler(states))


class _Encoder(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.embeddings, longest = model.embeddings, model.config.max_position_embeddings
        self.encoder: Any = nn.Module()
        with torch.no_grad():
            positions = model.encoder.get_rel_embedding()
            buckets = model.encoder.get_rel_pos(torch.empty(1, longest, 1))[0]  # [query, key]
        self.encoder.layer = nn.ModuleList(_Layer(layer, positions) for layer in model.encoder.layer)
        by_distance = torch.cat([buckets[0].flip(0), buckets[1:, 0]])  # query minus key, from 1 - longest on
        half = len(positions) // 2
        self._longest = longest
        self.rows_of_keys = nn.Buffer((by_distance + half).clamp(0, 2 * half - 1), persistent=False)
        self.rows_of_queries = nn.Buffer((half - by_distance).clamp(0, 2 * half - 1), persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None) -> Tensor:
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, mask=attention_mask)
        places = torch.arange(input_ids.shape[1], device=states.device)
        distances = places[:, None] - places + self._longest - 1
        rows = self.rows_of_keys[distances], self.rows_of_queries[distances]
        hidden = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        for layer in self.encoder.layer:
            states = layer(states, rows, hidden)
        return states


class _Layer(nn.Module):
    def __init__(self, layer: Any, positions: Tensor) -> None:
        super().__init__()
        self.attention: Any = nn.Module()
        self.attention.self = _Attention(layer.attention.self, positions)
        self.attention.output, self.intermediate, self.output = layer.attention.output, layer.intermediate, layer.output

    def forward(self, states: Tensor, rows: tuple[Tensor, Tensor], hidden: Tensor) -> Tensor:
        attended = self.attention.output(self.attention.self(states, rows, hidden), states)
        return self.output(self.intermediate(attended), attended)


class _Attention(nn.Module):
    """Attention of one layer. `positions` [row, hidden]: the relative positions, which all layers share."""

    def __init__(self, attention: Any, positions: Tensor) -> None:
        super().__init__()
        self._heads, self._size = attention.num_attention_heads, attention.attention_head_size
        self.query_proj, self.key_proj, self.value_proj = attention.query_proj, attention.key_proj, attention.value_proj
        shared = attention.share_att_key
        with torch.no_grad():  # [head · size, row]
            keys = (attention.key_proj if shared else attention.pos_key_proj)(positions).T
            queries = (attention.query_proj if shared else attention.pos_query_proj)(positions).T
        self.position_keys, self.position_queries = (nn.Parameter(part.contiguous()) for part in (keys, queries))
        self._scale = (3 * self._size) ** -0.5  # three terms: content, and content with position both ways

    def forward(self, states: Tensor, rows: tuple[Tensor, Tensor], hidden: Tensor) -> Tensor:
        query, key, value = (
            self._split_heads(part(states)) for part in (self.query_proj, self.key_proj, self.value_proj)
        )
        shape = (query.shape[0], self._heads, query.shape[2], query.shape[2])
        content = query @ key.transpose(-1, -2)
        to_position = (query @ self._weight_by_head(self.position_keys)).gather(-1, rows[0].expand(shape))
        from_position = (key @ self._weight_by_head(self.position_queries)).gather(-1, rows[1].expand(shape))
        scores = (content + to_position + from_position.transpose(-1, -2)) * self._scale + hidden
        return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)

    def _split_heads(self, states: Tensor) -> Tensor:
        """[batch, length, head · size] to [batch, head, length, size]."""
        return states.unflatten(-1, (self._heads, self._size)).transpose(1, 2)

    def _weight_by_head(self, weight: Tensor) -> Tensor:
        """[head · size, row] to a matrix for each head, [head, size, row]."""
        return weight.unflatten(0, (self._heads, self._size))
