"""Bundles of sentence encoders: how other libraries open them, the card's programs, and what verification detects."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from bundle_making import HIDDEN, Run, failed, reseal
from shipped_bundles import check_shipped
from vector_runs import make_vector_run

from compress.bundle import read_bundle, ship, verify
from compress.bundle.verifying.pooling import pool_states
from compress.errors import CompressError
from compress.runtime import Embedder


@pytest.fixture(scope="module", params=["mean", "cls"])
def pooled_bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    root = tmp_path_factory.mktemp("vectors")
    run = make_vector_run(root, request.param)
    return ship(run.folder, root / "bundle", store=run.store), request.param


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    root = tmp_path_factory.mktemp("vectors")
    run = make_vector_run(root)
    return run, ship(run.folder, root / "bundle", store=run.store)


@pytest.fixture
def bundle(whole: tuple[Run, Path], tmp_path: Path) -> Path:
    """A copy that the test may damage."""
    return Path(shutil.copytree(whole[1], tmp_path / "copy"))


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_bundle_has_what_sentence_transformers_opens(pooled_bundle: tuple[Path, str]) -> None:
    folder, pooling = pooled_bundle
    modules = document(folder / "modules.json")
    assert [(one["idx"], one["path"], one["type"]) for one in modules] == [
        (0, "", "sentence_transformers.models.Transformer"),
        (1, "1_Pooling", "sentence_transformers.models.Pooling"),
        (2, "2_Normalize", "sentence_transformers.models.Normalize"),
    ]
    config = document(folder / "1_Pooling" / "config.json")
    assert config["word_embedding_dimension"] == HIDDEN
    assert (config["pooling_mode_mean_tokens"], config["pooling_mode_cls_token"]) == (
        pooling == "mean",
        pooling == "cls",
    )
    assert document(folder / "sentence_bert_config.json")["max_seq_length"] == 24
    assert document(folder / "config_sentence_transformers.json")["similarity_fn_name"] == "cosine"
    assert "id2label" not in document(folder / "config.json")


def test_a_bundle_verifies(pooled_bundle: tuple[Path, str]) -> None:
    folder, pooling = pooled_bundle
    report = verify(folder)
    assert report.passed, report
    details = {check.name: check.detail for check in report.checks}
    assert details["labels"] == "none, as of vectors"
    assert details["pooling"] == f"{pooling} of {HIDDEN} numbers"
    for precision, least in (("fp32", "0.9999999"), ("int8", "0.")):  # what int8 costs goes by the CPU
        assert details[f"states {precision}"].startswith(
            f"last_hidden_state, pooled as {pooling}, gives sentence_embedding"
        )
        assert details[f"probe {precision}"].startswith(f"smallest cosine 1.0000000 (at least {least}")
    fp32, int8 = (np.array(read_bundle(folder).probe.logits[name]) for name in ("fp32", "int8"))  # type: ignore[index]
    cosines = (fp32 * int8).sum(axis=1)
    assert cosines.min() < 0.99999
    assert details["int8 against fp32"] == f"mean cosine {cosines.mean():.5f}, smallest {cosines.min():.5f}"


def test_the_probe_has_whole_vectors(pooled_bundle: tuple[Path, str]) -> None:
    folder, pooling = pooled_bundle
    info = read_bundle(folder)
    assert (info.labels, info.pooling, info.text_columns) == ((), pooling, ("sentence1", "sentence2"))
    vectors = np.array(info.probe.logits["int8"])
    assert vectors.shape == (16, HIDDEN)
    texts = [text for (text,) in info.probe.texts]
    np.testing.assert_allclose(Embedder(folder).embed(texts, batch_size=1), vectors, rtol=0, atol=1e-6)


def test_scores_are_measured_again_on_the_tasks_pairs(bundle: Path, tmp_path: Path) -> None:
    from vector_runs import TASK

    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(TASK.model_dump(mode="json", exclude_none=True, exclude_defaults=True)))
    failures = failed(verify(bundle, task=str(path)))
    assert set(failures) == {"scores fp32", "scores int8"}, "they were invented"
    assert re.search(r"dev spearman -?\d+\.\d\d \(recorded 50\.00\), dev pearson", failures["scores fp32"])


def test_the_run_must_say_how_vectors_are_made(tmp_path: Path) -> None:
    run = make_vector_run(tmp_path, None)
    with pytest.raises(CompressError, match=r"config\.json: sentence_pooling: expected mean or cls, found None"):
        ship(run.folder, tmp_path / "bundle", store=run.store)
    assert not (tmp_path / "bundle").exists()


def test_another_pooling_beside_the_model_is_seen(bundle: Path) -> None:
    path = bundle / "1_Pooling" / "config.json"
    fields = document(path) | {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    path.write_text(json.dumps(fields))
    reseal(bundle)
    failures = failed(verify(bundle))
    assert re.search(r"expected mean of 48 numbers, as config\.json has it, found cls of 48", failures["pooling"])


def test_a_record_of_another_pooling_is_seen(bundle: Path) -> None:
    reseal(bundle, pooling="cls")
    assert failed(verify(bundle))["pooling"] == "bundle.json: pooling: expected mean, as config.json has it; found cls"


def test_a_graph_whose_states_are_others_is_seen(bundle: Path) -> None:
    """Tools that pool themselves would compute other vectors than this graph."""
    path = bundle / "onnx" / "model.onnx"
    model = onnx.load(path)
    (identity,) = (node for node in model.graph.node if node.op_type == "Identity")
    identity.op_type = "Exp"
    onnx.save(model, path)
    reseal(bundle)
    failures = failed(verify(bundle))
    assert set(failures) == {"states fp32"}
    assert "last_hidden_state, pooled as mean, is not sentence_embedding" in failures["states fp32"]


def test_a_graph_without_states_is_seen(bundle: Path) -> None:
    path = bundle / "onnx" / "model.onnx"
    model = onnx.load(path)
    del model.graph.output[0]
    onnx.save(model, path)
    reseal(bundle)
    assert "found no last_hidden_state" in failed(verify(bundle))["states fp32"]


@pytest.mark.parametrize(("turned", "seen"), [(0.002, {"fp32"}), (0.6, {"fp32", "int8"})])
def test_vectors_that_turned_are_seen(bundle: Path, turned: float, seen: set[str]) -> None:
    """If they turned by more than kernels of two CPUs differ."""
    info = read_bundle(bundle)
    logits = {}
    for precision, rows in info.probe.logits.items():
        vectors = np.array(rows) + turned * np.roll(rows, 1, axis=1)
        logits[precision] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).tolist()
    reseal(bundle, probe={"texts": info.probe.texts, "logits": logits})
    failures = failed(verify(bundle))
    assert set(failures) == {f"probe {precision}" for precision in seen}
    for detail in failures.values():
        assert re.match(r"smallest cosine 0\.\d+ \(at least 0\.\d+\); this CPU does not compute", detail)


@pytest.mark.parametrize("rows", [[], [[1.0]] * 15, [[1.0]] * 15 + [[1.0, 0.0]], [[]] * 16])
def test_a_record_of_another_shape_is_seen(bundle: Path, rows: list[list[float]]) -> None:
    info = read_bundle(bundle)
    reseal(bundle, probe={"texts": info.probe.texts, "logits": {**info.probe.logits, "fp32": rows}})
    assert "expected one row per text, one column per number of a vector" in failed(verify(bundle))["probe fp32"]


def test_a_record_of_another_width_is_seen(bundle: Path) -> None:
    info = read_bundle(bundle)
    logits = {name: [row[:-1] for row in rows] for name, rows in info.probe.logits.items()}
    reseal(bundle, probe={"texts": info.probe.texts, "logits": logits})
    assert "expected an array [16, 47], found [16, 48]" in failed(verify(bundle))["probe fp32"]


def test_a_task_with_labels_needs_their_names(bundle: Path) -> None:
    info = read_bundle(bundle)
    with pytest.raises(ValueError, match="`labels`: expected one or more of a regression task, found none"):
        type(info).model_validate(info.model_dump() | {"task": info.task.model_dump() | {"kind": "regression"}})


def programs(card: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", card, re.DOTALL)


def test_the_cards_programs_run_here(bundle: Path) -> None:
    """onnxruntime alone, and ours, from the folder; `make test-consumers` runs the others."""
    card = (bundle / "README.md").read_text(encoding="utf-8")
    alone, own, sentences, fastembed = programs(card, "python")
    for program, marker in ((alone, "sentence_embedding"), (own, "Embedder")):
        assert marker in program
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=bundle, capture_output=True, text=True, check=False, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, "")
    cosines = subprocess.run(
        [sys.executable, "-c", alone], cwd=bundle, capture_output=True, text=True, check=True
    ).stdout
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d*", cosines)]
    assert len(numbers) == 4
    np.testing.assert_allclose([numbers[0], numbers[3]], 1, atol=1e-5)
    for program in (sentences, fastembed):
        compile(program, "card", "exec")
    assert 'model_kwargs={"file_name": "onnx/model_quantized.onnx"}' in sentences
    assert f"dim={HIDDEN}," in fastembed
    assert "PoolingType.MEAN" in fastembed
    (script,) = programs(card, "js")
    assert '{ dtype: "q8" }' in script
    assert '{ pooling: "mean", normalize: true }' in script


def test_the_cards_front_matter(pooled_bundle: tuple[Path, str]) -> None:
    folder, pooling = pooled_bundle
    card = (folder / "README.md").read_text(encoding="utf-8")
    fields = yaml.safe_load(card.split("---\n")[1])
    assert (fields["library_name"], fields["pipeline_tag"]) == ("sentence-transformers", "sentence-similarity")
    assert fields["tags"][:2] == ["sentence-transformers", "feature-extraction"]
    assert set(fields["widget"][0]) == {"source_sentence", "sentences"}
    assert f"PoolingType.{pooling.upper()}" in card
    assert "Input: a text, cut to 24 tokens. Output: a vector of length 1 per text." in card


@pytest.mark.slow
def test_a_bundle_is_served_timed_and_seen_to_be_damaged(bundle: Path, tmp_path: Path) -> None:
    """A server returns only the vectors."""
    check_shipped(bundle, tmp_path, ["sentence_embedding"], [])


def test_pooling_leaves_padding_out() -> None:
    states = np.array([[[3.0, 0], [0, 4], [100, 100]]])
    np.testing.assert_allclose(pool_states(states, np.array([[1, 1, 0]]), "mean"), [[0.6, 0.8]])
    np.testing.assert_allclose(pool_states(states, np.array([[1, 1, 0]]), "cls"), [[1, 0]])
