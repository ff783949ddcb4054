"""XLNet in a form that exports to ONNX: it computes what the classifier does, with linear layers for its weights.

transformers stores attention's weights as tensors with three axes and multiplies them by einsum, which quantizers ignore,
and it computes the positions' keys for each text of a batch. Here they are computed once per run. Attention is
Transformer-XL's (Dai et al. 2019, arXiv:1901.02860, §3.3) with relative segments (Yang et al. 2019, arXiv:1906.08237, §2.5).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...models.heads import head_of
from ...models.sentence_encoders.pooling import Pooling, pooling_of, read_states, sentence_vectors
from ...models.xlnet import last_tokens

_LEAST = -1e30  # what transformers adds to the scores of padding


class XLNetForm(nn.Module):
    """The form of `model`, a classifier of texts or of tokens, or an encoder alone. It shares the other weights of `model`,
    under the same module names."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.transformer, head = _Encoder(model.base_model), head_of(model)
        self._on_tokens = head.on_tokens
        self._pooling: Pooling | None = pooling_of(model) if head.bare else None
        self.read = partial(read_states, model)
        if self._on_tokens:
            setattr(self, self._on_tokens, getattr(model, self._on_tokens))
        elif self._pooling is None:
            self.sequence_summary, self.logits_proj = model.sequence_summary, model.logits_proj

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Any:
        """Return logits [batch, class], or [batch, length, label], or the last states and vectors [batch, hidden], from
        [batch, length] tensors."""
        states = self.transformer(input_ids, attention_mask, token_type_ids)
        if self._pooling is not None:
            return self.read(states), sentence_vectors(states, attention_mask, self._pooling)
        if self._on_tokens:
            return getattr(self, self._on_tokens)(states)
        return self.logits_proj(self.sequence_summary(last_tokens(states, attention_mask)))


class _Encoder(nn.Module):
    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.word_embedding = encoder.word_embedding
        self.layer = nn.ModuleList(_Layer(layer) for layer in encoder.layer)
        self._clamp, width = encoder.clamp_len, encoder.d_model
        steps = torch.arange(0, width, 2, dtype=torch.float32)
        self.frequencies = nn.Buffer(1 / torch.pow(10000, steps / width), persistent=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        states = self.word_embedding(input_ids)
        length = input_ids.shape[1]
        waves = self._sinusoids(length, states.device)
        hidden = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * _LEAST
        # Padding attends to itself, which keeps its sums finite.
        hidden = hidden * (1.0 - torch.eye(length, device=states.device))
        other = token_type_ids[:, None, :, None] != token_type_ids[:, None, None, :]
        for layer in self.layer:
            states = layer(states, waves, hidden, other)
        return states

    def _sinusoids(self, length: int, device: Any) -> Tensor:
        """Sines and cosines [1, 2 · length, hidden] of the distances from length down to 1 - length."""
        distances = torch.arange(2 * length, device=device)
        distances = (length - distances).to(torch.float32)
        if self._clamp > 0:
            distances = distances.clamp(-self._clamp, self._clamp)
        angles = distances[:, None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], dim=-1)[None]


class _Layer(nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.rel_attn, self.ff = _Attention(layer.rel_attn), layer.ff

    def forward(self, states: Tensor, waves: Tensor, hidden: Tensor, other: Tensor) -> Tensor:
        return self.ff(self.rel_attn(states, waves, hidden, other))


class _Attention(nn.Module):
    q: nn.Linear
    k: nn.Linear
    v: nn.Linear
    r: nn.Linear

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self._heads, self._size, self._scale = attention.n_head, attention.d_head, attention.scale
        for name in ("q", "k", "v", "r"):
            setattr(self, name, _linear(getattr(attention, name).flatten(1).T))  # [in, head, size]
        self.o = _linear(attention.o.flatten(1))  # [out, head, size]
        biases = {"content": attention.r_w_bias, "position": attention.r_r_bias, "segment": attention.r_s_bias}
        self.biases = nn.ParameterDict({name: bias.detach()[None, :, None] for name, bias in biases.items()})
        self.segments = nn.Parameter(attention.seg_embed.detach()[:, None, :, None])  # [2, 1, head, 1, size]
        self.layer_norm = attention.layer_norm

    def forward(self, states: Tensor, waves: Tensor, hidden: Tensor, other: Tensor) -> Tensor:
        query = self._split_heads(self.q(states))
        content = (query + self.biases["content"]) @ self._split_heads(self.k(states)).transpose(-1, -2)
        position = (query + self.biases["position"]) @ self._split_heads(self.r(waves)).transpose(-1, -2)
        same, another = ((query + self.biases["segment"]) * row for row in self.segments)
        segment = torch.where(other, another.sum(-1, keepdim=True), same.sum(-1, keepdim=True))
        scores = (content + _relative_shift(position) + segment) * self._scale + hidden
        context = scores.softmax(-1) @ self._split_heads(self.v(states))
        return self.layer_norm(self.o(context.transpose(1, 2).flatten(2)) + states)

    def _split_heads(self, states: Tensor) -> Tensor:
        """[batch, length, head · size] to [batch, head, length, size]."""
        return states.unflatten(-1, (self._heads, self._size)).transpose(1, 2)


def _linear(weight: Tensor) -> nn.Linear:
    """Return a linear layer without a bias from `weight` [out, in]."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight.detach().contiguous())
    return layer


def _relative_shift(scores: Tensor) -> Tensor:
    """Convert [batch, head, query, distance], distances from length down to 1 - length, to [batch, head, query, key]: row i
    is shifted by i."""
    batch, heads, length, distances = scores.shape
    reshaped = scores.reshape(batch, heads, distances, length)[:, :, 1:]
    return reshaped.reshape(batch, heads, length, distances - 1)[..., :length]
