"""MPNet: its relative-position bias in the model, in students and in both forms of the fast graph; its config; its tokenizer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mpnet_toys import WORDS, mpnet_tokenizer
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from compress.augment.masked import MaskedLmProposer
from compress.errors import CompressError
from compress.export.fast import build_fast
from compress.export.fast.reading import read_encoder
from compress.export.tracing import describe, example
from compress.graphs.model_files import write_model
from compress.models.cards import RandomInit, StudentCard, load_student
from compress.models.checkpoints.folders import load_classifier, load_tokenizer, save_checkpoint
from compress.models.dimensions import dimensions, read_config, usable_positions
from compress.models.features.named import compute_features
from compress.models.random_models import random_config
from compress.models.students import build_student, student_dimensions
from compress.sessions.opening import open_session
from compress.tokenization.special import SpecialIds, special_ids

LABELS = ("no", "maybe", "yes")
POSITIONS = 512


@pytest.fixture(scope="module")
def long_model() -> Any:
    """Return a model with MPNet's 512 positions, so that every bucket is used, and relative-position biases large enough to
    matter."""
    sizes: dict[str, Any] = {"vocab_size": 120, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    sizes |= {"intermediate_size": 32, "max_position_embeddings": POSITIONS + 2, "num_labels": 3}
    torch.manual_seed(5)
    model = AutoModelForSequenceClassification.from_config(AutoConfig.for_model("mpnet", **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        model.mpnet.encoder.relative_attention_bias.weight.normal_()
    return model


def test_each_distance_has_the_value_that_transformers_gives_it(long_model: Any):
    encoder = read_encoder(long_model)
    assert encoder is not None
    assert encoder.relative is not None
    with torch.no_grad():
        expected = long_model.mpnet.encoder.compute_position_bias(torch.zeros(1, POSITIONS, 1))[0].numpy()
    place = np.arange(POSITIONS)
    actual = encoder.relative.values[0][:, place[None] - place[:, None] + POSITIONS]
    assert np.array_equal(actual, expected)
    assert len(np.unique(expected[0])) == 31  # no later key has distance 0


@pytest.mark.parametrize("unpadded", [False, True])
@pytest.mark.parametrize("opset", [20, 23])
def test_the_graph_agrees_with_torch_at_every_length(long_model: Any, opset: int, unpadded: bool, tmp_path: Path):
    graph = build_fast(long_model, opset=opset, unpadded=unpadded)
    assert graph is not None
    write_model(graph, tmp_path / "m.onnx")
    session, worst = open_session(tmp_path / "m.onnx", threads=1), 0.0
    for batch, length in [*((1, n) for n in (1, 2, 3, 8, 9, 127, 128, 129, 511)), (1, POSITIONS), (5, 40), (2, 300)]:
        inputs = example(describe(long_model), batch, length)
        with torch.inference_mode():
            expected = long_model(**inputs).logits.numpy()
        logits = np.asarray(session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})[0])
        worst = max(worst, float(np.abs(logits - expected).max()))
    assert worst < 5e-6  # fp32 sums in another order, over up to 512 tokens


def test_the_values_matter_to_the_graph(long_model: Any, tmp_path: Path):
    """A copy without the biases gives other logits, so the agreement above includes them."""
    inputs = example(describe(long_model), 2, 40)
    kept = long_model.mpnet.encoder.relative_attention_bias.weight.clone()
    with torch.no_grad():
        expected = long_model(**inputs).logits
        long_model.mpnet.encoder.relative_attention_bias.weight.zero_()
        other = long_model(**inputs).logits
        long_model.mpnet.encoder.relative_attention_bias.weight.copy_(kept)
    assert (expected - other).abs().max() > 1e-3


def card(layers: int, **more: Any) -> StudentCard:
    return StudentCard(name="s", title="S", architecture="mpnet", layers=layers, **more)


def loaded(folder: Path) -> Any:
    return load_classifier(folder, kind="classification", labels=LABELS, trained=True).eval()


def batch_of(model: Any) -> dict[str, Any]:
    return dict(example(describe(model), 3, 12))


def test_a_student_with_all_layers_is_its_teacher(tiny_checkpoint: Callable[[str], Path]):
    teacher = loaded(tiny_checkpoint("mpnet"))
    sizes = dimensions(teacher.config.to_dict(), classes=3)
    student: Any = build_student(card(2), teacher, student_dimensions(card(2), sizes)).eval()
    with torch.no_grad():
        assert torch.equal(student(**batch_of(teacher)).logits, teacher(**batch_of(teacher)).logits)
    tables = [model.mpnet.encoder.relative_attention_bias.weight for model in (student, teacher)]
    assert torch.equal(*tables)
    assert tables[0].data_ptr() != tables[1].data_ptr()


@pytest.mark.parametrize("more", [{}, {"init": "random", "hidden": 16, "intermediate": 24, "heads": 4}])
def test_a_student_has_the_sizes_that_are_planned(tiny_checkpoint: Callable[[str], Path], more: dict[str, Any]):
    teacher, wanted = loaded(tiny_checkpoint("mpnet")), card(1, **more)
    sizes = student_dimensions(wanted, dimensions(teacher.config.to_dict(), classes=3))
    student: Any = build_student(wanted, teacher, sizes)
    assert student.num_parameters() == sizes.parameters
    assert dimensions(student.config.to_dict(), classes=3) == sizes


def test_the_card_is_built_from_a_teacher_of_twelve_layers():
    sizes: dict[str, Any] = {"vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 12, "num_attention_heads": 12}
    sizes |= {"intermediate_size": 32, "max_position_embeddings": 18, "num_labels": 3}
    teacher = AutoModelForSequenceClassification.from_config(AutoConfig.for_model("mpnet", **sizes))
    wanted = load_student("mpnet-6l")
    planned = student_dimensions(wanted, dimensions(teacher.config.to_dict(), classes=3))
    student: Any = build_student(wanted, teacher, planned)
    assert student.num_parameters() == planned.parameters
    for mine, theirs in enumerate((0, 2, 4, 7, 9, 11)):
        parts = [
            model.mpnet.encoder.layer[at].output.dense.weight for model, at in ((student, mine), (teacher, theirs))
        ]
        assert torch.equal(*parts)


def test_values_for_distances_learn_from_scores(tiny_checkpoint: Callable[[str], Path]):
    """They are part of the scores that a student is compared on."""
    model = loaded(tiny_checkpoint("mpnet"))
    compute_features(model, batch_of(model), ["scores[0]"])["scores[0]"].square().sum().backward()
    gradient = model.mpnet.encoder.relative_attention_bias.weight.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("relative_attention_num_buckets", 64, "32: no other number is supported; found 64"),
        ("pad_token_id", 0, "1: an MPNet's positions are counted from there; found 0"),
    ],
)
def test_what_transformers_would_not_compute_with_is_refused(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, field: str, value: int, expected: str
):
    shutil.copytree(tiny_checkpoint("mpnet"), tmp_path / "teacher")
    path = tmp_path / "teacher/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(CompressError, match=f"{field}: expected {expected}"):
        read_config(tmp_path / "teacher")


@pytest.mark.parametrize(("pad", "problem"), [(0, "its own is number 0"), (None, "it has none")])
def test_random_weights_need_padding_where_transformers_has_it(pad: int | None, problem: str):
    init = RandomInit(architecture="mpnet", layers=1, hidden=16, heads=2, intermediate=24, max_positions=30)
    assert random_config(init)["max_position_embeddings"] == 32
    with pytest.raises(
        CompressError, match=f"random.tokenizer: .* number 1, and {problem}; `compress vocab --kind bpe`"
    ):
        random_config(init, special=SpecialIds(2, 3, pad, 4, ()))


def test_its_own_special_tokens_are_used_and_not_berts():
    wordpiece = mpnet_tokenizer()
    ids = special_ids(wordpiece)
    assert (ids.cls, ids.sep, ids.pad, ids.mask) == (0, 2, 1, WORDS.index("<mask>"))
    assert MaskedLmProposer(None, wordpiece)._mask == WORDS.index("<mask>")


def test_a_saved_checkpoint_is_transformers_own(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    model = loaded(tiny_checkpoint("mpnet"))
    save_checkpoint(model, mpnet_tokenizer(), tmp_path)
    tokenizer, again = (
        AutoTokenizer.from_pretrained(tmp_path),
        AutoModelForSequenceClassification.from_pretrained(tmp_path),
    )
    names = ("cls_token", "sep_token", "pad_token", "mask_token", "unk_token", "bos_token", "eos_token")
    assert [getattr(tokenizer, name) for name in names] == ["<s>", "</s>", "<pad>", "<mask>", "[UNK]", "<s>", "</s>"]
    ids = [WORDS.index(word) for word in ("<s>", "the", "film", "</s>", "</s>", "not", "good", "</s>")]
    assert tokenizer("the film", "not good")["input_ids"] == ids
    assert load_tokenizer(tmp_path).encode("the film", "not good").ids == ids
    assert tokenizer.model_max_length == usable_positions(read_config(tmp_path)) == 24
    batch = batch_of(model)
    with torch.no_grad():
        assert torch.equal(again.eval()(**batch).logits, model(**batch).logits)


def test_a_vocabulary_alone_makes_its_tokenizer(tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    shutil.copytree(tiny_checkpoint("mpnet"), tmp_path / "teacher")
    (tmp_path / "teacher/vocab.txt").write_text("\n".join(WORDS) + "\n")
    settings = {"tokenizer_class": "MPNetTokenizer", "do_lower_case": True}
    (tmp_path / "teacher/tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer, wordpiece = load_tokenizer(tmp_path / "teacher"), mpnet_tokenizer()
    for text in ("the film is <mask> not zebra", "GOOD, bad"):
        assert tokenizer.encode(text, "a").ids == wordpiece.encode(text, "a").ids
