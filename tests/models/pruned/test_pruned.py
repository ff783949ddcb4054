"""Models whose layers keep some of their heads and neurons: their outputs, checkpoints and sizes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import covering
from pruned_toys import FAMILIES, HEADS, NEURONS, WITHOUT_PARTS, whole
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.errors import CompressError
from compress.export.tracing import describe, example
from compress.losses.attention_mse import AttentionMse
from compress.losses.hidden_mse import HiddenMse
from compress.losses.relation_kl import RelationKl
from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import load_classifier, load_encoder
from compress.models.dimensions import dimensions, read_config
from compress.models.features.named import compute_features
from compress.models.heads import HEADS as HEADS_OF_KINDS
from compress.models.heads import model_from
from compress.models.layer_maps import check_losses
from compress.models.pruned.model import layer_part
from compress.models.pruned.shape import PrunedShape
from compress.models.students import student_dimensions
from compress.pruning.removal import without_units

LABELS = ("no", "maybe", "yes")
SHAPE = PrunedShape(((1, 3), (0, 1, 2)), (32, 16))
KEPT = {"some": (HEADS, NEURONS), **WITHOUT_PARTS}


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        return model(**example(describe(model), 3, 9)).logits


def assert_alike(model: Any, other: Any) -> None:
    """Check that the weights are equal bit for bit. Outputs may differ in the last bit, depending on the weights' memory
    addresses."""
    mine, theirs = model.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert torch.allclose(logits(model), logits(other), atol=1e-6)


def silenced(model: Any, kept: str = "some") -> Any:
    """Return the whole model with the output weights of removed units set to zero."""
    heads, neurons = KEPT[kept]
    with torch.no_grad():
        for layer in range(2):
            size = layer_part(model, layer, "output").in_features // 4
            for head in set(range(4)) - set(heads[layer]):
                layer_part(model, layer, "output").weight[:, head * size : (head + 1) * size] = 0
            layer_part(model, layer, "down").weight[:, [n for n in range(64) if n not in neurons[layer]]] = 0
    return model


@pytest.mark.parametrize(("family", "kept"), covering(FAMILIES, KEPT))
def test_a_pruned_model_computes_what_the_whole_one_does_without_the_units_and_loads_again(
    family: str, kept: str, tmp_path: Path
):
    model = whole(family)
    pruned = without_units(model, *KEPT[kept])
    assert torch.allclose(logits(pruned), logits(silenced(model, kept)), atol=2e-6)  # sums in another order
    pruned.save_pretrained(tmp_path)
    loaded = load_classifier(tmp_path, kind="classification", labels=LABELS, trained=True).eval()
    assert type(loaded).__name__ == f"Pruned{type(model).__name__}"
    heads, neurons = KEPT[kept]
    assert PrunedShape.of(read_config(tmp_path)) == PrunedShape(tuple(map(tuple, heads)), tuple(map(len, neurons)))
    assert_alike(loaded, pruned)
    with pytest.raises(RuntimeError, match=r"size mismatch|ignore_mismatched_sizes"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path)


@pytest.mark.parametrize(("family", "kept"), covering(FAMILIES, KEPT))
def test_sizes_are_those_of_the_pruned_model(family: str, kept: str, tmp_path: Path):
    pruned: Any = without_units(whole(family), *KEPT[kept])
    pruned.save_pretrained(tmp_path)
    sizes = dimensions(read_config(tmp_path), classes=3)
    assert sizes.parameters == sum(parameter.numel() for parameter in pruned.parameters())
    pruned.config._attn_implementation = "eager"
    with FlopCounterMode(display=False) as counter:
        pruned(input_ids=torch.full((1, 20), 7))
    assert sizes.flops_per_example(20) == counter.get_total_flops()


def test_sizes_are_told_in_words():
    config = whole("bert").config.to_dict()
    for shape, words in ((SHAPE, "2–3 heads, FFN 16–32"), (PrunedShape(((), (1,)), (0, 48)), "0–1 heads, FFN 0–48")):
        assert str(dimensions({**config, "pruned": shape.field}, classes=3)) == f"2 x 32, {words}"


def test_a_layer_without_a_part_adds_its_bias_and_takes_the_norm():
    """BERT's first layer without attention and its last without a feed-forward part, written out."""
    model = whole("bert")
    pruned = without_units(model, [[], range(4)], [range(64), []])
    batch = example(describe(model), 3, 9)
    first, last = model.bert.encoder.layer
    mask = torch.zeros(3, 1, 1, 9).masked_fill(batch["attention_mask"][:, None, None] == 0, torch.finfo().min)
    with torch.inference_mode():
        states = model.bert.embeddings(batch["input_ids"], batch["token_type_ids"])
        attended = first.attention.output.LayerNorm(states + first.attention.output.dense.bias)
        states = first.output(first.intermediate(attended), attended)
        attended = last.attention(states, mask)[0]
        states = last.output.LayerNorm(attended + last.output.dense.bias)
        wanted = model.classifier(model.bert.pooler(states))
    assert torch.allclose(logits(pruned), wanted, atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_every_parameter_of_a_layer_without_a_part_learns(family: str):
    """Otherwise training on several GPUs would wait for the missing gradients."""
    pruned = without_units(whole(family).train(), *WITHOUT_PARTS["attention first"])
    pruned(**example(describe(pruned), 3, 9)).logits.square().sum().backward()
    for name, parameter in pruned.named_parameters():
        assert parameter.numel() and parameter.grad is not None, name


def test_layers_of_one_width_with_all_their_heads_are_a_plain_checkpoint(tmp_path: Path):
    model = whole("bert")
    assert without_units(model, [range(4), range(4)], [[], []]).config.pruned["neurons"] == [0, 0]
    pruned = without_units(model, [range(4), range(4)], [range(32), range(16, 48)])
    pruned.save_pretrained(tmp_path)
    assert "pruned" not in json.loads((tmp_path / "config.json").read_text())
    plain: Any = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    assert type(plain) is type(model) and plain.config.intermediate_size == 32
    assert_alike(plain, pruned)


def test_a_pruned_model_of_choices_reads_rows_and_loads_again(tmp_path: Path):
    torch.manual_seed(5)
    model = model_from(HEADS_OF_KINDS["choice"], whole("bert").config).eval()
    pruned = without_units(model, HEADS, NEURONS)
    assert logits(pruned).shape == (3, 1)
    assert torch.allclose(logits(pruned), logits(silenced(model)), atol=2e-6)
    pruned.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == ["PrunedBertForMultipleChoice"]
    loaded = load_classifier(tmp_path, kind="choice", labels=(), trained=True).eval()
    assert type(loaded) is type(pruned)
    assert_alike(loaded, pruned)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_a_pruned_model_can_be_pruned_again(family: str):
    model = whole(family)
    once = without_units(model, [[0, 1, 3], [1, 2, 3]], [range(48), range(64)])
    twice = without_units(once, [[0, 2], [2]], [range(16, 32), range(16)])
    at_once = without_units(model, [[0, 3], [3]], [range(16, 32), range(16)])
    assert twice.config.pruned == at_once.config.pruned == {"heads": [[0, 3], [3]], "neurons": [16, 16]}
    assert type(twice) is type(at_once)
    assert_alike(twice, at_once)
    without = without_units(model, [[], [0, 2, 3]], [range(16), []])
    fewer = without_units(without, [[], [1]], [[], []])
    assert fewer.config.pruned == {"heads": [[], [2]], "neurons": [0, 0]}
    assert_alike(fewer, without_units(model, [[], [2]], [[], []]))


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_attention_of_a_pruned_model_can_be_read(family: str):
    """A kept head attends as in the whole model, if the layers before it are whole."""
    model = whole(family)
    pruned = without_units(model, [[1, 3], range(4)], [range(64), range(64)])
    batch = example(describe(model), 3, 9)
    names = ("scores[0]", "queries[0]", "hidden[1]")
    own, theirs = compute_features(pruned, batch, names), compute_features(model, batch, names)
    for name in names[:2]:
        assert torch.allclose(own[name], theirs[name][:, [1, 3]], atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_attention_is_read_in_the_layers_that_have_heads(family: str):
    model = whole(family)
    pruned = without_units(model, *WITHOUT_PARTS["attention first"])
    batch = example(describe(model), 3, 9)
    names = ("scores[1]", "values[1]", "hidden[2]")
    own, theirs = (
        compute_features(pruned, batch, names),
        compute_features(silenced(model, "attention first"), batch, names),
    )
    for name in names[:2]:
        assert torch.allclose(own[name], theirs[name][:, [0, 2, 3]], atol=1e-6)
    assert torch.allclose(own["hidden[2]"], theirs["hidden[2]"], atol=1e-5)
    with pytest.raises(
        CompressError, match=r"unknown features \['keys\[0\]', 'scores\[-2\]'\]: these layers .* have no heads"
    ):
        compute_features(pruned, batch, ["scores[-2]", "scores[1]", "keys[0]", "logits"])
    assert torch.allclose(logits(pruned), logits(model), atol=2e-6)


def test_losses_on_heads_and_students_that_start_from_a_pruned_model_are_refused_by_name():
    config = whole("bert").config.to_dict()
    plain, pruned = dimensions(config, classes=3), dimensions({**config, "pruned": SHAPE.field}, classes=3)
    check_losses([HiddenMse()], student=pruned, teacher=plain, where="here")
    for loss in (AttentionMse(), RelationKl()):
        for student, teacher in ((pruned, plain), (plain, pruned)):
            with pytest.raises(CompressError, match=rf"here: {loss.name}: compares heads.*2–3 heads, FFN 16–32"):
                check_losses([loss], student=student, teacher=teacher, where="here")
    with pytest.raises(CompressError, match="student half: starts from the teacher's layers, which are pruned"):
        student_dimensions(StudentCard(name="half", title="Half", layers=1), pruned)
    random = StudentCard.model_validate({"name": "new", "title": "New", "layers": 1, "init": "random"})
    assert student_dimensions(random, pruned).pruned is None


@pytest.mark.parametrize(
    ("family", "said", "problem"),
    [
        ("albert", SHAPE.field, "pruned: layers of an ALBERT cannot differ .* those of bert, distilbert"),
        ("bert", {"heads": [[0]], "neurons": [16]}, "pruned.heads: expected one entry for each of 2 layers; found 1"),
        ("bert", {"heads": [[0], [2]], "neurons": [16, 16]}, r"pruned.heads\[1\]: expected numbers below 2; found 2"),
        ("bert", {"heads": [[0], [1]], "neurons": [16, 80]}, r"pruned.neurons\[1\]: expected at most 64; found 80"),
        (
            "bert",
            {"heads": [[], []], "neurons": [16, 0]},
            "pruned.heads: expected a head in at least one layer; found none",
        ),
        ("bert", {"heads": [[0], 1], "neurons": [16, 16]}, "pruned: expected heads and neurons"),
        ("bert", {"heads": [[1, 0], [1]], "neurons": [16, 16]}, "pruned: expected heads and neurons"),
        ("bert", {"heads": [[0], [1]], "neurons": [16, -1]}, "pruned: expected heads and neurons"),
        ("bert", {"heads": [[0], [1]]}, "pruned: expected heads and neurons"),
        ("bert", [1], "pruned: expected heads and neurons"),
    ],
)
def test_shapes_that_no_model_has_are_refused_by_name(
    family: str, said: Any, problem: str, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
):
    folder = tmp_path / "model"
    shutil.copytree(tiny_checkpoint(family), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "pruned": said}))
    with pytest.raises(CompressError, match=f"config.json: {problem}"):
        read_config(folder)


@pytest.mark.parametrize("kept", [([[], range(4)], [range(64)] * 2), ([range(4)] * 2, [range(64), []])])
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_alone_refuses_a_model_that_lost_a_part_and_nothing_else(family: str, kept: Any, tmp_path: Path):
    """It would initialize the weights of that part at random."""
    model = whole(family)
    without_units(model, *kept).save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        type(model).from_pretrained(tmp_path)


def test_weights_of_other_widths_than_the_config_says_are_refused(tmp_path: Path):
    without_units(whole("bert"), HEADS, NEURONS).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["pruned"]["neurons"] = [16, 16]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CompressError, match=r"has other sizes than config\.json for 3 of the model's weights"):
        load_encoder(tmp_path)


def test_a_family_that_cannot_be_pruned_is_refused_by_name():
    model: Any = nn.Module()
    model.config = AutoConfig.for_model("albert")
    with pytest.raises(CompressError, match="layers of an ALBERT cannot differ in heads and neurons"):
        without_units(model, HEADS, NEURONS)
