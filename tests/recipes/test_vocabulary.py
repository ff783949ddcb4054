"""Recipe vocabulary-int8 and the stage in others, from a teacher to a bundle: what stays, what it saves, what it answers; what is refused."""

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
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from vocabulary_toys import sentences, tokenizer, words

import compress
from compress.bundle import ship, verify
from compress.errors import CompressError
from compress.models.checkpoints import save_checkpoint
from compress.pipeline import Plan, Request, plan_all
from compress.recorded_vocabulary import VocabularyRecord
from compress.results import ModelResult, Result
from compress.runtime import Classifier

LONG = """
name: long
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
files: {train: train.csv, dev: dev.csv}
"""
TAGS = """
name: tags
kind: tagging
text: [words]
label: tags
labels: [O, B-X, I-X]
metrics: [entity_f1]
files: {train: train.conll, dev: dev.conll}
max_length: 16
"""
QUESTIONS = """
name: asked
kind: span
text: [question, context]
label: answers
metrics: [exact_match]
max_length: 24
files: {train: asked.jsonl, dev: asked-dev.jsonl}
"""
VECTORS = """
name: vectors
kind: embedding
text: [one, other]
label: score
metrics: [spearman]
max_length: 24
files: {train: vectors.jsonl, dev: vectors-dev.jsonl}
"""
STUDENT = "name: own\ntitle: Own\nteacher: minilm-l6\nstudent: {student}\nstages:\n  - finetune:\n  - distill: {{losses: [{{name: soft_target}}]}}\n{stages}  - export:\n  - quantize: {{method: {method}}}\n"
BRIEF = ("finetune.max_steps=2", "finetune.batch_size=8")


def rows(folder: Path, name: str, lines: list[str]) -> None:
    text = "".join(f"{line},{('negative', 'positive')[number % 2]}\n" for number, line in enumerate(lines))
    (folder / name).write_text(f"sentence,label\n{text}")


def long_teacher(folder: Path) -> None:
    """Fine-tuned, random weights, 2,500 tokens: a table so long that it has codes for scales in int8."""
    torch.manual_seed(3)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    own = tokenizer("WordPiece")
    labels = {"id2label": {0: "negative", 1: "positive"}, "label2id": {"negative": 0, "positive": 1}}
    config = AutoConfig.for_model(
        "bert", vocab_size=own.get_vocab_size(), max_position_embeddings=32, **sizes, **labels
    )
    model: Any = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_checkpoint(model.eval(), own, folder)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In `long` train has more than half of the teacher's tokens and every one of dev but a few."""
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "tiny.yaml").write_text(TEACHER)
    for name, task in (("texts", TASK), ("long", LONG), ("tags", TAGS), ("asked", QUESTIONS), ("vectors", VECTORS)):
        (folder / f"{name}.yaml").write_text(task)
    known = words()[:1500]
    rows(folder, "train.csv", [*known, *sentences(100, seed=2, known=known)])
    rows(folder, "dev.csv", [*sentences(60, seed=3, known=known), *sentences(4, seed=4, known=words()[1500:])])
    (folder / "text.txt").write_text("\n\n".join(sentences(200, seed=5)))
    for split in ("train", "dev"):
        (folder / f"{split}.conll").write_text("good B-X\nfilm O\n\n" * 40)
    for name, count in (("asked", 40), ("asked-dev", 10)):
        asked = {"question": "is it good ?", "context": "the film is good", "answers": [{"start": 4, "end": 8}]}
        (folder / f"{name}.jsonl").write_text(f"{json.dumps(asked)}\n" * count)
    for name, count in (("vectors", 40), ("vectors-dev", 10)):
        pairs = [
            {"one": f"the film {n}", "other": "good film is bad"[: 4 + n % 9], "score": n % 9 / 9} for n in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    long_teacher(folder / "long-teacher")
    return folder


def run(
    world: Path, recipe: str, *overrides: str, task: str = "texts", teacher: str = "tiny.yaml", **options: Any
) -> Result:
    given = {"root": world / "runs", "threads": 1, "precision": "fp32", "bench": None, **options}
    (result,) = compress.run(
        recipe, tasks=str(world / f"{task}.yaml"), teacher=str(world / teacher), overrides=overrides, **given
    )
    return result


def plan(
    world: Path, *overrides: str, recipe: str = "vocabulary-int8", teacher: str = "tiny.yaml", **options: Any
) -> Plan:
    given = {"root": world / "runs", "precision": "fp32", **options}
    request = Request(
        (recipe,), (str(world / "texts.yaml"),), teacher=str(world / teacher), overrides=overrides, **given
    )
    return plan_all(request)[0]


def record(result: Result) -> VocabularyRecord:
    assert result.vocabulary is not None
    return result.vocabulary


def checkpoint(world: Path, result: Result, label: str) -> Path:
    (key,) = [stage.key for stage in result.stages if stage.kind == label]
    return world / "runs/.store" / key


def model(result: Result, label: str) -> ModelResult:
    return next(each for each in result.models if each.predictions == label)


def recipe(world: Path, name: str, stages: str, *, student: str = "distil-1l", method: str = "smoothquant") -> str:
    path = world / f"{name}.yaml"
    path.write_text(STUDENT.replace("name: own", f"name: {name}").format(student=student, stages=stages, method=method))
    return str(path)


def predictions(world: Path, result: Result, label: str) -> np.ndarray:
    with np.load(world / "runs" / result.run / "predictions.npz") as arrays:
        return arrays[f"{label}/dev"]


def test_a_text_whose_tokens_stay_is_answered_as_before_to_the_bit_in_fp32_and_int8(
    world: Path, tmp_path: Path
) -> None:
    before = run(world, "int8", task="long", teacher="long-teacher")
    after = run(world, "vocabulary-int8", task="long", teacher="long-teacher")
    found = record(after)
    assert 1024 < found.tokens < 0.8 * found.tokens_before
    assert (found.seen["train"].same, found.seen["train"].unknown_after) == (found.seen["train"].texts, 0.0)
    assert 60 <= found.reported["dev"].same < found.reported["dev"].texts == 64
    bundles = []
    for name, result in (("before", before), ("after", after)):
        bundle = ship(world / "runs" / result.run, tmp_path / name, store=world / "runs/.store")
        assert [check.detail for check in verify(bundle).checks if not check.passed] == []
        bundles.append(bundle)
    old, new = (Tokenizer.from_file(str(bundle / "tokenizer.json")) for bundle in bundles)
    lines = [line.partition(",")[0] for line in (world / "dev.csv").read_text().splitlines()[1:]]
    alike = [line for line in lines if old.encode(line).tokens == new.encode(line).tokens]
    assert len(alike) == found.reported["dev"].same
    for precision in ("fp32", "int8"):
        first, second = (Classifier(bundle, precision=precision) for bundle in bundles)
        for line in alike[:20]:
            np.testing.assert_array_equal(first.logits([line]), second.logits([line]))
    whole, fewer = (bundle / "onnx/model_quantized.onnx" for bundle in bundles)
    assert fewer.stat().st_size < whole.stat().st_size
    expected = found.files_before[f"{after.final.name}-int8"]
    assert expected == pytest.approx(whole.stat().st_size, abs=64)  # numbers in the graph have other lengths


def test_the_result_has_the_sizes_of_what_was_made(world: Path) -> None:
    result = run(world, "vocabulary-int8")
    found, teacher = record(result), result.models[0]
    assert [each.predictions for each in result.models] == [
        "teacher-fp32",
        "teacher-vocabulary-fp32",
        "teacher-vocabulary-int8",
    ]
    folder = checkpoint(world, result, "vocabulary teacher-vocabulary")
    theirs: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    assert theirs.config.vocab_size == found.tokens == len(AutoTokenizer.from_pretrained(folder))
    assert theirs.num_parameters() == result.final.parameters == teacher.parameters - (300 - found.tokens) * 32
    assert found.files_before["teacher-vocabulary-fp32"] == teacher.file_bytes
    assert set(found.seen) == {"train", "tuning"} and set(found.reported) == {"dev"}
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "manifest.json"
    }  # fmt: skip


def test_plain_text_keeps_more_and_a_limit_fewer(world: Path) -> None:
    text = {"corpus": (str(world / "text.txt"),), "task": "long", "teacher": "long-teacher"}
    alone = record(run(world, "vocabulary-int8", task="long", teacher="long-teacher"))
    more = run(world, "vocabulary-int8", **text)
    rare = record(run(world, "vocabulary-int8", "vocabulary.min_count=3", **text))
    few = record(run(world, "vocabulary-int8", "vocabulary.most=600", **text))
    assert few.tokens == 600 < alone.tokens < rare.tokens < record(more).tokens
    assert record(more).seen["corpus"].same == record(more).seen["corpus"].texts == 200
    assert rare.seen["train"].same == rare.seen["train"].texts and rare.seen["corpus"].same < 200
    assert few.seen["train"].same < few.seen["train"].texts
    assert all(rates.unknown_after == rates.unknown for rates in (*few.seen.values(), *few.reported.values()))
    assert more.corpus is not None and more.recipe["stages"][-3] == {"vocabulary": {"corpus": True, "min_count": 1}}


@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "modernbert", "xlnet", "deberta-v2", "albert"])
def test_teachers_of_other_families_and_algorithms(world: Path, tmp_path: Path, family: str) -> None:
    (plain_teacher if family in ("xlnet", "deberta-v2") else teacher_of)(family, world / family)
    result = run(world, "vocabulary-int8", *BRIEF, teacher=family)
    found, mine = record(result), model(result, "teacher-vocabulary-fp32")
    assert found.tokens < found.tokens_before
    assert found.seen["train"].same == found.seen["train"].texts
    if found.reported["dev"].same == found.reported["dev"].texts:
        np.testing.assert_array_equal(
            *(predictions(world, result, label) for label in ("teacher-fp32", mine.predictions))
        )
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store")
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []


@pytest.mark.parametrize(
    ("name", "student", "stages", "method"),
    [
        ("words-copied", "distil-1l", "  - vocabulary:\n", "dynamic"),
        ("words-static", "static-256", "  - vocabulary:\n", "smoothquant"),
        ("words-qat", "distil-1l", "  - vocabulary:\n  - quantize_aware: {max_steps: 2, batch_size: 8}\n", "qat"),
    ],
)
def test_students_have_fewer_words_too(
    world: Path, tmp_path: Path, name: str, student: str, stages: str, method: str
) -> None:
    path = recipe(world, name, stages, student=student, method=method)
    result = run(world, path, "distill.max_steps=2", "distill.batch_size=8")
    found, labels = record(result), [each.predictions for each in result.models]
    assert labels == ["teacher-fp32", "student-fp32", "student-int8"] and found.model == "student"
    assert set(found.files_before) == {"student-fp32", "student-int8"}
    assert result.final.embedding_parameters < result.models[0].embedding_parameters or student == "static-256"
    bundle = ship(world / "runs" / result.run, tmp_path / "bundle", store=world / "runs/.store", with_checkpoint=True)
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    config = json.loads((bundle / "config.json").read_text())
    assert config["vocab_size"] == found.tokens
    if student == "static-256":
        own = Tokenizer.from_file(str(bundle / "tokenizer.json"))
        assert {own.token_to_id("[CLS]"), own.token_to_id("[SEP]")} <= set(config["special_token_ids"])


@pytest.mark.parametrize(("task", "rate"), [("tags", "dev"), ("asked", "dev"), ("vectors", "dev")])
def test_tasks_of_words_of_questions_and_of_vectors(world: Path, task: str, rate: str) -> None:
    teacher_of("bert", world / "bert")
    result = run(world, "vocabulary-int8", *BRIEF, task=task, teacher="bert")
    found = record(result)
    assert found.tokens < found.tokens_before
    assert found.seen["train"].same == found.seen["train"].texts > 0
    if found.reported[rate].same == found.reported[rate].texts:
        np.testing.assert_array_equal(
            *(predictions(world, result, label) for label in ("teacher-fp32", "teacher-vocabulary-fp32"))
        )


def test_where_smaller_pieces_lack_a_character_more_unknown_words_are_said(world: Path, tmp_path: Path) -> None:
    """`abcd` was ab + ##cd; without `ab` it begins as a + ##bc, and no token inside words begins with d."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ab", "##b", "##c", "##bc", "##cd"]
    own = tokenizer("WordPiece")
    own = Tokenizer.from_str(own.to_str())
    own.model = models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]")
    config = AutoConfig.for_model("bert", vocab_size=11, max_position_embeddings=32, hidden_size=8, num_hidden_layers=1,
                                  num_attention_heads=1, intermediate_size=8)  # fmt: skip
    save_checkpoint(AutoModelForSequenceClassification.from_config(config).eval(), own, world / "lacking")
    rows(tmp_path, "train.csv", [*["a", "abc"] * 30])
    rows(tmp_path, "tuning.csv", [*["a", "abcd"] * 10])
    rows(tmp_path, "dev.csv", ["a", "abcd"])
    (tmp_path / "own.yaml").write_text(LONG.replace("dev: dev.csv", "dev: dev.csv, tuning: tuning.csv"))
    options: dict[str, Any] = {
        "teacher": str(world / "lacking"),
        "root": tmp_path / "runs",
        "threads": 1,
        "bench": None,
    }
    (result,) = compress.run(
        "vocabulary-int8", tasks=str(tmp_path / "own.yaml"), overrides=[*BRIEF, "finetune.max_steps=1"], **options
    )
    assert record(result).reported["dev"].unknown_after >= record(result).reported["dev"].unknown


def keys(plan: Plan) -> dict[str, str]:
    return {node.id: node.key for node in plan.nodes}


def test_keys_are_of_what_the_stage_depends_on(world: Path) -> None:
    text, name = (str(world / "text.txt"),), "teacher-vocabulary"
    before = keys(plan(world))
    assert keys(plan(world, "quantize.method=dynamic"))[name] == before[name]
    assert keys(plan(world, "vocabulary.corpus=false", corpus=text))[name] == before[name]
    others = [
        keys(plan(world, "vocabulary.most=200")),
        keys(plan(world, corpus=text)),
        keys(plan(world, "vocabulary.min_count=2", corpus=text)),
        keys(plan(world, "finetune.max_steps=1")),
    ]
    assert len({found[name] for found in others} | {before[name]}) == 5
    off = plan(world, "vocabulary.enabled=false")
    assert name not in keys(off) and off.models == ("teacher-fp32", "teacher-int8")
    assert keys(off)["teacher-int8"] == keys(plan(world, recipe="int8"))["teacher-int8"]


def word_level(folder: Path) -> None:
    teacher_of("bert", folder)
    own = Tokenizer.from_file(str(folder / "tokenizer.json"))
    own.model = models.WordLevel(own.get_vocab(), unk_token="[UNK]")
    own.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"overrides": ["vocabulary.most=61"]}, r"stage vocabulary: most: expected more than the 61 special tokens and single characters, which stay; found 61"),
        ({"overrides": ["vocabulary.corpus=true"]}, r"corpus: true: no plain text was given; say --corpus PATH, or leave it out"),
        ({"overrides": ["vocabulary.min_count=2"]}, r"min_count: 2 counts in plain text, and none is read: no plain text was given"),
        ({"overrides": ["vocabulary.min_count=0"]}, r"vocabulary.min_count"),
        ({"overrides": ["vocabulary.most=many"]}, r"vocabulary.most"),
        ({"teacher": "word-level"}, r"stage vocabulary: the tokenizer.json of word-level: model.type: expected WordPiece, BPE, Unigram; found WordLevel; leave the stage out"),
        ({"recipe": "alone", "overrides": ["distill.enabled=false"]}, r"stage vocabulary: every distill stage is switched off"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name_before_any_work(
    world: Path, changes: dict[str, Any], message: str
) -> None:
    if changes.get("teacher") == "word-level":
        word_level(world / "word-level")
    if "recipe" in changes:
        changes = {**changes, "recipe": recipe(world, changes["recipe"], "  - vocabulary:\n")}
    options = {name: value for name, value in changes.items() if name != "overrides"}
    with pytest.raises(CompressError, match=message):
        plan(world, *changes.get("overrides", ()), **options)


def test_the_command_plans_and_runs_it(world: Path, tmp_path: Path) -> None:
    for name in ("tiny.yaml", "texts.yaml"):
        (tmp_path / name).write_text((world / name).read_text())
    arguments = ("vocabulary-int8", "--teacher", "tiny.yaml", "--task", "texts.yaml", "--out", "runs")
    planned = command("plan", *arguments, "--set", "vocabulary.most=100", "--json", cwd=tmp_path)
    document = json.loads(planned.stdout)
    (document,) = document if isinstance(document, list) else [document]
    assert document["models"]["teacher-vocabulary"]["word_parameters"] == 100 * 32
    assert any("of 300 tokens those of train stay, at most 100" in note for note in document["notes"])
    ran = command("run", *arguments, "--threads", "1", "--no-bench", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (page,) = (tmp_path / "runs").glob("*/report.md")
    text = page.read_text()
    assert "of 300 tokens stay, and the int8 file has" in text
    assert "Fewer tokens make the file smaller, and the model no faster" in text
    assert "Texts in the smaller vocabulary" in text and "| train, seen | 0 | 108 | 100.0% | 0.000 | 0.000 |" in text
    again = command("plan", *arguments, cwd=tmp_path)
    assert "cached" in again.stdout
    refused = command("run", *arguments, "--set", "vocabulary.corpus=true", cwd=tmp_path)
    assert refused.returncode == 2 and "say --corpus PATH" in refused.stderr
