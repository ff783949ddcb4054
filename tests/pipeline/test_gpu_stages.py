"""Every stage that computes with a model, on a simulated GPU: no tensor is left on the CPU, and a step synchronizes with the GPU
once, to read its losses."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from default_suite import slow
from pretend_cuda import pretend_cuda, waits
from pretrained_toys import encoder_folder
from safetensors.torch import load_file
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.augment import MaskedLmProposer
from compress.losses import LOSSES
from compress.models import predict
from compress.pipeline import Request, build_stage, building
from compress.pipeline.plan.students import CHOSEN_LAYERS
from compress.pipeline.stages.registry import STAGES
from compress.pruning import layerwise, obs, repair, scores
from compress.training.loop import _Run

FORWARDS = {"augment", "prune"}  # stages that run the model without optimizer steps
LOGGED = {"loop.py:_check_losses tolist": 1}  # the losses and the gradient's norm, read at once
STUDENT = (
    "name: narrow\ntitle: S\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 2\nintermediate: 24\ninit: random\n"
)
SHORT = "max_steps: 2, batch_size: 8, dropout: 0.0"
WHOLE = "epochs: 1, batch_size: 16, dropout: 0.0"  # the teacher predicts once, before training
ON_TEXT = f"{SHORT}, max_length: 16"
LAYER_LOSSES = "{name: hidden_mse}, {name: embedding_mse}, {name: attention_mse}, {name: relation_kl}"
# name -> the stages; the last stage to build; the student: a card, or None for one with its own tokenizer
RECIPES: dict[str, tuple[str, str, str | None]] = {
    "layers": (
        f"""
  - pretrain: {{{ON_TEXT}, losses: [{{name: masked_lm, whole_words: true}}, {{name: sentence_order}}]}}
  - finetune: {{{SHORT}}}
  - general: {{{ON_TEXT}, attention: document, losses: [{LAYER_LOSSES}]}}
  - augment: {{copies: 2}}
  - distill: {{{SHORT}, losses: [{LAYER_LOSSES}]}}
  - distill: {{name: task, {SHORT}, losses: [{{name: soft_cross_entropy}}, {{name: hard_label}}]}}
  - quantize_aware: {{{SHORT}, ranges: learned}}""",
        "student-qat",
        STUDENT,
    ),
    "copied": (
        f"""
  - finetune: {{{SHORT}, micro_batch_size: 3}}
  - masked_lm: {{{ON_TEXT}, enabled: true}}
  - general: {{{ON_TEXT}, losses: [{{name: masked_soft_target}}, {{name: masked_lm}}, {{name: hidden_cosine}}]}}
  - augment: {{copies: 1}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}, {{name: hard_label}}, {{name: hidden_cosine}}]}}
  - prune: {{flops: 0.8, examples: 24}}
  - distill: {{name: recover, {SHORT}, losses: [{{name: hard_label}}]}}
  - prune: {{name: less, flops: 0.5, examples: 24, score: obs}}
  - quantize_aware: {{{SHORT}, ranges: moving_average}}""",
        "student-qat",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\n",
    ),
    "next": (
        f"""
  - pretrain: {{{ON_TEXT}, losses: [{{name: masked_lm}}, {{name: next_sentence}}]}}
  - finetune: {{{SHORT}}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}]}}""",
        "student",
        "name: narrow\ntitle: S\narchitecture: albert\nlayers: 2\ninit: convert\nalbert: {embedding: 16, share: all, block: fit}\n",
    ),
    "logits": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        None,
    ),
    "static": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        "name: narrow\ntitle: Static\narchitecture: static\nhidden: 16\ninit: static\n",
    ),
    "ranked": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: margin_mse}}, {{name: hard_label}}]}}
  - prune: {{examples: 24}}""",
        "student-pruned",
        STUDENT,
    ),
    "chosen": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{SHORT}, losses: [{{name: soft_target}}, {{name: hidden_cosine}}, {{name: hard_label}}]}}""",
        "student",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\ninit: prune\nexamples: 8\n",
    ),
    "asked": (
        f"""
  - finetune: {{{SHORT}}}
  - distill: {{{WHOLE}, losses: [{{name: soft_target}}, {{name: hard_label}}]}}""",
        "student",
        STUDENT,
    ),
    "vectors": (
        f"""
  - finetune: {{}}
  - distill: {{{SHORT.replace("2", "4", 1)}, losses: [{{name: soft_target}}, {{name: similarity_mse}}]}}
  - prune: {{examples: 24, score: obs}}""",
        "student-pruned",
        "name: narrow\ntitle: S\narchitecture: distilbert\nlayers: 1\n",
    ),
}
# For the recipes of other kinds of tasks: the kind, the columns, and a function from a number to a row.
TASKS: dict[str, tuple[str, str, Callable[[int], dict[str, Any]]]] = {
    "vectors": (
        "embedding",
        "text: [one, other]\nlabel: score\nmetrics: [spearman]\n",
        lambda n: {"one": f"the film {n}", "other": "good film is bad"[: 4 + n % 9], "score": (n % 9) / 9},
    ),
    "ranked": (
        "ranking",
        "text: [query, passage]\nlabel: relevance\nmetrics: [mrr@10]\n",
        lambda n: {
            "query": f"the film {n // 3}",
            "passage": "good film is bad"[: 4 + n % 9],
            "relevance": int(n % 3 == 1),
        },
    ),
    "chosen": (
        "choice",
        "text: [context, endings]\nlabel: label\nmetrics: [accuracy]\n",
        lambda n: {"context": f"the film {n}", "endings": ["good film", "is bad"[: 3 + n % 4]], "label": n % 2},
    ),
    "asked": (
        "span",
        "text: [question, context]\nlabel: answers\nmetrics: [exact_match]\n",
        lambda n: {
            "question": "is it good ?",
            "context": "the film is good . " * (1 + n % 4),
            "answers": [{"start": 4, "end": 8}],
        },
    ),
}


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    text = "the film is not bad . the good film is good .\n\n" * 150
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text=text)
    return tmp_path


@dataclass
class Seen:
    """What a run did: the stages that computed on the GPU, and the synchronizations of each step."""

    stages: list[str] = field(default_factory=list)
    steps: list[Counter[str]] = field(default_factory=list)
    losses: dict[str, list[dict[str, float]]] = field(default_factory=dict)


def build(world: Path, name: str, *, precision: str = "fp32", gpu: bool = True, until: str | None = None) -> Seen:
    stages, last, student = RECIPES[name]
    chosen = world / ("own-tokens" if student is None else "narrow.yaml")
    encoder_folder(chosen) if student is None else chosen.write_text(student)
    (world / f"{name}.yaml").write_text(
        f"name: {name}\ntitle: T\nteacher: minilm-l6\nstudent: distilbert-6l\nstages:{stages}\n  - export:\n"
        f"  - quantize: {{method: {'qat' if 'quantize_aware' in stages else 'dynamic'}}}\n"
    )
    options: dict[str, Any] = {"teacher": str(world / "teacher"), "student": str(chosen), "root": world / f"runs-{gpu}"}
    options |= {"precision": precision, "corpus": (str(world / "text.txt"),) if "max_length" in stages else ()}
    request = Request((str(world / f"{name}.yaml"),), (str(task_file(world, name)),), **options)
    with pytest.MonkeyPatch.context() as patch:
        seen = _watched(patch) if gpu else Seen()
        build_stage(request, until or last)
    for path in sorted((world / f"runs-{gpu}" / ".store").glob("*/log.jsonl")):
        label = json.loads((path.parent / "manifest.json").read_text())["describe"]["label"]
        seen.losses[label] = [json.loads(line)["losses"] for line in path.read_text().splitlines()]
    return seen


def task_file(world: Path, name: str) -> Path:
    if name not in TASKS:
        return world / "task.yaml"
    kind, columns, row = TASKS[name]
    for split, numbers in {"train": range(60), "dev": range(60, 90)}.items():
        (world / f"{name}-{split}.jsonl").write_text("".join(json.dumps(row(n)) + "\n" for n in numbers))
    path = world / f"task-{name}.yaml"
    files = f"files: {{train: {name}-train.jsonl, dev: {name}-dev.jsonl}}\n"
    path.write_text(f"name: {name}\nkind: {kind}\n{columns}max_length: 24\n{files}")
    return path


def _watched(patch: pytest.MonkeyPatch) -> Seen:
    seen, run_job, step = Seen(), building.run_job, _Run.step

    def on_gpu(job: Any) -> Any:
        kind = job.node.kind
        if not (kind.trains or kind.name in {*FORWARDS, CHOSEN_LAYERS}):
            return run_job(job)
        seen.stages.append(kind.name)
        with pretend_cuda():
            return run_job(job)

    def counted(run: _Run) -> Any:
        run.evaluate = None  # evaluation reads scores
        with waits() as counts:
            report = step(run)
        seen.steps.append(counts)
        return report

    patch.setattr(building, "run_job", on_gpu)
    patch.setattr(_Run, "step", counted)
    return seen


PRECISIONS = [("layers", "fp32"), ("static", "bf16"), ("ranked", "bf16"), ("chosen", "fp32"), ("asked", "fp32")]
PRECISIONS += [("vectors", "fp32"), *slow(("copied", "fp32"), ("next", "bf16"), ("logits", "bf16"))]


@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_every_step_stays_on_the_gpu_and_waits_once(world: Path, name: str, precision: str) -> None:
    seen = build(world, name, precision=precision)
    assert [step for step in seen.steps if step != LOGGED] == []
    assert len(seen.steps) == sum(map(len, seen.losses.values())) >= 4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "precision"), PRECISIONS)
def test_its_losses_are_those_of_the_cpu(world: Path, name: str, precision: str) -> None:
    seen, expected = (build(world, name, precision=precision, gpu=gpu) for gpu in (True, False))
    assert seen.losses.keys() == expected.losses.keys()
    tolerance = 1e-4 if precision == "fp32" else 0.03
    for label, steps in seen.losses.items():
        for on_gpu, on_cpu in zip(steps, expected.losses[label], strict=True):
            # On a GPU, masks and attention sum the same numbers in another order. KL of near equals is a difference.
            assert on_gpu == pytest.approx(on_cpu, rel=tolerance, abs=tolerance / 100), label


@pytest.mark.parametrize("name", ["ranked", *slow("copied", "vectors")])
def test_pruning_computes_on_the_gpu_and_leaves_what_it_leaves_on_the_cpu(world: Path, name: str) -> None:
    built, seen = {}, {}
    for gpu in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            seen[gpu] = devices_of_forwards(patch)
            build(world, name, gpu=gpu)
        manifests = [path.parent for path in (world / f"runs-{gpu}" / ".store").glob("*/manifest.json")]
        folders = {json.loads((path / "manifest.json").read_text())["describe"]["label"]: path for path in manifests}
        built[gpu] = {label: path for label, path in folders.items() if label.startswith("prune")}
    assert (seen[True], seen[False]) == ({"cuda"}, {"cpu"})
    assert built[True].keys() == built[False].keys() != set()
    for label, path in built[True].items():
        weights, expected = (load_file(each / "model.safetensors") for each in (path, built[False][label]))
        assert weights.keys() == expected.keys()
        for key, value in weights.items():
            assert torch.allclose(value, expected[key], rtol=1e-3, atol=1e-3), (label, key)


@pytest.mark.slow
def test_layers_are_chosen_on_the_gpu_as_on_the_cpu(world: Path) -> None:
    infos, compute = dict[bool, dict[str, Any]](), predict.compute_features
    for gpu in (True, False):
        devices = set[str]()

        def noted(model: Any, batch: Any, wanted: Any, devices: set[str] = devices) -> Any:
            devices.update(each.device.type for each in (*batch.values(), *model.parameters()))
            return compute(model, batch, wanted)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(predict, "compute_features", noted)
            build(world, "chosen", gpu=gpu, until=CHOSEN_LAYERS)
        assert devices == {"cuda" if gpu else "cpu"}
        manifests = [json.loads(path.read_text()) for path in (world / f"runs-{gpu}").glob(".store/*/manifest.json")]
        (infos[gpu],) = [each["info"] for each in manifests if "copied_layers" in each["info"]]
    assert infos[True]["copied_layers"] == infos[False]["copied_layers"]
    assert infos[True]["alone"] == pytest.approx(infos[False]["alone"], rel=1e-2)  # the teachers differ by rounding


def devices_of_forwards(patch: pytest.MonkeyPatch) -> set[str]:
    """Record the devices of the layers that pruning runs, and of the losses whose gradients it takes."""
    devices, run, loss = set[str](), layerwise.layer_states, scores._summed_loss

    def states(model: Any, number: int, inputs: Any) -> Any:
        devices.add(inputs.states.device.type)
        return run(model, number, inputs)

    def summed(*arguments: Any) -> Any:
        summed = loss(*arguments)
        devices.add(summed.device.type)
        return summed

    patch.setattr(repair, "layer_states", states)
    patch.setattr(obs, "layer_states", states)
    patch.setattr(scores, "_summed_loss", summed)
    return devices


def test_all_stages_that_compute_and_all_losses_are_among_them() -> None:
    stages = "".join(recipe[0] for recipe in RECIPES.values())
    kinds = {name for name, kind in STAGES.items() if kind.trains} | FORWARDS
    assert {kind for kind in kinds if f"- {kind}: " not in stages} == set()
    assert {loss for loss in LOSSES if f"name: {loss}" not in stages} == set()


def planted(monkeypatch: pytest.MonkeyPatch, fault: Callable[[Any], Any]) -> None:
    """Plant a fault in the student's logits before the loss."""
    whole = LOSSES["hard_label"]

    def compute(spec: Any, logits: Any, teacher: Any, batch: Any) -> Any:
        return whole.compute(spec, fault(logits), teacher, batch)

    monkeypatch.setitem(LOSSES, "hard_label", replace(whole, compute=compute))


def test_a_tensor_left_on_the_cpu_is_found(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda logits: logits * torch.ones(logits.shape[1]))
    with pytest.raises(RuntimeError, match=r"found cuda:0 and a cpu tensor of \[2\]"):
        build(world, "copied", until="teacher")


WAITS: dict[str, Callable[[Any], Any]] = {
    "__float__": lambda logits: logits * float(logits.isfinite().all()),
    "index": lambda logits: logits[logits.isfinite()].view_as(logits),
    "to cuda": lambda logits: logits + torch.zeros(logits.shape[1]).to(logits.device),
    "__bool__": lambda logits: logits if logits.isfinite().all() else logits.nan_to_num(),
    "to cpu": lambda logits: logits + logits.detach().cpu().mean(),
}


def test_what_waits_for_the_gpu_is_counted(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, lambda logits: reduce(lambda tensor, wait: wait(tensor), WAITS.values(), logits))
    steps = build(world, "copied", until="teacher").steps
    assert len(steps) == 2
    for step in steps:
        assert set(step - Counter(LOGGED)) >= {f"test_gpu_stages.py:<lambda> {what}" for what in WAITS}


def test_augmentation_waits_once_a_batch(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the ranked words."""
    counts, rank = list[Counter[str]](), MaskedLmProposer._rank_batch

    def counted(*arguments: Any) -> Any:
        with waits() as each:
            ranked = rank(*arguments)
        counts.append(each)
        return ranked

    monkeypatch.setattr(MaskedLmProposer, "_rank_batch", counted)
    build(world, "copied", until="augmented")
    assert counts
    assert [each for each in counts if each != {"masked.py:_rank_batch to cpu": 1}] == []
