"""Recipe static, from a teacher to a bundle: single texts and pairs, words, text vectors; its errors and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import teacher_of
from plain_teachers import plain_teacher
from recipe_runs import TASK, TEACHER
from recipe_runs import compress as command
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

import compress
from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.static_model import register
from compress.pipeline import BenchSettings, Plan, Request, plan_all
from compress.results import Result
from compress.runtime import Classifier, Embedder, Tagger

EASY = """
name: easy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
files: {train: train.csv, dev: dev.csv}
"""
PAIRS = """
name: tiny-pairs
text: [premise, hypothesis]
label: label
labels: [entailment, neutral, contradiction]
metrics: [accuracy]
max_length: 24
synthetic: {generator: entailment, train: 120, dev: 40}
"""
SCORES = """
name: tiny-scores
kind: regression
text: [sentence1, sentence2]
label: score
metrics: [pearson, spearman]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
TAGS = """
name: tiny-tags
kind: tagging
text: [tokens]
label: tags
labels: [O, B-X, I-X]
metrics: [entity_f1]
files: {train: train.conll, dev: dev.conll}
max_length: 16
"""
VECTORS = """
name: tiny-vectors
kind: embedding
text: [sentence1, sentence2]
label: score
metrics: [spearman]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
QUESTIONS = """
name: tiny-questions
kind: span
text: [question, context]
label: answers
metrics: [exact_match]
max_length: 24
files: {train: train.jsonl, dev: dev.jsonl}
"""
SMALL = "name: small\ntitle: Small\narchitecture: static\nhidden: 16\nintermediate: 8\ninit: {init}\n{more}"
BRIEF = ("distill.max_steps=3", "distill.batch_size=8")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("static")
    (folder / "tiny.yaml").write_text(TEACHER)
    tasks = {"texts": TASK, "easy": EASY, "pairs": PAIRS, "scores": SCORES, "tags": TAGS}
    for name, task in (tasks | {"vectors": VECTORS, "questions": QUESTIONS}).items():
        (folder / f"{name}.yaml").write_text(task)
    for split in ("train", "dev"):
        (folder / f"{split}.jsonl").write_text(
            '{"question": "who", "context": "ada came", "answers": {"text": ["ada"], "answer_start": [0]}}\n' * 20
        )
        (folder / f"{split}.conll").write_text("".join(f"good B-X\nfilm{n} I-X\nbad O\n\n" for n in range(40)))
        rows = [f"{split} film {n} was {('bad', 'good')[n % 2]},{('negative', 'positive')[n % 2]}" for n in range(160)]
        (folder / f"{split}.csv").write_text("\n".join(["sentence,label", *rows]))
    (folder / "text.txt").write_text("the film is good .\n\n" * 100)
    return folder


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


def plan(world: Path, *overrides: str, recipe: str = "static", task: str = "texts", **options: Any) -> Plan:
    fields = {"teacher": str(world / "tiny.yaml"), "root": world / "runs", "precision": "fp32"} | options
    return plan_all(Request((recipe,), (str(world / f"{task}.yaml"),), overrides=overrides, **fields))[0]


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


def keys(plan: Plan) -> dict[str, str]:
    return {node.id: node.key for node in plan.nodes}


def test_the_table_s_key_is_of_what_it_depends_on(world: Path) -> None:
    before = keys(plan(world))
    later = keys(plan(world, "distill.learning_rate=0.1", "distill.max_length=12"))
    assert later["token_vectors"] == before["token_vectors"] and later["student"] != before["student"]
    assert keys(plan(world, seeds=(1,), base_seed=0))["token_vectors"] == before["token_vectors"]
    for more in ("hidden: 16", "static: {rarity: 0.1}", "static: {states: mean}"):
        (world / "own.yaml").write_text(f"name: own\ntitle: Own\narchitecture: static\ninit: static\n{more}\n")
        own = keys(plan(world, student=str(world / "own.yaml")))
        assert own["token_vectors"] != before["token_vectors"] and own["teacher"] == before["teacher"]
    assert keys(plan(world, "finetune.epochs=2"))["token_vectors"] != before["token_vectors"]


GENERAL = """
name: {name}
title: With a stage that reads layers
teacher: minilm-l6
student: static-256
stages:
  - finetune:
{stages}
  - distill: {{losses: [{{name: soft_target}}]}}
  - export:
  - quantize:
"""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "questions"}, "student static-256 has no layer that combines question and context"),
        ({"task": "vectors", "overrides": ["quantize.method=auto"]}, "with no matmuls for method `auto` to choose among"),
        ({"task": "vectors", "overrides": ["quantize.embeddings=false"]}, "`embeddings: false` keeps it in fp32"),
        ({"overrides": ["distill.losses=[{name: hidden_mse}]"]}, "hidden_mse: a static student has no layers"),
        ({"overrides": ["distill.losses=[{name: embedding_mse}]"]}, "embedding_mse: a static student has no layers"),
        ({"recipe": "distilbert", "student": "static-256"}, "hidden_cosine: a static student has no layers"),
        ({"recipe": "minilm", "student": "static-256"}, "relation_kl: a static student has no layers"),
        ({"recipe": "tinybert", "student": "static-256"}, "a static student has no layers, and so no states to compare"),
        ({"recipe": "distilbert-int8-qat", "student": "static-256", "overrides": ["distill.losses=[{name: soft_target}]"]},
         "trains layers for int8, and a static has none"),
    ],
)  # fmt: skip
def test_what_a_static_student_cannot_do_is_refused_by_name(world: Path, changes: dict[str, Any], message: str) -> None:
    reads_text = changes.get("recipe") == "tinybert"
    options = {"corpus": (str(world / "text.txt"),)} if reads_text else {}
    options |= {name: changes[name] for name in ("student",) if name in changes}
    with pytest.raises(CompressError, match=message):
        plan(
            world,
            *changes.get("overrides", ()),
            recipe=changes.get("recipe", "static"),
            task=changes.get("task", "texts"),
            **options,
        )


def test_without_layers_nothing_is_learnt_of_plain_text(world: Path) -> None:
    (world / "general.yaml").write_text(
        GENERAL.format(name="general", stages="  - general: {losses: [{name: hidden_mse}]}")
    )
    teacher_of("bert", world / "bert")
    with pytest.raises(CompressError, match=r"stage general.*hidden_mse: a static student has no layers"):
        plan(
            world,
            recipe=str(world / "general.yaml"),
            teacher=str(world / "bert"),
            corpus=(str(world / "text.txt"),),
        )
