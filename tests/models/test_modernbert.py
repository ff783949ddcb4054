"""ModernBERT: its formulas, plain graph, features for losses, students and masked-LM head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import LABELS, classifier_of, masked_lm_of, tokenizer_of
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.errors import CompressError
from compress.export import export_onnx
from compress.export.tracing import describe, example
from compress.models.cards import StudentCard, load_student
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.features.named import compute_features
from compress.models.masked_lm import has_masked_lm_head, load_masked_lm, masked_text_loss, new_masked_lm_head
from compress.models.students import build_student, student_dimensions
from compress.quantize import FILES, quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

BASE: dict[str, Any] = {}  # transformers' defaults
LARGE = {"num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 2624}
BIASED = dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias", "decoder_bias"), True)
SMALL = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40, "vocab_size": 90, "pad_token_id": 0}


def sizes_of(model: Any) -> Dimensions:
    return dimensions(model.config.to_dict(), classes=len(LABELS))


def card(layers: int = 4, **more: Any) -> StudentCard:
    return StudentCard(name="s", title="S", layers=layers, **more)


def built(wanted: StudentCard, teacher: Any) -> Any:
    return build_student(wanted.of("modernbert"), teacher, student_dimensions(wanted, sizes_of(teacher))).eval()


@pytest.mark.parametrize("fields", [BASE, LARGE, BASE | BIASED, SMALL | {"classifier_bias": True}])
def test_every_parameter_is_counted(fields: dict[str, Any]):
    ends = (
        {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2} if fields.get("vocab_size") else {}
    )
    config = AutoConfig.for_model("modernbert", num_labels=3, **fields, **ends)
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(config)
    sizes = sizes_of(model)
    assert sizes.parameters == sum(parameter.numel() for parameter in model.parameters())
    embeddings = sum(parameter.numel() for parameter in model.base_model.embeddings.parameters())
    assert sizes.embedding_parameters == embeddings


def test_every_matmul_is_counted():
    model = classifier_of("modernbert", attn_implementation="eager")
    inputs = example(describe(model), 1, 20)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs)
    assert sizes_of(model).flops_per_example(20) == counter.get_total_flops()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write `teacher`, whose local layers attend to 4 tokens before and after each of up to 32, with mean pooling; `model.onnx`
    is its plain graph."""
    folder = tmp_path_factory.mktemp("modernbert")
    model = classifier_of("modernbert", num_hidden_layers=2, classifier_pooling="mean", vocab_size=400, **BIASED)
    model.config.id2label = dict(enumerate(LABELS))
    save_checkpoint(model, tokenizer_of("modernbert"), folder / "teacher")
    task: dict[str, Any] = {"graph": "plain", "opset": 20, "task_name": "t", "labels": LABELS, "kind": "classification"}
    info = export_onnx(folder / "teacher", folder, **task)
    assert max(info["parity_max_abs_error"].values()) < 5e-6  # fp32 sums in another order; one shape is 8 x 32 tokens
    return folder


def loaded(folder: Path) -> Any:
    return load_classifier(folder, kind="classification", labels=LABELS, trained=True).eval()


@pytest.mark.slow
def test_its_graph_agrees_with_torch_at_every_length(world: Path):
    model, session = loaded(world / "teacher"), open_session(world / "model.onnx", threads=1)
    assert [value.name for value in session.get_inputs()] == ["input_ids", "attention_mask"]
    worst = 0.0
    for batch, length in [(1, 1), (1, 4), (1, 5), (2, 6), (1, 9), (3, 17), (5, 31), (2, 32)]:
        inputs = example(describe(model), batch, length)
        with torch.inference_mode():
            expected = model(**inputs).logits.numpy()
        logits = np.asarray(session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})[0])
        worst = max(worst, float(np.abs(logits - expected).max()))
    assert worst < 5e-6  # as above


@pytest.mark.slow
def test_what_is_far_matters_to_the_agreement(world: Path):
    """The logits differ if the window is the whole text, so the agreement includes local layers."""
    model, wide = loaded(world / "teacher"), loaded(world / "teacher")
    wide.config.local_attention = 64
    inputs = example(describe(model), 2, 20)
    with torch.no_grad():
        assert (model(**inputs).logits - wide(**inputs).logits).abs().max() > 1e-2


@pytest.mark.slow
def test_padding_never_changes_the_logits(world: Path):
    model, session = loaded(world / "teacher"), open_session(world / "model.onnx", threads=1)
    ids = example(describe(model), 1, 9)["input_ids"].numpy()
    padded, mask = np.zeros((2, 30), np.int64), np.zeros((2, 30), np.int64)
    padded[:, :9], mask[:, :9], mask[1] = ids, 1, 1
    (alone,) = session.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    (among,) = session.run(["logits"], {"input_ids": padded, "attention_mask": mask})
    np.testing.assert_allclose(np.asarray(among)[0], np.asarray(alone)[0], atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "form"), [("dynamic", "dynamic"), ("static", "static"), ("smoothquant", "static"), ("static", "qdq")]
)
def test_every_form_of_int8_is_near_its_graph(world: Path, tmp_path: Path, method: str, form: str):
    model = loaded(world / "teacher")
    feeds = [{name: value.numpy() for name, value in example(describe(model), 8, 24).items()}]
    info = quantize_onnx(world / "model.onnx", tmp_path, Quantize(method=method), int8_format=form, feeds=feeds)  # type: ignore[arg-type]
    assert info["int8_matmuls"] == 2 * 4 + 1  # Wqkv, Wo, Wi, Wo of each layer, and the head's dense layer
    assert list(info["stayed_fp32"]) == ["classifier/Gemm"]
    answers = [
        np.asarray(open_session(path, threads=1).run(["logits"], feeds[0])[0])
        for path in (world / "model.onnx", tmp_path / FILES[form])  # type: ignore[index]
    ]
    assert np.abs(answers[1] - answers[0]).max() < 0.15 * np.abs(answers[0]).max()


def test_scores_are_what_attention_is_made_of():
    """They contain the rotary positions but not the window; with it, the softmax gives transformers' attention weights."""
    model = classifier_of("modernbert")
    batch = dict(example(describe(model), 3, 14))
    real = batch["attention_mask"].bool()
    features = compute_features(model, batch, [f"scores[{layer}]" for layer in range(4)] + ["queries[1]", "keys[1]"])
    eager = classifier_of("modernbert", attn_implementation="eager")
    with torch.no_grad():
        weights = eager(**batch, output_attentions=True).attentions
    places = torch.arange(14)
    near = (places[:, None] - places).abs() <= 4
    for layer, kind in enumerate(model.config.layer_types):
        seen = real[:, None, None, :] & (near if kind == "sliding_attention" else torch.ones_like(near))
        mine = features[f"scores[{layer}]"].masked_fill(~seen, float("-inf")).softmax(-1)
        chosen = real[:, None, :].expand_as(mine[..., 0])
        torch.testing.assert_close(mine[chosen], weights[layer][chosen], atol=1e-6, rtol=0)  # fp32
    product = features["queries[1]"] @ features["keys[1]"].transpose(-1, -2) / 16**0.5
    torch.testing.assert_close(features["scores[1]"], product, atol=1e-6, rtol=1e-5)


def test_the_last_hidden_states_are_those_that_the_head_reads():
    model = classifier_of("modernbert")
    batch = dict(example(describe(model), 2, 9))
    with torch.no_grad():
        features = compute_features(model, batch, ["hidden[-1]", "embeddings", "logits"])
        assert torch.equal(features["hidden[-1]"], model.model(**batch).last_hidden_state)
        assert torch.equal(features["embeddings"], model.model.embeddings(batch["input_ids"]))
        assert torch.equal(model.classifier(model.head(features["hidden[-1]"][:, 0])), features["logits"])


def test_each_copied_layer_keeps_its_kind():
    teacher = classifier_of("modernbert", num_hidden_layers=7, global_attn_every_n_layers=2)
    student = built(card(4), teacher)
    kinds = teacher.config.layer_types
    assert student.config.layer_types == [kinds[layer] for layer in (0, 2, 4, 6)]
    assert student.config.layer_types == ["full_attention"] * 4 != kinds[:4]
    for mine, layer in enumerate((0, 2, 4, 6)):
        theirs = teacher.model.layers[layer]
        assert student.model.layers[mine].attention_type == theirs.attention_type
        for one, other in zip(student.model.layers[mine].parameters(), theirs.parameters(), strict=True):
            assert torch.equal(one, other)
    for part in ("embeddings", "final_norm"):
        pairs = zip(getattr(student.model, part).parameters(), getattr(teacher.model, part).parameters(), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)


def test_a_students_checkpoint_is_read_as_it_was_made(tmp_path: Path):
    teacher = classifier_of("modernbert", num_hidden_layers=7, local_attention=6, classifier_pooling="mean", **BIASED)
    student = built(card(4), teacher)
    save_checkpoint(student, tokenizer_of("modernbert"), tmp_path)
    again = load_classifier(tmp_path, kind="classification", labels=LABELS, trained=True).eval()
    batch = dict(example(describe(student), 2, 20))
    with torch.no_grad():
        assert torch.equal(again(**batch).logits, student(**batch).logits)
    assert read_config(tmp_path)["layer_types"] == student.config.layer_types


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"copy_layers": "last"},
            "would start from [2, 3] of the teacher; the first layer of a modernbert has no norm",
        ),
        ({"copy_layers": (0, 0)}, "list 0 first, and once, in copy_layers"),
        (
            {"architecture": "bert"},
            "or a pre-trained student learns from its logits (recipe logits, --student minilm-l6",
        ),
        ({"architecture": "distilbert"}, "the teacher is modernbert, whose students are ModernBERT"),
        ({"architecture": "albert", "init": "convert", "albert": {"embedding": 8}}, "learns from its logits"),
        (
            {"init": "project", "hidden": 16},
            "init: expected one of `copy`, `prune`, `random` for a student `modernbert`",
        ),
    ],
)
def test_what_no_student_can_be_is_refused(more: dict[str, Any], message: str):
    with pytest.raises(CompressError) as caught:
        student_dimensions(card(2, **more), sizes_of(classifier_of("modernbert")))
    assert message in str(caught.value)


def test_a_card_halves_the_published_base_model():
    sizes = dimensions(AutoConfig.for_model("modernbert").to_dict(), classes=2)
    student = student_dimensions(load_student("modernbert-11l"), sizes)
    assert (student.architecture, student.layers, sizes.layers, student.hidden) == ("modernbert", 11, 22, 768)


@pytest.mark.parametrize("biased", [False, True])
def test_its_masked_lm_head_is_its_own_or_a_new_one(tmp_path: Path, biased: bool):
    tokenizer = tokenizer_of("modernbert")
    model = masked_lm_of("modernbert", tokenizer)
    save_checkpoint(model, tokenizer, tmp_path / "masked")
    assert has_masked_lm_head(tmp_path / "masked")
    ids = torch.randint(5, 90, (2, 12), generator=torch.Generator().manual_seed(1))
    labels = torch.full_like(ids, -100)
    labels[:, 3] = ids[:, 3]
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}
    own = load_masked_lm(tmp_path / "masked")
    with torch.no_grad():
        expected = model(**batch).loss
        torch.testing.assert_close(masked_text_loss(own, batch), expected, atol=1e-5, rtol=0)  # at masked tokens only
    encoder = classifier_of("modernbert", **(BIASED if biased else {})).base_model
    save_checkpoint(encoder, tokenizer, tmp_path / "encoder")
    new: Any = new_masked_lm_head(tmp_path / "encoder").eval()
    with torch.no_grad():
        states = new.model(input_ids=ids, attention_mask=batch["attention_mask"]).last_hidden_state
        seen = new.head(states)
    cosine = torch.cosine_similarity(seen - seen.mean(-1, keepdim=True), states - states.mean(-1, keepdim=True), dim=-1)
    assert cosine.min() > (0.99 if biased else 0.5)  # without biases GELU flattens negative values
