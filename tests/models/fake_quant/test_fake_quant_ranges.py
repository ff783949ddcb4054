"""The ranges of a model that computes like its int8 file: they follow its states or are trained, and each belongs to one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from fake_quant_toys import COUNTS_PADDING, families, feed, loaded, quantizer, texts
from torch.utils._python_dispatch import TorchDispatchMode

from compress.models.fake_quant.classifier import fake_quantized


@families
def test_moving_averages_see_real_tokens_alone(family: str, tiny_checkpoint) -> None:
    """Padding moves no range, and one forward pass moves a range by a tenth of the way."""
    model, starts = loaded(tiny_checkpoint(family)), []
    pad = model.config.pad_token_id
    for padding in (pad, pad if family in COUNTS_PADDING else pad + 3):
        quant = quantizer(model, ranges="moving_average")
        assert not list(quant.parameters())
        exact = quant.start.clone()
        quant.start.mul_(2)
        with fake_quantized(model, quant), torch.no_grad():
            quant.eval()
            model(**feed(model, texts(padding)))
            assert torch.equal(quant.start, 2 * exact)
            quant.train()
            model(**feed(model, texts(padding)))
        starts.append(quant.start)
        moved = (quant.start / exact)[exact != 0]
        assert (moved - 1.9).abs().max() < 0.03  # earlier layers are quantized coarsely, so this is approximate
    torch.testing.assert_close(starts[0], starts[1], rtol=1e-4, atol=1e-4)


class ReadOuts(TorchDispatchMode):
    """Records operators whose output shape depends on the data, which make a GPU synchronize."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        picks = func is torch.ops.aten.index.Tensor and any(i is not None and i.dtype == torch.bool for i in args[1])
        if picks or func is torch.ops.aten.nonzero.default:
            self.operators.append(str(func))
        return func(*args, **(kwargs or {}))


def test_ranges_follow_without_a_wait_for_the_device(tiny_checkpoint) -> None:
    model = loaded(tiny_checkpoint("bert"))
    quant, batch = quantizer(model, ranges="moving_average"), feed(model, texts())
    before = quant.start.clone()
    with fake_quantized(model.train(), quant), ReadOuts() as read:
        model(**batch)
        assert not read.operators
        _ = batch["input_ids"][batch["attention_mask"].bool()]
        assert read.operators
    assert not torch.equal(quant.start, before)


@families
def test_training_reaches_every_weight_and_range(family: str, tiny_checkpoint) -> None:
    model = loaded(tiny_checkpoint(family))
    plain = {name for name, weight in model.named_parameters() if weight.requires_grad}
    quant = quantizer(model, gain=50.0)
    before = quant.input_ranges()
    with fake_quantized(model, quant):
        named = dict(model.named_parameters())
        assert set(named) - plain == {"fake_quant.moves"}
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
        model(**feed(model, texts())).logits.square().sum().backward()
        assert quant.moves is not None
        assert quant.moves.grad is not None
        unused = {"roberta.pooler", "electra.pooler"}
        reached = {name for name, weight in named.items() if weight.grad is not None and weight.grad.any()}
        # The bias of keys is the same for all tokens, so attention does not depend on it, in any layer.
        missing = {
            name
            for name in plain - reached
            if not any(word in name for word in ("key.bias", "k_lin.bias", "attn.k.bias"))
        }
        assert {name for name in missing if not name.startswith(tuple(unused))} == set()
        optimizer.step()
    widths = {name: before[name][1] - before[name][0] for name in before}
    moves = [
        abs(end - old) / widths[name]
        for name, ends in quant.input_ranges().items()
        for end, old in zip(ends, before[name], strict=True)
    ]
    assert max(moves) == pytest.approx(0.05, rel=0.02)  # lr × gain, in units of the range: Adam's first step
    assert np.mean(np.array(moves) > 0.02) > 0.9


def test_what_reads_one_tensor_has_one_range_and_a_shared_block_one_for_each_use(tiny_checkpoint) -> None:
    for family, stem, names in (
        ("bert", "bert.encoder.layer.0.attention.self.", ("query", "key", "value")),
        ("albert", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.", ("query", "key", "value")),
    ):
        model = loaded(tiny_checkpoint(family))
        ranges = quantizer(model).input_ranges()
        assert len({ranges[f"{stem}{name}/MatMul"] for name in names}) == 1
    block = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    assert ranges[f"{block}.ffn/MatMul"] != ranges[f"{block}.ffn/MatMul_1"]
    assert f"{block}.attention.query/MatMul_1" in ranges
    assert f"{block}.attention.key/MatMul_1" not in ranges  # absorbed: only its weight is int8
