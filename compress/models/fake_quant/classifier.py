"""Fake quantization: a classifier that computes in floats what its int8 graph will, so that it can be trained.

Nothing of it stays in the checkpoint: when the `with` block ends, the model is a plain one again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from .rounding import STEPS, round_rows, round_states, round_weight
from .spec import POSITIONS, SEGMENTS, TASKS, MatmulUse, QuantSpec

Ranges = Mapping[str, tuple[float, float]]  # a tensor's name -> low, high
_AVERAGED = 0.1  # weight of a new batch in a moving average


class FakeQuant(nn.Module):
    """The activation ranges of a model, and the rounding of everything that becomes int8.

    `ranges`: `learned` ones are trained with the model; `moving_average` ones follow the values of real tokens in training (Jacob et al.
    2018, arXiv:1712.05877, section 3.1). `start`: the initial range of each tensor. `gain`: how much farther an optimizer step moves the
    ends of a learned range than a weight of the model, in widths of the range. `factors`: matmul -> [in], fixed smoothing factors of its
    input; ranges are of the smoothed input. `channel_repeats`: matmul -> [in], how often each input channel occurs in the file.
    """

    def __init__(
        self,
        spec: QuantSpec,
        start: Ranges,
        *,
        ranges: Literal["learned", "moving_average"],
        gain: float = 1.0,
        factors: Mapping[str, Any] | None = None,
        channel_repeats: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.spec, self.gain = spec, gain
        sources = dict.fromkeys(use.source for use in spec.uses if use.source is not None)
        self._indices = {source: index for index, source in enumerate(sources)}
        ends = [(min(start[source][0], 0.0), max(start[source][1], 0.0)) for source in self._indices]
        self.start = nn.Buffer(torch.tensor(ends, dtype=torch.float32).reshape(-1, 2))
        # 1-D, like biases: no weight decay.
        self.moves = nn.Parameter(torch.zeros(self.start.numel())) if ranges == "learned" else None
        self._uses = {(use.module, use.number): use for use in spec.uses}
        self._factors = self._register_vectors("factor", factors, torch.float32)
        self._repeats = self._register_vectors("channel_repeats", channel_repeats, torch.int64)
        self.begin()

    def _register_vectors(self, kind: str, vectors: Mapping[str, Any] | None, dtype: torch.dtype) -> dict[str, str]:
        """Register `vectors` as buffers; return matmul -> buffer name."""
        names = {matmul: f"{kind}_{number}" for number, matmul in enumerate(vectors or {})}
        for matmul, name in names.items():
            self.register_buffer(name, torch.tensor((vectors or {})[matmul], dtype=dtype))
        return names

    def _vector_of(self, names: Mapping[str, str], matmul: str) -> Tensor | None:
        return getattr(self, names[matmul]) if matmul in names else None

    def begin(self, mask: Tensor | None = None) -> None:
        """Prepare a forward on a batch with `mask` [batch, length], 1 for real tokens."""
        self._mask = mask
        self._calls: dict[str, int] = {}
        self._cache: dict[str, Tensor] = {}

    def ends(self, index: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        """Return low and high of a tensor; gradients reach the learned parameters multiplied by `scale`."""
        start = self.start[index]
        if self.moves is None:
            return start[0], start[1]
        moves = self.moves[2 * index : 2 * index + 2]
        moved = moves * scale + (moves * self.gain - moves * scale).detach()
        ends = start + (start[1] - start[0]) * moved
        return ends[0], ends[1]

    @torch.no_grad()
    def input_ranges(self) -> dict[str, tuple[float, float]]:
        """Return for each matmul by name the (low, high) of its quantized input."""
        ends = {source: self.ends(index) for source, index in self._indices.items()}
        spans = {source: (float(low), float(high)) for source, (low, high) in ends.items()}
        return {use.name: spans[use.source] for use in self.spec.uses if use.source is not None}

    def linear(self, module: Any, path: str, states: Tensor) -> Tensor:
        """Return the output of `module`, a linear layer at `path`, for `states` [batch, length, in] or [batch, in]."""
        number = self._calls.get(path, 0)
        self._calls[path] = number + 1
        use = self._uses.get((path, number))
        if use is None:
            return functional.linear(states, module.weight, module.bias)
        smoothing, channel_repeats = self._vector_of(self._factors, use.name), self._vector_of(self._repeats, use.name)
        if use.source is not None:
            smoothed_states = states if smoothing is None else states * (1 / smoothing)
            states = self._compute_once(use.source, lambda: self._round_states(use, smoothed_states))
        smoothed_weight = module.weight if smoothing is None else module.weight * smoothing
        per_channel, bits = self.spec.per_channel, self.spec.bits
        weight = self._compute_once(
            f"{path}.weight",
            lambda: round_weight(smoothed_weight, per_channel=per_channel, bits=bits, channel_repeats=channel_repeats),
        )
        return functional.linear(states, weight, module.bias)

    def smoothing(self) -> dict[str, Tensor]:
        """Return matmul -> [in], the factors that its input is divided by."""
        return {matmul: getattr(self, name) for matmul, name in self._factors.items()}

    def channel_repeats(self) -> dict[str, Tensor]:
        """Return matmul -> [in], how often each channel of its input occurs."""
        return {matmul: getattr(self, name) for matmul, name in self._repeats.items()}

    def _compute_once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """Return a value computed once per forward: query, key and value read the same tensor, and ALBERT's layers the same weight."""
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    def _round_states(self, use: MatmulUse, states: Tensor) -> Tensor:
        """Return `states` rounded. If the graph's matmul is for the first token alone, the others stay as they are."""
        index, rows = self._indices[str(use.source)], states[:, :1] if use.first else states
        if self.moves is None and self.training:
            self._follow_range(index, rows, use.first)
        # LSQ, Esser et al. 2020, arXiv:1902.08153, section 2.2: balances the gradient with that of the weights.
        low, high = self.ends(index, scale=(rows[0].numel() * STEPS) ** -0.5)
        rounded = round_states(rows, low, high)
        return torch.cat([rounded, states[:, 1:].float()], 1) if use.first else rounded

    @torch.no_grad()
    def _follow_range(self, index: int, states: Tensor, first: bool) -> None:
        # Padding becomes 0, which every range includes: dropping it would wait for the GPU to report how much there is.
        real = states if first or self._mask is None else states.masked_fill(~self._mask.bool()[..., None], 0)
        seen = torch.stack([real.min().clamp(max=0), real.max().clamp(min=0)]).float()
        self.start[index] += _AVERAGED * (seen - self.start[index])


@contextmanager
def fake_quantized(model: nn.Module, quant: FakeQuant) -> Iterator[FakeQuant]:
    """Make `model` compute as `quant` says while open, in training and evaluation. `quant` is a submodule meanwhile, so that optimizers and
    training checkpoints include its ranges."""
    paths = dict.fromkeys(use.module for use in quant.spec.uses)
    linears, tables = ({path: model.get_submodule(path) for path in some} for some in (paths, quant.spec.tables))
    handles = [
        model.register_forward_pre_hook(_begin_forward, with_kwargs=True),
        model.register_forward_hook(_end_forward),
    ]
    handles += [
        table.register_forward_hook(
            _look_up(path, _folded_tables(model, path, quant.spec.one_segment), coded=path in quant.spec.long)
        )
        for path, table in tables.items()
    ]
    model.fake_quant = quant
    for path, module in linears.items():
        module.forward = _forward(quant, module, path)
    try:
        yield quant
    finally:
        for module in linears.values():
            del module.forward  # uncovers the class's own
        for handle in handles:
            handle.remove()
        del model.fake_quant


def _forward(quant: FakeQuant, module: nn.Module, path: str) -> Callable[[Tensor], Tensor]:
    return lambda states: quant.linear(module, path, states)


def _folded_tables(model: nn.Module, path: str, one_segment: bool) -> list[nn.Embedding]:
    """Return the tables whose first row the graph adds to the position table at `path`: task types, and segments if the graph has only
    one."""
    scope, _, name = path.rpartition(".")
    if name != POSITIONS:
        return []
    embeddings: Any = model.get_submodule(scope)
    tables = (getattr(embeddings, each, None) for each in (TASKS, *([SEGMENTS] if one_segment else [])))
    return [table for table in tables if table is not None]


def _look_up(path: str, folded: Sequence[nn.Embedding], *, coded: bool) -> Callable[..., Tensor]:
    def rounded_rows(table: Any, arguments: Any, rows: Tensor) -> Tensor:
        stored = _exported_rows(table, path)
        if not folded:
            return round_rows(rows, stored, coded=coded)
        row = torch.stack([each.weight[0] for each in folded]).sum(0)
        return round_rows(rows + row, stored + row.detach(), coded=coded) - row

    return rounded_rows


def _exported_rows(table: nn.Embedding, path: str) -> Tensor:
    """Return the rows that the graph has; of RoBERTa's positions, those after the padding's."""
    first = 0 if table.padding_idx is None or path.rpartition(".")[2] != POSITIONS else table.padding_idx + 1
    return table.weight.detach()[first:]


def _begin_forward(model: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    mask = named.get("attention_mask")
    if mask is not None and mask.dim() == 4:  # per query and key, or added to scores
        mask = mask[:, 0, 0] == 0 if mask.is_floating_point() else mask[:, 0, 0]
    model.fake_quant.begin(mask)


def _end_forward(model: Any, arguments: Any, output: Any) -> None:
    """Drop the tensors cached for this forward."""
    model.fake_quant.begin()
