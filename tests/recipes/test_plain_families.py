"""Teachers with only the plain graph, DeBERTa-v3 and XLNet: to int8, to students, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from family_teachers import texts
from plain_teachers import plain_teacher
from pretrained_toys import encoder_folder
from recipe_runs import TASK

import compress
from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.checkpoints.folders import load_classifier, load_tokenizer
from compress.models.dimensions import read_config
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.preflight import preflight
from compress.results import Result
from compress.runtime import Classifier
from compress.tasks import Split, collate, encode

pytestmark = pytest.mark.end_to_end

STUDENTS = {
    "fewer": "layers: 2",
    "plain": "layers: 2\narchitecture: bert",
    "small": "layers: 2\narchitecture: albert\ninit: convert\nalbert: {embedding: 8}",
    "permuted": "layers: 2\narchitecture: xlnet",
}
PRETRAINED = "a pre-trained student learns from its logits (recipe logits, --student minilm-l6 or DIR)"
NO_STUDENT = f"no student can start from the weights of a teacher that is xlnet; {PRETRAINED}"
OTHERS = (
    "whose students are DeBERTa-v3: choose another with --student, or leave `architecture` out of the card; "
    f"or {PRETRAINED}"
)
UNREAD = "the attention of a deberta-v2 cannot be read; leave the loss out, or choose recipe logits"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "task.yaml").write_text(TASK.replace("max_length: 24", "max_length: 16"))
    (folder / "text.txt").write_text("\n".join(texts()))
    for name, fields in STUDENTS.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\ntitle: {name}\n{fields}\n")
    for family in ("deberta-v2", "xlnet"):
        plain_teacher(family, folder / family)
    encoder_folder(folder / "encoder")
    return folder


def run(world: Path, family: str, recipe: str, student: str | None = None) -> Result:
    stages = ("finetune",) if recipe == "int8" else ("finetune", "distill")
    (result,) = compress.run(
        recipe,
        tasks=str(world / "task.yaml"),
        teacher=str(world / family),
        student=student and str(world / student),
        root=world / "runs",
        overrides=tuple(f"{stage}.{field}" for stage in stages for field in ("max_steps=2", "batch_size=8")),
        threads=1,
        precision="fp32",
        bench=None,
    )
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "recipe", "student", "model"),
    [
        ("deberta-v2", "int8", None, "deberta-v2"),
        ("deberta-v2", "distilbert", "fewer.yaml", "deberta-v2"),
        ("deberta-v2", "logits", "encoder", "roberta"),
        ("xlnet", "int8", None, "xlnet"),
        ("xlnet", "logits", "encoder", "roberta"),
    ],
)
def test_it_becomes_a_bundle_in_int8(
    world: Path, family: str, recipe: str, student: str | None, model: str, tmp_path: Path
) -> None:
    result = run(world, family, recipe, student)
    assert result.final.precision == "int8"
    assert result.final.info["int8_matmuls"] > 0
    store = world / "runs/.store"
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=store)
    assert all(check.passed for check in verify(bundle).checks)
    kind = "finetune teacher" if recipe == "int8" else "distill student"
    (key,) = [stage.key for stage in result.stages if stage.kind == kind]
    assert read_config(store / key)["model_type"] == model
    sentences = ["the film is good", "the acting is not good and the story is bad ."]
    expected = logits(store / key, sentences)
    np.testing.assert_allclose(Classifier(bundle, precision="fp32").logits(sentences), expected, atol=1e-5)  # fp32


def logits(checkpoint: Path, sentences: list[str]) -> np.ndarray:
    """Return the checkpoint's logits by torch, each text alone."""
    model = load_classifier(checkpoint, kind="classification", labels=("negative", "positive"), trained=True).eval()
    encoded = encode(load_tokenizer(checkpoint), Split((sentences,), np.zeros(len(sentences), np.int64)), 16)
    from compress.models.features.named import compute_features

    rows = []
    for row in range(len(sentences)):
        batch = {name: torch.from_numpy(array) for name, array in collate(encoded, np.array([row]), 0).items()}
        with torch.no_grad():
            rows.append(compute_features(model, batch, ("logits",))["logits"].numpy())
    return np.concatenate(rows)


def plan(world: Path, family: str, recipe: str, student: str | None, *overrides: str) -> Plan:
    request = Request(
        (recipe,),
        (str(world / "task.yaml"),),
        teacher=str(world / family),
        student=student and str(world / student),
        corpus=(str(world / "text.txt"),) if recipe in ("minilm", "tinybert", "distilbert-general") else (),
        overrides=overrides,
    )
    (planned,) = plan_all(request)
    preflight([planned], world / "runs")
    return planned


@pytest.mark.parametrize("family", ["deberta-v2", "xlnet"])
def test_the_plan_says_that_the_graph_is_the_plain_one(world: Path, family: str) -> None:
    planned = plan(world, family, "int8", None)
    assert [note.partition(":")[0] for note in planned.notes] == ["teacher"]
    assert f"this {family} is of none of them" in planned.notes[0]


@pytest.mark.parametrize(
    ("family", "recipe", "student", "message"),
    [
        ("deberta-v2", "minilm", "fewer.yaml", f"relation_kl: {UNREAD}"),
        ("deberta-v2", "tinybert", "fewer.yaml", f"attention_mse: {UNREAD}"),
        ("deberta-v2", "distilbert-general", "fewer.yaml", "the masked-LM head of a deberta-v2 is not known"),
        ("deberta-v2", "distilbert-int8-qat", "fewer.yaml", "--set quantize_aware.enabled=false"),
        ("deberta-v2", "distilbert", "plain.yaml", OTHERS),
        ("deberta-v2", "albert", "small.yaml", f"or {PRETRAINED}"),
        ("deberta-v2", "distilbert", "permuted.yaml", "a student `xlnet` can only be pre-trained"),
        ("xlnet", "distilbert", "fewer.yaml", NO_STUDENT),
        ("xlnet", "distilbert", "plain.yaml", NO_STUDENT),
        ("xlnet", "albert", "small.yaml", NO_STUDENT),
        ("xlnet", "tinybert", "fewer.yaml", NO_STUDENT),
        ("xlnet", "minilm", "fewer.yaml", NO_STUDENT),
    ],
)  # fmt: skip
def test_what_it_has_not_is_refused_with_the_way_out(
    world: Path, family: str, recipe: str, student: str, message: str
) -> None:
    with pytest.raises(CompressError) as caught:
        plan(world, family, recipe, student)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("family", ["deberta-v2", "xlnet"])
def test_the_fast_graph_is_refused(world: Path, family: str) -> None:
    with pytest.raises(CompressError, match=f"this {family} is of none of them: export with graph: plain"):
        plan(world, family, "int8", None, "export.graph=fast")
