"""Passages of queries, from the user's files to the ranking by a shipped bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from own_kinds import finished, own_files, shipped, write_teacher
from shipped_bundles import check_shipped
from sklearn.metrics import ndcg_score
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from compress.bundle import verify
from compress.errors import CompressError
from compress.metrics.ranks import best_passages, queries_of
from compress.pipeline import Request, plan_all
from compress.report.grouping.predictions import find_predictions, load_answers, write_answers
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import Result
from compress.runtime import Classifier, Ranker, RelevancePrediction, load
from compress.tasks import OwnFiles

pytestmark = pytest.mark.end_to_end

GRADES = {"music": 2, "river": 1}  # words in the vocabulary, and the relevance of a passage with them
OTHERS = ("child", "quite", "still", "near", "small", "blue", "strange", "never", "once")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write four passages of five words for each query."""
    place = tmp_path_factory.mktemp("faq")
    write_teacher(place, epochs=6)
    rng = np.random.default_rng(0)
    for split, count in (("train", 120), ("dev", 40)):
        rows = []
        for number in range(count):
            query = " ".join([*rng.choice(OTHERS, 3), "b" * (number % 7), "c" * (number // 7)]).strip()
            for word in (*GRADES, "town", "park"):
                passage = " ".join(rng.permutation([word, *rng.choice(OTHERS, 4)]))
                rows.append({"query": query, "passage": passage, "relevance": GRADES.get(word, 0)})
        rows = [rows[n] for n in rng.permutation(len(rows))]
        (place / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


def options(folder: Path) -> dict[str, Any]:
    return own_files(folder, ".jsonl", max_length=32)


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    return finished(options(folder))


@pytest.fixture(scope="module")
def bundle(folder: Path, result: Result) -> Path:
    return shipped(folder, result)


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(bundle: Path, tmp_path: Path) -> None:
    check_shipped(bundle, tmp_path, ["logits"], [])


def test_the_order_is_learnt(folder: Path, result: Result) -> None:
    assert result.task.kind == "ranking" and result.task.metrics == ("ndcg@10", "mrr@10")
    teacher, int8 = result.models
    assert teacher.scores["dev"]["ndcg@10"] > 95 and int8.scores["dev"]["ndcg@10"] > 95
    with np.load(folder / "runs" / result.run / "predictions.npz") as file:
        scores, fp32, gold = file[f"{int8.predictions}/dev"], file[f"{teacher.predictions}/dev"], file["gold/dev"]
    each = [ndcg_score([gold[rows, 0]], [scores[rows, 0]], k=10) for rows in queries_of(gold)]
    assert int8.scores["dev"]["ndcg@10"] == pytest.approx(100 * np.mean(each), abs=1e-3)
    fidelity = int8.fidelity
    assert fidelity is not None and fidelity.flips is None and fidelity.query_flips is not None
    assert fidelity.query_flips.queries == 40
    assert fidelity.query_flips.changed == int((best_passages(fp32, gold) != best_passages(scores, gold)).sum())


def test_a_report_keeps_what_its_scores_are_of(cli, folder: Path, result: Result, tmp_path: Path) -> None:
    """The copy has the relevances and the queries, because its intervals are over queries."""
    runs = [folder / "runs"]
    write_answers([result], runs, tmp_path / "per_example.npz")
    (tmp_path / "results.json").write_text("{}")
    model = result.models[1]
    for places in (runs, [tmp_path]):
        file = find_predictions(result, places)
        assert file is not None
        (outputs,), gold = load_answers(file, result, [model.predictions])
        metric = metric_of([Scored(result, model, outputs, gold, file)])
        assert metric(outputs, gold) == pytest.approx(model.headline, abs=0.01)
    said = cli("report", folder / "runs" / result.run, "-o", tmp_path / "report")
    assert said.code == 0, said.err
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "nDCG@10" in page and "MRR@10" in page and "Best passage changes" in page


def test_a_bundle_verifies_and_says_what_it_gives(bundle: Path) -> None:
    report = verify(bundle, simulate=True)
    assert report.passed, [check for check in report.checks if not check.passed]
    config = json.loads((bundle / "config.json").read_text())
    assert config["problem_type"] == "regression" and config["id2label"] == {"0": "score"}
    assert config["sentence_transformers"] == {"activation_fn": "torch.nn.modules.linear.Identity"}
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-ranking" in card and "ndcg_at_10" in card


@pytest.mark.slow
def test_a_task_file_from_init_scores_a_bundle_again(cli, bundle: Path, folder: Path, tmp_path: Path) -> None:
    task = tmp_path / "faq.yaml"
    said = cli("init", "--train", folder / "train.jsonl", "--dev", folder / "dev.jsonl", "--max-length", 32, "-o", task)
    assert said.code == 0, said.err
    said = cli("verify", bundle, "--task", task)
    assert said.code == 0 and said.out.count("mrr@10 100.00 (recorded 100.00)") == 2, said.out + said.err


def test_the_examples_of_the_card_run(bundle: Path) -> None:
    first, second, *_ = (bundle / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]
    for example in (first, second):
        done = subprocess.run(
            [sys.executable, "-c", example.split("```")[0]], cwd=bundle, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("[")


def test_scores_are_those_of_transformers(bundle: Path) -> None:
    query, passages = "still near", ["once the music", "small blue river", "never"]
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(bundle), AutoTokenizer.from_pretrained(bundle)
    with torch.inference_mode():
        batch = tokenizer([query] * 3, passages, return_tensors="pt", padding=True)
        expected = model.eval()(**batch).logits[:, 0].numpy()
    ranker = Ranker(bundle, precision="fp32")
    ranked = ranker.rank(query, passages)
    assert [each.place for each in ranked] == np.argsort(-expected).tolist()
    np.testing.assert_allclose([each.score for each in ranked], np.sort(expected)[::-1], rtol=1e-4, atol=1e-5)
    assert [each.passage for each in ranked] == [passages[each.place] for each in ranked]
    assert ranker.rank(query, passages, top=1) == ranked[:1] and ranker.rank(query, []) == []
    for answer, score in zip(ranker.predict([(query, passage) for passage in passages]), expected, strict=True):
        assert isinstance(answer, RelevancePrediction)
        assert answer.score == pytest.approx(score, rel=1e-4, abs=1e-5)
        assert answer.probability == pytest.approx(1 / (1 + np.exp(-score)), rel=1e-4)


def test_of_equal_scores_the_first_given_comes_first(bundle: Path) -> None:
    ranked = Ranker(bundle, precision="fp32").rank("music", ["once", "the music", "once", "once"], batch_size=1)
    assert [each.place for each in ranked if each.passage == "once"] == [0, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3, ["a"]), "query: expected a text, found int"),
        (("a", "b"), "passages: expected texts in a list, found str"),
        (("a", ["b", None]), r"passages\[1\]: expected a text, found NoneType"),
        (("a", ["b"], 0), "top is 0; expected at least 1"),
    ],
)
def test_what_cannot_be_ranked(bundle: Path, arguments: tuple, said: str) -> None:
    with pytest.raises(CompressError, match=said):
        Ranker(bundle).rank(*arguments)


def test_a_ranking_opens_as_one(bundle: Path, tmp_path: Path) -> None:
    """Also a cross-encoder's folder without bundle.json; another score is no ranking."""
    assert isinstance(load(bundle), Ranker) and isinstance(load(bundle), Classifier)
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"):
        (plain / Path(name).name).write_bytes((bundle / name).read_bytes())
    config = json.loads((bundle / "config.json").read_text())
    (plain / "config.json").write_text(json.dumps(config))
    assert isinstance(load(plain), Ranker)
    assert load(plain).columns == 2
    expected = Ranker(bundle, precision="fp32").logits([("music", "town")])
    assert Ranker(plain).logits([("music", "town")]) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(CompressError, match="query"):
        Ranker(plain).predict("music")
    (plain / "config.json").write_text(json.dumps({k: v for k, v in config.items() if k != "sentence_transformers"}))
    assert type(load(plain)) is Classifier
    with pytest.raises(CompressError, match=r"its model ranks no passages; open it with compress\.runtime\.load"):
        Ranker(plain)


def test_predict_prints_scores_and_scores_a_file(cli, bundle: Path, folder: Path, tmp_path: Path) -> None:
    said = cli("predict", bundle, "music town", "--pair", "the music")
    assert said.code == 0 and float(said.out)
    (line,) = cli("predict", bundle, "--json", "music town", "--pair", "the music").out.splitlines()
    answer = json.loads(line)
    assert answer["score"] == pytest.approx(float(said.out), abs=1e-4) and 0 < answer["probability"] < 1
    assert "label" not in answer and "scores" not in answer
    both = cli("predict", bundle, "music town", "--pair", "the music", "--pair", "a town")
    (first, second), (alone,) = (
        map(float, both.out.split()),
        cli("predict", bundle, "music town", "--pair", "a town").out.split(),
    )
    assert (first, second) == pytest.approx(
        (float(said.out), float(alone)), abs=2e-3
    )  # int8 scales by what is in the run
    lost = cli("predict", bundle, "music town")
    assert lost.code == 2 and "reads pairs of texts; give the second text of each with --pair" in lost.err
    done = cli(
        "predict", bundle, "--input", folder / "dev.jsonl", "--label", "relevance", "--output", tmp_path / "o.csv"
    )
    assert "160 passages: ndcg@10 " in done.err + done.out and "mrr@10 " in done.err + done.out
    assert (tmp_path / "o.csv").read_text().splitlines()[0] == "query,passage,relevance,prediction"


def test_passages_of_queries_to_which_nothing_is_relevant_do_not_count(
    cli, bundle: Path, folder: Path, tmp_path: Path
) -> None:
    lines = (folder / "dev.jsonl").read_text().splitlines()
    path = tmp_path / "more.jsonl"
    path.write_text("\n".join(['{"query": "x", "passage": "y", "relevance": 0}', *lines]) + "\n")
    whole = cli(
        "predict", bundle, "--input", folder / "dev.jsonl", "--label", "relevance", "--output", tmp_path / "a.csv"
    )
    said = cli("predict", bundle, "--input", path, "--label", "relevance", "--output", tmp_path / "b.csv")
    queries = len({json.loads(line)["query"] for line in lines}) + 1
    assert said.out == whole.out.strip() + (
        f"; 1 of {queries} queries have no passage with a relevance above 0, and are left out of scores\n"
    )
    assert len((tmp_path / "b.csv").read_text().splitlines()) == len(lines) + 2


def test_a_file_whose_scores_cannot_be_computed_is_answered_all_the_same(cli, bundle: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(f'{{"query": "x", "passage": "y {row}", "relevance": 0}}\n' for row in range(3)))
    said = cli("predict", bundle, "--input", path, "--label", "relevance", "--output", out)
    assert said.code == 2 and f"the answers are in {out}" in said.err
    assert len(out.read_text().splitlines()) == 3


def test_predict_scores_by_true_and_false(cli, bundle: Path, tmp_path: Path) -> None:
    said = []
    for yes, no in (("1", "0"), ("true", "false")):
        rows = [f"one,music park,{yes}", f"one,town park,{no}", f"two,river,{no}", f"two,music,{yes}"]
        (tmp_path / "in.csv").write_text("\n".join(["query,passage,relevance", *rows]) + "\n")
        done = cli("predict", bundle, "--input", tmp_path / "in.csv", "--label", "relevance")
        assert done.code == 0, done.err
        said.append(done.err)
    assert said[0] == said[1] and "4 passages: ndcg@10 " in said[0]


def test_predict_refuses_relevances_below_0(cli, bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"query": "x", "passage": "y", "relevance": -1}\n')
    said = cli("predict", bundle, "--input", path, "--label", "relevance")
    assert said.code == 2 and "relevance: expected a relevance of at least 0, found -1" in said.err


def test_a_cross_encoder_is_adopted_as_a_teacher(bundle: Path, folder: Path, tmp_path: Path) -> None:
    teacher = tmp_path / "teacher"
    teacher.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (teacher / name).write_bytes((bundle / name).read_bytes())
    own = OwnFiles(folder / "train.jsonl", folder / "dev.jsonl", max_length=32)
    (plan,) = plan_all(Request(("int8",), (), own=own, teacher=str(teacher), root=tmp_path / "runs"))
    assert plan.nodes[0].kind.name == "adopt"
