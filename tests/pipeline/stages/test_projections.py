"""The projections of a student narrower than its teacher are passed from the stage that trained them to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrain_toys import run_stages
from safetensors.torch import load_file
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.losses.embedding_mse import EmbeddingMse
from compress.losses.hidden_mse import HiddenMse
from compress.objective import Objective
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.stages import distill, general
from compress.pipeline.stages.projections import PROJECTIONS, load_projections, save_projections
from compress.pipeline.training import run as training_run
from compress.store import Artifact

STUDENT = "name: wide-{0}\ntitle: small\narchitecture: bert\nlayers: 1\nhidden: {0}\nheads: 2\ninit: random\n"
LOSSES = "losses=[{name: embedding_mse}, {name: hidden_mse}]"
STAGES = ("tokenize", "finetune", "general", "distill")
BOTH = {"embedding_mse", "hidden_mse"}


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    text = "the film is good .\n\nthe film is not bad . the film is .\n\n" * 60
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    for width in (16, 32):
        (tmp_path / f"wide-{width}.yaml").write_text(STUDENT.format(width))
    return tmp_path


def weights(objective: Objective) -> dict[str, torch.Tensor]:
    """Return the current weights of its projections."""
    layers: Any = dict(objective.projections.items())
    return {name: layer.weight.detach().clone() for name, layer in layers.items()}


def planned(world: Path, *overrides: str, width: int = 16) -> Plan:
    quick = ("batch_size=8", "max_steps=2", LOSSES)
    stages = ("general", "intermediate", "prediction")
    request = Request(
        ("tinybert",),
        (str(world / "task.yaml"),),
        teacher=str(world / "teacher"),
        student=str(world / f"wide-{width}.yaml"),
        corpus=(str(world / "text.txt"),),
        overrides=(
            *(f"{stage}.{field}" for stage in stages for field in quick[: 3 if stage != "prediction" else 2]),
            *(f"{stage}.enabled=false" for stage in ("masked_lm", "augment")),
            "general.max_length=16",
            "general.learning_rate=0.01",
            "finetune.max_steps=1",
            *overrides,
        ),
    )
    return plan_all(request)[0]


def test_a_distill_stage_begins_with_what_the_stage_before_learnt(world: Path, monkeypatch: pytest.MonkeyPatch):
    starts: list[dict[str, torch.Tensor]] = []
    train = training_run.train

    def keep(model: Any, objective: Objective, *rest: Any, **named: Any) -> Any:
        starts.append(weights(objective))
        return train(model, objective, *rest, **named)

    monkeypatch.setattr(training_run, "train", keep)
    artifacts = run_stages(world, planned(world), *STAGES)
    first, second = (start for start in starts if start)
    kept = load_file(artifacts["encoder"].path / PROJECTIONS)
    assert set(kept) == set(first) == set(second) == BOTH
    for name, weight in kept.items():
        assert weight.shape == (32, 16)
        assert torch.equal(second[name], weight)
        assert not torch.equal(first[name], weight)
    later = load_file(artifacts["intermediate"].path / PROJECTIONS)
    assert not any(torch.equal(later[name], kept[name]) for name in BOTH)
    assert not (artifacts["prediction"].path / PROJECTIONS).exists()


def test_a_student_as_wide_as_its_teacher_has_no_file_and_the_key_of_before(
    world: Path, monkeypatch: pytest.MonkeyPatch
):
    alike = "general.losses=[{name: attention_mse}]", "intermediate.losses=[{name: attention_mse}]"
    chosen = {"wide": ((), 32), "no projection": (alike, 16), "narrow": ((), 16)}

    def keys(name: str) -> dict[str, str]:
        overrides, width = chosen[name]
        return planned(world, *overrides, width=width).keys

    now = {name: keys(name) for name in chosen}
    artifacts = run_stages(world, planned(world, width=32), *STAGES)
    assert {"encoder", "intermediate"} <= artifacts.keys()
    assert not any((artifact.path / PROJECTIONS).exists() for artifact in artifacts.values())
    for stage in (general, distill):
        monkeypatch.setattr(stage, "described_projections", lambda draft, spec: {})
    before = {name: keys(name) for name in chosen}
    assert before["wide"] == now["wide"]
    assert before["no projection"] == now["no projection"]
    changed = {name for name, key in now["narrow"].items() if before["narrow"][name] != key}
    assert {"encoder", "intermediate", "prediction"} <= changed
    assert not {"text", "teacher"} & changed


def test_what_has_another_name_or_shape_is_left_as_it_was_drawn(tmp_path: Path):
    learnt = Objective((EmbeddingMse(), HiddenMse()), layers=((1, 1),), widths=(4, 6))
    save_projections(learnt, tmp_path)
    for widths, losses, same in (((4, 6), (HiddenMse(),), True), ((4, 8), (HiddenMse(),), False)):
        objective = Objective(losses, layers=((1, 1),), widths=widths)
        before = weights(objective)
        load_projections(objective, {"student": Artifact(tmp_path, "0" * 32, {})})
        expected = weights(learnt) if same else before
        assert torch.equal(weights(objective)["hidden_mse"], expected["hidden_mse"])
    for inputs in ({}, {"encoder": Artifact(tmp_path / "none", "0" * 32, {})}):
        load_projections(learnt, inputs)
