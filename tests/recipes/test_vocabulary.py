"""Recipe vocabulary-int8, and its stage in others, from a teacher to a bundle: what is kept, what it saves, its answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_suite import slow
from family_teachers import teacher_of
from plain_teachers import plain_teacher
from recipe_runs import compress as command
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from vocabulary_runs import predictions, recipe, record, run, vocabulary_world

from compress.bundle import ship, verify
from compress.results import Result
from compress.runtime import Classifier

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return vocabulary_world(tmp_path_factory.mktemp("vocabulary"))


def shipped(world: Path, result: Result, out: Path, **options: Any) -> Path:
    bundle = ship(world / "runs" / result.run, out, store=world / "runs/.store", **options)
    assert [check.detail for check in verify(bundle).checks if not check.passed] == []
    return bundle


def check_same_answers(world: Path, result: Result) -> None:
    """Check that all of dev has the same answers, if all of it has the same tokens as before."""
    comparison = record(result).reported["dev"]
    assert comparison.same == comparison.texts > 0
    before, after = (predictions(world, result, label) for label in ("teacher-fp32", "teacher-vocabulary-fp32"))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(("method", "bits"), [("static", 8), *slow(("dynamic", 8), ("static", 4))])
def test_a_text_whose_tokens_stay_is_answered_as_before_to_the_bit(
    world: Path, tmp_path: Path, method: str, bits: int
) -> None:
    recipes, settings = ("int8", "vocabulary-int8"), (f"quantize.method={method}", f"quantize.word_bits={bits}")
    before, after = (run(world, name, *settings, task="long", teacher="long-teacher") for name in recipes)
    vocab = record(after)
    assert 1024 < vocab.tokens < 0.9 * vocab.tokens_before
    assert (vocab.seen["train"].same, vocab.seen["train"].unknown_after) == (vocab.seen["train"].texts, 0.0)
    assert 30 <= vocab.reported["dev"].same < vocab.reported["dev"].texts == 64
    bundles = [shipped(world, result, tmp_path / name) for name, result in (("before", before), ("after", after))]
    old, new = (Tokenizer.from_file(str(bundle / "tokenizer.json")) for bundle in bundles)
    lines = [line.partition(",")[0] for line in (world / "long-dev.csv").read_text().splitlines()[1:]]
    alike = [line for line in lines if old.encode(line).tokens == new.encode(line).tokens]
    assert len(alike) == vocab.reported["dev"].same
    for precision in ("fp32", "int8"):
        first, second = (Classifier(bundle, precision=precision) for bundle in bundles)
        for line in alike[:20]:
            np.testing.assert_array_equal(first.logits([line]), second.logits([line]))
    assert f"It knows {vocab.tokens:,} of {vocab.tokens_before:,} tokens" in (bundles[1] / "README.md").read_text()
    cards = [(bundle / "README.md").read_text() for bundle in bundles]
    assert "It knows" not in cards[0]
    packed = "vectors has 4 bits in `onnx/model_quantized.onnx`"
    assert [packed in card for card in cards] == [bits == 4] * 2
    whole, fewer = ((bundle / "onnx/model_quantized.onnx").stat().st_size for bundle in bundles)
    assert fewer < whole
    assert vocab.files_before[f"{after.final.name}-int8"] == pytest.approx(whole, abs=64)  # the sizes have other digits


def test_a_table_that_has_become_short_is_held_against_one_of_4_bits(world: Path) -> None:
    settings = {"task": "long", "teacher": "long-teacher"}
    fixed = ("quantize.method=static", "quantize.word_bits=4")
    whole = run(world, "int8", *fixed, **settings)
    few = run(world, "vocabulary-int8", *fixed, "vocabulary.most=600", **settings)
    assert (whole.final.info["int4_gathers"], few.final.info["int4_gathers"]) == (1, 0)
    # A short table also stores the mean of its rows, and has other operators.
    assert record(few).files_before[f"{few.final.name}-int8"] == pytest.approx(whole.final.file_bytes, abs=2_000)


def test_the_result_has_the_sizes_of_what_was_made(world: Path) -> None:
    result = run(world, "vocabulary-int8")
    vocab, teacher = record(result), result.models[0]
    labels = ["teacher-fp32", "teacher-vocabulary-fp32", "teacher-vocabulary-int8"]
    assert [each.predictions for each in result.models] == labels
    (key,) = [stage.key for stage in result.stages if stage.kind == "vocabulary teacher-vocabulary"]
    folder = world / "runs/.store" / key
    theirs: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    assert theirs.config.vocab_size == vocab.tokens == len(AutoTokenizer.from_pretrained(folder))
    assert theirs.num_parameters() == result.final.parameters == teacher.parameters - (300 - vocab.tokens) * 32
    assert vocab.files_before["teacher-vocabulary-fp32"] == teacher.file_bytes
    assert set(vocab.seen) == {"train", "tuning"} and set(vocab.reported) == {"dev"}
    names = {path.name for path in folder.iterdir()} - {"manifest.json"}
    assert names == {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.mark.slow
def test_plain_text_keeps_more_and_a_limit_fewer(world: Path) -> None:
    text = {"corpus": (str(world / "text.txt"),), "task": "long", "teacher": "long-teacher"}
    alone = record(run(world, "vocabulary-int8", task="long", teacher="long-teacher"))
    more = run(world, "vocabulary-int8", **text)
    rare = record(run(world, "vocabulary-int8", "vocabulary.min_count=2", **text))
    few = record(run(world, "vocabulary-int8", "vocabulary.most=600", **text))
    assert few.tokens == 600 < alone.tokens < rare.tokens < record(more).tokens
    assert record(more).seen["corpus"].same == record(more).seen["corpus"].texts == 200
    assert rare.seen["train"].same == rare.seen["train"].texts and rare.seen["corpus"].same < 200
    assert few.seen["train"].same < few.seen["train"].texts
    assert all(rates.unknown_after == rates.unknown for rates in (*few.seen.values(), *few.reported.values()))
    assert more.corpus is not None
    assert more.recipe["stages"][1] == {"vocabulary": {"corpus": True, "min_count": 1}}


@pytest.mark.slow
def test_a_size_to_prune_to_counts_the_tokens_that_plain_text_keeps(world: Path) -> None:
    stages = "[finetune, prune: {size_mb: 0.12, examples: 24}, vocabulary, export, quantize: {method: static}]"
    (world / "cut.yaml").write_text(f"name: cut\ntitle: Cut\nstages: {stages}\n")
    own = {"task": "long", "teacher": "long-teacher"}
    tokens = []
    for corpus in ((), (str(world / "text.txt"),)):
        result = run(world, str(world / "cut.yaml"), corpus=corpus, **own)
        (point,) = result.pruning[0].points
        assert (result.final.file_bytes or 0) / 1e6 == pytest.approx(point.reached, rel=0.02)
        tokens.append(record(result).tokens)
    assert tokens[0] < tokens[1]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["roberta", "xlm-roberta", "modernbert", "xlnet", "deberta-v2"])
def test_teachers_of_other_families_and_algorithms(world: Path, tmp_path: Path, family: str) -> None:
    (plain_teacher if family in ("xlnet", "deberta-v2") else teacher_of)(family, world / family)
    result = run(world, "vocabulary-int8", task="few", teacher=family)
    assert record(result).tokens < record(result).tokens_before
    check_same_answers(world, result)
    shipped(world, result, tmp_path / "bundle")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("student", "stages", "method"),
    [
        ("distil-1l", "  - vocabulary:", "dynamic"),
        ("static-256", "  - vocabulary:", "smoothquant"),
        ("distil-1l", "  - vocabulary:\n  - quantize_aware: {max_steps: 2, batch_size: 8}", "qat"),
    ],
    ids=["copied", "static", "trained for int8"],
)
def test_students_have_fewer_words_too(world: Path, tmp_path: Path, student: str, stages: str, method: str) -> None:
    path = recipe(world, f"words-{method}", stages, student=student, method=method)
    result = run(world, path, "distill.max_steps=2", "distill.batch_size=8")
    vocab = record(result)
    assert [each.predictions for each in result.models] == ["teacher-fp32", "student-fp32", "student-int8"]
    assert vocab.model == "student" and set(vocab.files_before) == {"student-fp32", "student-int8"}
    bundle = shipped(world, result, tmp_path / "bundle", with_checkpoint=True)
    config = json.loads((bundle / "config.json").read_text())
    assert config["vocab_size"] == vocab.tokens < vocab.tokens_before
    if student == "static-256":
        own = Tokenizer.from_file(str(bundle / "tokenizer.json"))
        assert {own.token_to_id("[CLS]"), own.token_to_id("[SEP]")} <= set(config["special_token_ids"])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["tags", "asked", "vectors"])
def test_tasks_of_words_of_questions_and_of_vectors(world: Path, task: str) -> None:
    if not (world / "bert").exists():
        teacher_of("bert", world / "bert")
    result = run(world, "vocabulary-int8", task=task, teacher="bert")
    vocab = record(result)
    assert vocab.tokens < vocab.tokens_before
    assert vocab.seen["train"].same == vocab.seen["train"].texts > 0
    check_same_answers(world, result)


@pytest.mark.slow
def test_the_command_plans_and_runs_it(world: Path, tmp_path: Path) -> None:
    for name in ("tiny.yaml", "texts.yaml"):
        (tmp_path / name).write_text((world / name).read_text())
    arguments = ("vocabulary-int8", "--teacher", "tiny.yaml", "--task", "texts.yaml", "--out", "runs")
    planned = command("plan", *arguments, "--set", "vocabulary.most=100", "--json", cwd=tmp_path)
    (document,) = json.loads(planned.stdout)
    assert document["models"]["teacher-vocabulary"]["word_parameters"] == 100 * 32
    assert any("of 300 tokens those of train are kept, at most 100" in note for note in document["notes"])
    ran = command("run", *arguments, "--threads", "1", "--no-bench", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (page,) = (tmp_path / "runs").glob("*/report.md")
    text = page.read_text()
    assert "of 300 tokens stay, and the int8 file has" in text
    assert "Fewer tokens make the file smaller, and the model no faster" in text
    assert "| train, seen | 0 | 108 | 100.0% | 0.000 | 0.000 |" in text
    again = json.loads(command("plan", *arguments, "--json", cwd=tmp_path).stdout)[0]
    assert again["models"]["teacher-vocabulary"]["word_parameters"] < 300 * 32
    refused = command("run", *arguments, "--set", "vocabulary.corpus=true", cwd=tmp_path)
    assert refused.returncode == 2 and "add it with --corpus PATH" in refused.stderr
