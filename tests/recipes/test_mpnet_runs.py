"""An MPNet through recipes: int8, shipped, verified and queried; and students of its family by each way of distillation."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from mpnet_toys import mpnet_tokenizer
from recipe_runs import TASK

import compress
from compress.bundle import ship, verify
from compress.models.dimensions import read_config
from compress.results import Result
from compress.runtime import Classifier

pytestmark = pytest.mark.end_to_end

STUDENT = "name: half\ntitle: half\narchitecture: mpnet\nlayers: 1\n"
NARROW = STUDENT + "hidden: 16\nintermediate: 24\ninit: project\n"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path]) -> Path:
    folder = tmp_path_factory.mktemp("mpnet")
    shutil.copytree(tiny_checkpoint("mpnet"), folder / "teacher")
    mpnet_tokenizer().save(str(folder / "teacher/tokenizer.json"))
    path = folder / "teacher/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": ["MPNetModel"]}))
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("the film is not bad .\n\nthe good film is good .\n" * 200)
    return folder


def run(world: Path, recipe: str, student: str | None = None, *overrides: str, **more: Any) -> Result:
    if student is not None:
        (world / "half.yaml").write_text(student)
        more["student"] = str(world / "half.yaml")
    (result,) = compress.run(
        recipe,
        tasks=str(world / "task.yaml"),
        teacher=str(world / "teacher"),
        root=world / "runs",
        overrides=("finetune.max_steps=3", "finetune.batch_size=8", *overrides),
        threads=1,
        bench=None,
        **more,
    )
    return result


def test_int8_is_shipped_verified_and_asked(world: Path, tmp_path: Path) -> None:
    """The bundle answers like the checkpoint's int8 file, padded and unpadded, and close to fp32."""
    result = run(world, "int8")
    assert result.final.info["int8_matmuls"] > 0
    assert result.final.info["int8_format"] == "static"
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store")
    assert all(check.passed for check in verify(bundle).checks)
    texts = ["the film is good", "not bad", "the acting is not good and the story is bad ."]
    int8, fp32 = (Classifier(bundle, precision=precision).logits(texts) for precision in ("int8", "fp32"))
    assert np.abs(int8 - fp32).max() < 0.2 * max(1.0, float(np.abs(fp32).max()))  # 8 bits per tensor at width 32
    for name in ("model_quantized.onnx", "model_quantized_unpadded.onnx"):
        graph = onnx.load(bundle / "onnx" / name, load_external_data=False).graph
        assert [value.name for value in graph.input] == ["input_ids", "attention_mask"]


@pytest.mark.slow
def test_half_the_layers_are_copied_and_distilled(world: Path) -> None:
    result = run(world, "distilbert", STUDENT, "distill.max_steps=3")
    folder = world / "runs/.store" / result.stages[-2].key
    assert (folder / "model.onnx").is_file()
    tables = [
        onnx.numpy_helper.to_array(tensor)
        for tensor in onnx.load(folder / "model.onnx").graph.initializer
        if tensor.name.endswith("by_distance")
    ]
    assert [table.shape for table in tables] == [(1, 2, 48)]
    assert result.final.parameters < result.models[0].parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "student", "overrides"),
    [
        (
            "tinybert-small",
            NARROW,
            ("masked_lm.max_steps=2", "general.max_steps=2", "intermediate.max_steps=3", "prediction.max_steps=3"),
        ),
        ("minilm", STUDENT, ("general.max_steps=2", "intermediate.max_steps=3", "prediction.max_steps=3")),
        (
            "tinybert-small",
            STUDENT,
            ("masked_lm.max_steps=2", "general.max_steps=2", "intermediate.max_steps=3", "prediction.max_steps=3"),
        ),
    ],
    ids=["tinybert narrow", "minilm", "tinybert copied"],
)
def test_layers_are_distilled_on_text_and_on_the_task(
    world: Path, recipe: str, student: str, overrides: tuple[str, ...]
) -> None:
    more = ("augment.copies=1",) if recipe.startswith("tinybert") else ()
    result = run(world, recipe, student, *overrides, *more, corpus=(str(world / "text.txt"),))
    keys = {stage.kind: stage.key for stage in result.stages}
    assert {"general encoder", "distill intermediate", "distill prediction"} <= set(keys)
    assert read_config(world / "runs/.store" / keys["distill prediction"])["model_type"] == "mpnet"
    assert result.final.info["int8_matmuls"] > 0


@pytest.mark.slow
def test_a_student_is_trained_for_int8(world: Path) -> None:
    brief = ("distill.max_steps=3", "quantize_aware.max_steps=3")
    result = run(world, "distilbert-int8-qat", STUDENT, *brief)
    assert result.final.info["int8_matmuls"] > 0
    assert result.final.fidelity is not None
