"""Encoders whose last states become sentence embeddings: sizes, pooling, students, and which folders are supported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import KINDS, WHOLE_LAYERS, tagger_of
from sentence_encoders import encoder
from text_batches import batches
from torch.utils.flop_counter import FlopCounterMode

from compress.errors import CompressError
from compress.models.cards import StudentCard
from compress.models.checkpoints.folders import load_classifier
from compress.models.dimensions import Dimensions, dimensions, read_config
from compress.models.families import FAMILIES
from compress.models.features.named import compute_features
from compress.models.sentence_encoders.pooling import read_pooling
from compress.models.students import build_student, not_kept, student_dimensions

LENGTH, SHORT = 12, 5


WITH_TOKENS = [name for name, family in FAMILIES.items() if not family.layerless]


def batch() -> dict[str, Any]:
    ids, mask = torch.randint(6, 90, (2, LENGTH), generator=torch.Generator().manual_seed(3)), torch.ones(2, LENGTH)
    mask[1, SHORT:] = 0
    return {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": torch.zeros_like(ids)}


def vectors(model: Any, inputs: dict[str, Any] | None = None) -> Any:
    with torch.no_grad():
        return compute_features(model, inputs or batch(), ("logits",))["logits"]


def sizes_of(model: Any) -> Dimensions:
    return dimensions(model.config.to_dict(), classes=0, kind="embedding")


def card(layers: int = 4, **more: Any) -> StudentCard:
    return StudentCard(**{"name": "s", "title": "S", "layers": layers, **more})


def built(wanted: StudentCard, teacher: Any, sample: Any = None) -> Any:
    wanted = wanted.of(teacher.config.model_type)
    return build_student(wanted, teacher, student_dimensions(wanted, sizes_of(teacher)), sample).eval()


@pytest.mark.parametrize("family", WITH_TOKENS)
def test_parameters_and_flops_are_those_of_transformers_encoder(family: str) -> None:
    model, length = encoder(family), 20
    assert getattr(model, "pooler", None) is None
    model.set_attn_implementation("eager")
    sizes = sizes_of(model)
    assert sizes.parameters == model.num_parameters()
    inputs = {"input_ids": torch.full((1, length), 7)}
    if family == "xlnet":  # XLNet multiplies by segments only if they are given
        inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**inputs)
    assert sizes.flops_per_example(length) == counter.get_total_flops()


@pytest.mark.parametrize("family", WITH_TOKENS)
def test_vectors_are_of_length_1_and_padding_never_changes_them(family: str) -> None:
    both = vectors(encoder(family))
    torch.testing.assert_close(both.norm(dim=1), torch.ones(2), rtol=0, atol=1e-6)
    alone = vectors(encoder(family), {name: value[1:, :SHORT] for name, value in batch().items()})
    torch.testing.assert_close(both[1:], alone, rtol=0, atol=2e-6)  # fp32, sums of other lengths


def test_vectors_are_the_mean_or_the_first_state() -> None:
    for pooling in ("mean", "cls"):
        model, inputs = encoder("bert", pooling), batch()
        with torch.no_grad():
            states: Any = model(**inputs).last_hidden_state
        for row, length in enumerate((LENGTH, SHORT)):
            expected: Any = (
                states[row, 0] if pooling == "cls" else sum(states[row, place] for place in range(length)) / length
            )
            torch.testing.assert_close(vectors(model)[row], expected / expected.norm(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", [*KINDS, "mpnet"])
def test_with_all_layers_a_student_is_its_teacher(family: str) -> None:
    teacher = encoder(family, "cls" if family == "bert" else "mean")
    student = built(card(), teacher)
    assert type(student) is type(teacher) and student.config.sentence_pooling == teacher.config.sentence_pooling
    assert torch.equal(vectors(student), vectors(teacher))


@pytest.mark.parametrize("family", [*(name for name in KINDS if name not in WHOLE_LAYERS), "mpnet"])
def test_a_shallower_student_has_the_sizes_that_were_planned(family: str) -> None:
    teacher, wanted = encoder(family), card(2, architecture="bert")
    student = built(wanted, teacher)
    assert type(student).__name__ == "BertModel"
    planned = student_dimensions(wanted.of(family), sizes_of(teacher))
    assert student.num_parameters() == planned.parameters
    notes = not_kept(wanted.of(family), {"student": planned, "teacher": sizes_of(teacher)})
    assert not [line for line in notes if "classifier" in line]


@pytest.mark.slow
def test_a_projected_student_at_full_width_is_its_teacher_and_a_narrower_one_is_near() -> None:
    teacher, sample = encoder("bert"), batches(4, 15, 90)
    same = built(card(4, init="project"), teacher, sample)
    torch.testing.assert_close(vectors(same), vectors(teacher), rtol=0, atol=1e-3)  # least squares in fp32
    narrow = built(card(4, init="project", hidden=16, intermediate=24), teacher, sample)
    assert narrow.config.hidden_size == 16 and vectors(narrow).shape == (2, 16)


def save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    return folder


def test_a_checkpoint_comes_back_with_its_pooling_and_without_a_pooler(tmp_path: Path) -> None:
    teacher = encoder("bert", "cls")
    folder = save(teacher, tmp_path)
    assert read_config(folder)["architectures"] == ["BertModel"] and read_pooling(folder, read_config(folder)) == (
        "cls",
        True,
    )
    again: Any = load_classifier(folder, kind="embedding", labels=(), trained=True)
    assert torch.equal(vectors(again.eval()), vectors(teacher))
    assert again.config.id2label == teacher.config.id2label


def sentence_transformer(folder: Path, pooling: dict[str, Any] | None, *modules: str) -> Path:
    save(encoder("bert"), folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "sentence_pooling"}))
    listed = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", *modules)]
    (folder / "modules.json").write_text(json.dumps(listed))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (None, ("mean", False)),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, ("mean", True)),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": False}, ("cls", True)),
        ({"pooling_mode": "cls"}, ("cls", True)),
    ],
)
def test_sentence_transformers_folders_say_how_they_pool(tmp_path: Path, pooling: Any, expected: Any) -> None:
    folder = sentence_transformer(tmp_path / "it", pooling, "Normalize")
    assert read_pooling(folder, read_config(folder)) == expected
    model: Any = load_classifier(folder, kind="embedding", labels=(), trained=True)
    assert model.config.sentence_pooling == expected[0]


def test_other_poolings_and_layers_are_refused_by_name(tmp_path: Path) -> None:
    both = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
    for number, (pooling, modules, message) in enumerate(
        [
            (both, (), "1_Pooling/config.json: pooling: expected either mean or cls; found mean, max_tokens"),
            ({}, (), "found none"),
            (None, ("Dense", "Normalize"), "modules.json: expected Transformer, Pooling, Normalize; found Dense"),
        ]
    ):
        folder = sentence_transformer(tmp_path / str(number), pooling, *modules)
        with pytest.raises(CompressError, match=message):
            read_pooling(folder, read_config(folder))
    folder = tmp_path / "0"
    (folder / "modules.json").write_text("{")
    with pytest.raises(CompressError, match="cannot be read"):
        read_pooling(folder, read_config(folder))


def test_a_classifier_s_encoder_is_taken_and_a_missing_weight_is_not_drawn(tmp_path: Path) -> None:
    model = tagger_of("bert")
    folder = save(model, tmp_path / "tagger")
    body: Any = load_classifier(folder, kind="embedding", labels=(), trained=True)
    assert torch.equal(body.encoder.layer[0].output.dense.weight, model.bert.encoder.layer[0].output.dense.weight)
    from safetensors.torch import load_file, save_file

    state = load_file(folder / "model.safetensors")
    state.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CompressError, match="lacks 1 of the model's weights"):
        load_classifier(folder, kind="embedding", labels=(), trained=True)
