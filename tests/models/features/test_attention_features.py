"""Scores, queries, keys and values of every family are correct, no others are computed, and the model is unaffected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import covering
from torch import Tensor
from transformers import AutoModel, AutoModelForSequenceClassification

from compress.errors import CompressError
from compress.losses.features import ATTENTION as KINDS
from compress.models.families import FAMILIES as FAMILIES_OF
from compress.models.features import attention
from compress.models.features.named import compute_features

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")

HEADS, SIZE, LAYERS = 2, 16, 2
LENGTHS = (9, 9, 4, 1)

ATTENTION = [f"{kind}[{layer}]" for kind in KINDS for layer in range(LAYERS)]
every_family = pytest.mark.parametrize("family", FAMILIES)


def batch_of(lengths: tuple[int, ...] = LENGTHS) -> dict[str, Tensor]:
    length = max(lengths)
    ids = torch.randint(5, 100, (len(lengths), length), generator=torch.Generator().manual_seed(1))
    mask = (torch.arange(length) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": (torch.arange(length) > 3).long() * mask}


Load = Callable[..., Any]


@pytest.fixture
def load(tiny_checkpoint: Callable[[str], Path]) -> Load:
    """Return a function: (family, headless) -> a model without dropout, loaded anew. `implementation`: of its attention."""

    def make(family: str, *, headless: bool = False, implementation: str | None = None) -> Any:
        auto = AutoModel if headless else AutoModelForSequenceClassification
        return auto.from_pretrained(
            tiny_checkpoint(family), attn_implementation=implementation or FAMILIES_OF[family].attention.implementation
        ).eval()

    return make


@every_family
def test_logits_and_states_are_the_same_to_the_bit_whatever_else_is_captured(load: Load, family: str):
    """Each layer uses the same kernel as without capture, so the tolerance is zero."""
    model, batch = load(family), batch_of()
    plain = compute_features(model, batch, ["logits", "hidden[1]", "hidden[-1]"])
    captured = compute_features(model, batch, [*plain, *ATTENTION])
    assert set(captured) == {*plain, *ATTENTION}
    assert all(torch.equal(captured[name], plain[name]) for name in plain)


def split(joined: Tensor) -> Tensor:
    return joined.reshape(*joined.shape[:2], HEADS, SIZE).transpose(1, 2)


def projections_of(model: Any, batch: dict[str, Tensor]) -> dict[str, list[Tensor]]:
    """Return the outputs of the linear layers of queries, keys and values, in order of the calls, split into heads."""
    outputs: dict[str, list[Tensor]] = {"queries": [], "keys": [], "values": []}
    names = {
        "query": "queries",
        "key": "keys",
        "value": "values",
        "q_lin": "queries",
        "k_lin": "keys",
        "v_lin": "values",
        "q": "queries",
        "k": "keys",
        "v": "values",
    }
    handles = []
    for path, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and (kind := names.get(path.split(".")[-1])):
            keep = outputs[kind].append
            handles.append(module.register_forward_hook(lambda *call, keep=keep: keep(split(call[2]))))
    compute_features(model, batch, ["hidden[-1]"])
    for handle in handles:
        handle.remove()
    return outputs


@every_family
def test_queries_keys_and_values_are_those_of_their_layer(load: Load, family: str):
    """ALBERT's two layers are one layer called twice, with different inputs."""
    model, batch = load(family), batch_of()
    expected = projections_of(model, batch)
    features = compute_features(model, batch, ATTENTION)
    for kind, calls in expected.items():
        assert len(calls) == LAYERS
        assert not torch.equal(*calls)
        for layer, tensor in enumerate(calls):
            assert torch.equal(features[f"{kind}[{layer}]"], tensor)


@every_family
def test_scores_are_before_softmax_and_weights_are_the_eager_probabilities(load: Load, family: str):
    model, batch = load(family), batch_of()
    features = compute_features(model, batch, ATTENTION)
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    if family in ("bert", "electra", "albert", "ernie"):
        inputs["token_type_ids"] = batch["token_type_ids"]
    probabilities = load(family, implementation="eager")(**inputs, output_attentions=True).attentions
    padded = batch["attention_mask"][:, None, None, :] == 0
    for layer in range(LAYERS):
        scores = features[f"scores[{layer}]"]
        assert scores.shape == (len(LENGTHS), HEADS, 9, 9)
        products = features[f"queries[{layer}]"] @ features[f"keys[{layer}]"].transpose(2, 3) / SIZE**0.5
        if family == "mpnet":  # its scores include the relative-position bias
            products = products + load(family).mpnet.encoder.compute_position_bias(products[:, 0])
        torch.testing.assert_close(scores, products, rtol=1e-5, atol=1e-6)  # fp32
        masked = scores.masked_fill(padded, -torch.inf)
        torch.testing.assert_close(masked.log_softmax(-1).exp(), probabilities[layer], rtol=1e-4, atol=1e-6)  # fp32
        torch.testing.assert_close(features[f"weights[{layer}]"], probabilities[layer], rtol=1e-4, atol=1e-6)  # fp32
        assert (scores[2, :, :4, 4:].abs() < 1e3).all(), "no mask was added"


@every_family
def test_negative_indices_and_other_names_of_the_same(load: Load, family: str):
    model, batch = load(family), batch_of()
    names = ("scores[-1]", "scores[1]", "values[-2]", "values[0]", "embeddings", "hidden[0]", "hidden[-3]")
    features = compute_features(model, batch, names)
    assert set(features) == set(names)
    assert features["scores[-1]"] is features["scores[1]"]
    assert features["values[-2]"] is features["values[0]"]
    assert features["embeddings"] is features["hidden[0]"] is features["hidden[-3]"]
    assert features["embeddings"].shape == (len(LENGTHS), 9, HEADS * SIZE)


@every_family
def test_a_model_without_a_head_has_every_feature_but_logits(load: Load, family: str):
    model, batch = load(family, headless=True), batch_of()
    names = ["embeddings", "hidden[-1]", *ATTENTION]
    features, whole = compute_features(model, batch, names), compute_features(load(family), batch, names)
    assert set(features) == set(names)
    assert all(torch.equal(features[name], whole[name]) for name in names)
    with pytest.raises(CompressError, match=r"logits.*the model has no head"):
        compute_features(model, batch, ["logits"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count how often scores are computed, and how often attention runs the kernel."""
    counts = {"scores": 0, "attention": 0}
    scores, kernel = attention.attention_scores, attention.sdpa_attention_forward

    def count_scores(*arguments: Any) -> Tensor:
        counts["scores"] += 1
        return scores(*arguments)

    def count_attention(*arguments: Any, **options: Any) -> Any:
        counts["attention"] += 1
        return kernel(*arguments, **options)

    monkeypatch.setattr(attention, "attention_scores", count_scores)
    monkeypatch.setattr(attention, "sdpa_attention_forward", count_attention)
    return counts


@pytest.mark.parametrize(
    ("family", "wanted", "scores"),
    covering(
        FAMILIES,
        [
            (["scores[0]", "scores[-2]"], 1),
            (["logits", "hidden[-1]", "embeddings"], 0),
            (["logits", "queries[0]", "keys[1]", "values[-1]"], 0),
            (["scores[1]"], 1),
            (["scores[0]", "scores[1]", "logits"], 2),
        ],
    ),
)
def test_nothing_is_computed_for_layers_that_nobody_asked_for(
    load: Load, counted: dict[str, int], family: str, wanted: list[str], scores: int
):
    """A layer that trains in bf16 computes its scores anyway, and returns those."""
    model = load(family)
    with torch.no_grad():
        compute_features(model, batch_of(), wanted)
    assert counted == {"scores": scores, "attention": LAYERS}
    compute_features(model, batch_of(), wanted)
    assert counted == {"scores": 2 * scores, "attention": 2 * LAYERS}
    with torch.autocast("cpu", torch.bfloat16):
        compute_features(model, batch_of(), wanted)
    assert counted == {"scores": 2 * scores + LAYERS, "attention": 2 * LAYERS}


def test_only_what_was_asked_for_is_kept(load: Load):
    model, batch = load("bert"), batch_of()
    inputs = {name: batch[name] for name in batch}
    wanted = frozenset({("scores", 1), ("keys", 0)})
    with attention.capture_tensors(model, wanted) as tensors:
        model(**inputs)
    assert set(tensors) == wanted


@every_family
def test_the_model_is_as_it_was_afterwards_even_when_it_fails(load: Load, family: str):
    model, batch = load(family), batch_of()
    compute_features(model, batch, ATTENTION)
    assert model.config._attn_implementation == FAMILIES_OF[family].attention.implementation
    assert not any("forward" in vars(module) for module in model.modules())
    too_long = {name: tensor.repeat(1, 9) for name, tensor in batch.items()}
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        compute_features(model, too_long, ATTENTION)
    assert model.config._attn_implementation == FAMILIES_OF[family].attention.implementation
    assert not any("forward" in vars(module) for module in model.modules())
    assert torch.equal(*(compute_features(model, batch, ["logits"])["logits"] for _ in range(2)))


@every_family
def test_dropout_falls_on_the_probabilities_of_captured_layers(load: Load, family: str):
    """The same seed drops the same probabilities as without capture, and a layer's own dropout does not affect its scores."""
    model, batch = load(family), batch_of()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    quiet = compute_features(model, batch, ["logits"])["logits"]
    for module in model.modules():  # only the dropout of probabilities
        for name in ("dropout", "attention_dropout"):
            if hasattr(module, {"distilbert": "q_lin", "mpnet": "q"}.get(family, "query")) and hasattr(module, name):
                getattr(module, name).p = 0.5
    model.train()
    plain, captured = [], []
    for names, outputs in ((["logits"], plain), (["logits", *ATTENTION], captured)):
        torch.manual_seed(4)
        outputs.append(compute_features(model, batch, names))
    assert torch.equal(plain[0]["logits"], captured[0]["logits"])
    assert not torch.allclose(captured[0]["logits"], quiet, atol=1e-3)
    assert torch.equal(captured[0]["scores[0]"], compute_features(model.eval(), batch, ["scores[0]"])["scores[0]"])


@every_family
def test_gradients_flow_through_what_is_captured(load: Load, family: str):
    model, batch = load(family).train(), batch_of()
    features = compute_features(model, batch, ["scores[1]", "values[1]"])
    (features["scores[1]"].square().mean() + features["values[1]"].square().mean()).backward()
    table = model.get_input_embeddings().weight.grad
    assert table is not None and table.abs().sum() > 0


def test_gradients_of_logits_are_the_same_to_the_bit(load: Load):
    model, batch = load("bert"), batch_of()
    grads = []
    for names in (["logits"], ["logits", *ATTENTION]):
        model.zero_grad()
        compute_features(model, batch, names)["logits"].square().sum().backward()
        grads.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))


def test_a_model_told_to_use_eager_attention_gives_the_same_and_has_it_again_afterwards(load: Load):
    model, batch = load("bert", implementation="eager"), batch_of()
    plain = compute_features(model, batch, ["logits"])["logits"]
    captured = compute_features(model, batch, ["logits", "scores[0]"])["logits"]
    torch.testing.assert_close(captured, plain, rtol=1e-5, atol=1e-6)  # fp32, another kernel
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("name", ["scores", "scores[2]", "keys[-3]", "queries[x]", "probabilities[0]", "embedding"])
def test_a_name_that_is_no_feature(load: Load, name: str):
    known = r"known: logits, embeddings, hidden\[i\] with i below 3, and scores\[i\], .* values\[i\] with i below 2"
    with pytest.raises(CompressError, match=f"unknown features .*{known}"):
        compute_features(load("bert"), batch_of(), ["scores[0]", name])
