"""Recipe static, from a teacher to a bundle: single texts and pairs, words, text vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import teacher_of
from plain_teachers import plain_teacher
from recipe_runs import compress as command
from static_toys import BRIEF, SMALL, plan, static_world
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

import compress
from compress.bundle import ship, verify
from compress.models.static_model import register
from compress.pipeline import BenchSettings
from compress.results import Result
from compress.runtime import Classifier, Embedder, Tagger

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return static_world(tmp_path_factory.mktemp("static"))


def run(world: Path, recipe: str = "static", *overrides: str, task: str = "texts", **options: Any) -> Result:
    defaults = {
        "teacher": str(world / "tiny.yaml"),
        "root": world / "runs",
        "threads": 1,
        "precision": "fp32",
        "bench": None,
    }
    (result,) = compress.run(recipe, tasks=str(world / f"{task}.yaml"), overrides=overrides, **(defaults | options))
    return result


def stage_folder(world: Path, result: Result, label: str) -> Path:
    (key,) = [stage.key for stage in result.stages if stage.kind == label]
    return world / "runs/.store" / key


def test_pairs_go_from_the_teacher_to_a_bundle_that_answers_as_torch_does(world: Path, tmp_path: Path) -> None:
    result = run(world, "static", *BRIEF, task="pairs")
    assert [stage.kind for stage in result.stages if stage.kind.startswith("token")] == ["token_vectors"]
    folder = stage_folder(world, result, "distill student")
    register()
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert (model.config.texts, model.config.hidden_size) == (2, 32)
    assert result.final.parameters == model.num_parameters()
    assert result.final.flops_per_token < 0.5 * result.models[0].flops_per_token
    info = result.final.info
    assert (info["int8_gathers"], info["int8_matmuls"]) == (1, 1)
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store", with_checkpoint=True)
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    texts = [("the film is good", "the film is bad"), ("", "good"), ("", "")]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(*map(list, zip(*texts, strict=True)), return_tensors="pt", padding=True)
    with torch.no_grad():
        expected = model(**inputs).logits.numpy()
    logits = Classifier(bundle, precision="fp32").logits(texts)
    np.testing.assert_allclose(logits, expected, atol=1e-5)  # fp32 sums in another order
    assert not np.isnan(Classifier(bundle).logits(texts)).any()
    card = (bundle / "README.md").read_text()
    assert "transformers.js and optimum do not know this kind of model" in card
    assert "compress.models.static_model" in card
    assert "- transformers.js" not in card and "library_name: onnx" in card


def test_a_score_of_two_texts(world: Path) -> None:
    result = run(world, "static", *BRIEF, task="scores")
    assert set(result.final.scores["dev"]) == {"pearson", "spearman"}
    assert result.final.precision == "int8"


@pytest.mark.slow
def test_a_sentence_encoder_goes_from_its_teacher_to_vectors(world: Path, tmp_path: Path) -> None:
    result = run(world, "static", *BRIEF, task="vectors")
    folder = stage_folder(world, result, "distill student")
    register()
    model: Any = AutoModel.from_pretrained(folder).eval()
    assert (model.config.hidden_size, model.config.sentence_pooling) == (32, "mean")
    assert result.final.parameters == model.num_parameters() == 300 * 32
    assert (result.final.info["int8_gathers"], result.final.info["int8_matmuls"]) == (1, 0)
    assert result.final.fidelity is not None and (result.final.fidelity.worst_cosine or 0) > 0.99
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store", with_checkpoint=True)
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    texts = ["the film is good", "good", "", "the film"]
    inputs = AutoTokenizer.from_pretrained(folder)(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = model(**inputs).last_hidden_state.sum(1).numpy()  # of real tokens only
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    vectors = Embedder(bundle, precision="fp32").embed(texts)
    np.testing.assert_allclose(vectors, states / np.maximum(lengths, 1e-12), atol=1e-6)
    assert not vectors[2].any() and not Embedder(bundle).embed([""]).any()
    card = (bundle / "README.md").read_text()
    assert '`AutoModel.from_pretrained(".")`' in card and "library_name: onnx" in card
    assert 'backend="onnx"' not in card and "- sentence-transformers" not in card and "TextEmbedding" in card


@pytest.mark.slow
def test_a_narrower_sentence_encoder_learns_its_teacher_s_cosines(world: Path, tmp_path: Path) -> None:
    (world / "small.yaml").write_text(SMALL.format(init="static", more=""))
    options: dict[str, Any] = {"task": "vectors", "student": str(world / "small.yaml")}
    specs: dict[str, Any] = {node.id: node.spec for node in plan(world, *BRIEF, **options).nodes}
    assert [loss.name for loss in specs["student"].losses] == ["similarity_mse"]
    result = run(world, "static", *BRIEF, **options)
    assert result.final.parameters == result.final.embedding_parameters == 300 * 16
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store")
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    fp32, int8 = (Embedder(bundle, precision=name).embed(["the film is good", "good"]) for name in ("fp32", "int8"))
    assert fp32.shape == int8.shape == (2, 16)
    assert (fp32 * int8).sum(axis=1).min() > 0.99 and not np.array_equal(fp32, int8)


@pytest.mark.slow
def test_a_tagger_goes_from_its_teacher_to_entities(world: Path, tmp_path: Path) -> None:
    result = run(world, "static", "finetune.max_steps=2", *BRIEF, task="tags")
    folder = stage_folder(world, result, "distill student")
    register()
    model: Any = AutoModelForTokenClassification.from_pretrained(folder).eval()
    assert (model.config.window, model.pre_classifier.in_features) == (2, 5 * 32)
    assert result.final.parameters == model.num_parameters()
    assert (result.final.info["int8_gathers"], result.final.info["int8_matmuls"]) == (1, 1)
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store", with_checkpoint=True)
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    tokenizer, words = AutoTokenizer.from_pretrained(folder), ["good", "film", "good"]
    inputs = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0].numpy()
    firsts = [inputs.word_ids(0).index(word) for word in range(3)]
    tagger = Tagger(bundle, precision="fp32")
    np.testing.assert_allclose(tagger.logits([words, ["film"]])[:3], logits[firsts], atol=1e-5)
    assert Tagger(bundle).predict(["", words])[0] == []
    assert '`AutoModelForTokenClassification.from_pretrained(".")`' in (bundle / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "text", "answer"), [("vectors", "the film is good", "vector"), ("tags", "good film", "entities")]
)
def test_the_commands_go_from_a_teacher_to_an_answer(
    world: Path, tmp_path: Path, task: str, text: str, answer: str
) -> None:
    def done(*words: object) -> str:
        process = command(*words, cwd=tmp_path)
        assert process.returncode == 0, process.stderr
        return process.stdout

    options = ("--task", world / f"{task}.yaml", "--teacher", world / "tiny.yaml")
    assert "token_vectors" in done("plan", "static", *options)
    short = [word for value in BRIEF for word in ("--set", value)]
    (result,) = json.loads(done("run", "static", *options, *short, "--threads", "1", "--no-bench", "--json"))
    run_folder = tmp_path / "runs" / result["run"]
    assert "student int8" in (run_folder / "report.md").read_text()
    done("ship", run_folder, "-o", "bundle")
    assert "FAIL" not in done("verify", "bundle")
    assert answer in json.loads(done("predict", "bundle", "--json", text))
    done("bench", "bundle/onnx/model_quantized.onnx", "--shape", "1x16", "--runs", "1")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "settings"), [("vectors", ()), ("tags", ("finetune.max_steps=2",))])
def test_every_model_is_timed(world: Path, task: str, settings: tuple[str, ...]) -> None:
    result = run(world, "static", *settings, *BRIEF, task=task, bench=BenchSettings(runs=1))
    timed = [
        {(each.batch, each.length): each.p50 for each in model.onnx.latency} for model in result.models if model.onnx
    ]
    assert len(timed) == 3, "the teacher and both forms of the student"
    assert all(times.keys() == timed[0].keys() and min(times.values()) > 0 for times in timed) and (1, 32) in timed[0]


def test_the_table_is_the_teacher_s_and_a_token_that_was_not_seen_keeps_its_row(world: Path) -> None:
    result = run(world, "static", "distill.max_steps=1", "distill.weight_decay=0.0")
    vectors = np.load(stage_folder(world, result, "token_vectors") / "vectors.npy")
    register()
    model: Any = AutoModelForSequenceClassification.from_pretrained(stage_folder(world, result, "distill student"))
    table = model.static.word_embeddings.weight.detach().numpy()
    same = (table == vectors).all(axis=1)
    assert same[[0, 2, 3, 4]].all() and not vectors[[0, 2, 3, 4]].any()  # [PAD], [CLS], [SEP], [MASK]
    assert 0 < (~same).sum() < 300  # the tokens of eight texts


@pytest.mark.slow
def test_a_static_checkpoint_is_adopted_quantized_and_distilled_on(world: Path) -> None:
    steps = (
        "distill.max_steps=100",
        "distill.epochs=30",
        "distill.learning_rate=0.01",
        "distill.losses=[{name: hard_label}]",
    )
    first = run(world, "static", *steps, task="easy")
    folder = str(stage_folder(world, first, "distill student"))
    adopted = run(world, "int8", task="easy", teacher=folder)
    assert adopted.stages[0].kind == "adopt teacher"
    assert adopted.models[0].headline == first.models[1].headline
    assert adopted.final.precision == "int8" and adopted.final.parameters == first.final.parameters
    again = run(world, "logits", "distill.max_steps=2", task="easy", student=folder)
    assert again.final.parameters == first.final.parameters


def test_a_student_with_random_vectors_has_no_table_to_compute(world: Path) -> None:
    (world / "small.yaml").write_text(SMALL.format(init="random", more=""))
    result = run(world, "static", *BRIEF, student=str(world / "small.yaml"))
    assert "token_vectors" not in [stage.kind for stage in result.stages]
    assert result.final.embedding_parameters == 300 * 16


@pytest.mark.slow
@pytest.mark.parametrize("family", ["roberta", "modernbert"])
def test_a_teacher_of_another_family_gives_its_vectors(world: Path, family: str) -> None:
    teacher_of(family, world / family)
    steps = ("finetune.max_steps=2", "finetune.batch_size=8", *BRIEF)
    result = run(world, "static", *steps, task="pairs", teacher=str(world / family))
    assert result.final.precision == "int8"


@pytest.mark.slow
@pytest.mark.parametrize("family", ["xlnet", "deberta-v2"])
def test_so_does_one_from_whose_weights_no_student_starts(world: Path, family: str) -> None:
    plain_teacher(family, world / family)
    steps = ("finetune.max_steps=2", "finetune.batch_size=8", *BRIEF)
    result = run(world, "static", *steps, task="pairs", teacher=str(world / family))
    assert result.final.precision == "int8"
