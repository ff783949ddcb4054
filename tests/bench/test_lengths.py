"""The task's own lengths: the same tuning texts for all models, each tokenizer's own count, padded rows masked."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from compress.bench import Candidate
from compress.bench.lengths import SAMPLE, sample_indices, with_lengths
from compress.bench.runners import feed, inputs
from compress.errors import CompressError
from compress.tasks import encode, load_training, resolve_task

pytestmark = pytest.mark.end_to_end


@pytest.fixture
def task(tmp_path: Path) -> str:
    """Write a task with texts of 1 to 9 words in train; all texts of the reported split have 30."""
    rows = {"train": [f"{'good ' * (1 + i % 9)}{i}" for i in range(400)], "dev": ["bad " * 30] * 9}
    for name, texts in rows.items():
        lines = [f"{text},{'yes' if number % 2 else 'no'}" for number, text in enumerate(texts)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\ntext: [text]\nlabel: label\nlabels: ['no', 'yes']\nmetrics: [accuracy]\nmax_length: 16\n"
        "tuning_fraction: 0.5\nfiles: {train: train.csv, dev: dev.csv}\n",
        encoding="utf-8",
    )
    return str(path)


def bundle(folder: Path, tokenizer: Tokenizer, **document: object) -> Path:
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").touch()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"id2label": {"0": "no", "1": "yes"}}))
    (folder / "bundle.json").write_text(json.dumps({"max_length": 16, "text_columns": ["text"], **document}))
    return folder


def candidates(*paths: Path) -> list[Candidate]:
    return [Candidate(str(path), path, "onnx") for path in paths]


def test_they_are_those_of_the_tuning_split_and_never_of_the_reported_one(
    task: str, tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    graph = bundle(tmp_path / "out", toy_tokenizer) / "onnx" / "model.onnx"
    (candidate,) = with_lengths(candidates(graph), task, None)
    spec, folder = resolve_task(task)
    tuning = load_training(spec, folder, None).tuning
    everything = encode(toy_tokenizer, tuning, 16).lengths
    assert candidate.lengths == tuple(everything[sample_indices(len(everything))])
    assert len(candidate.lengths) == SAMPLE
    assert len(set(candidate.lengths)) > 3
    assert max(candidate.lengths) < 16  # a text of 30 words would fill it


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 127, 191, 249, 872])
def test_texts_are_spread_evenly_over_all_of_the_split(count: int) -> None:
    indices = sample_indices(count)
    assert len(indices) == min(count, SAMPLE)
    ends = [*indices, count]
    steps = {after - before for before, after in pairwise(ends)}
    assert not steps or max(steps) - min(steps) <= 1
    assert indices.tolist()[:1] == [0] * (count > 0)


def test_each_bundle_counts_with_its_own_tokenizer_and_limit(
    task: str, tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    wide = bundle(tmp_path / "wide", toy_tokenizer) / "onnx" / "model.onnx"
    narrow = bundle(tmp_path / "narrow", toy_tokenizer, max_length=5) / "onnx" / "model.onnx"
    (tmp_path / "alone.onnx").touch()
    one, two, three = with_lengths(candidates(tmp_path / "alone.onnx", wide, narrow), task, None)
    assert one.lengths == two.lengths  # no tokenizer of its own: the lengths of the first model with one
    assert three.lengths == tuple(min(5, length) for length in two.lengths)
    assert max(two.lengths) > 5


def test_a_checkpoint_has_a_tokenizer_too(task: str, tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    home = bundle(tmp_path / "out", toy_tokenizer)
    (one,) = with_lengths([Candidate("torch", home, "torch")], task, None)
    (two,) = with_lengths(candidates(home / "onnx" / "model.onnx"), task, None)
    assert one.lengths == two.lengths


def test_without_a_tokenizer_or_for_another_task_it_is_one_line(
    task: str, tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    (tmp_path / "alone.onnx").touch()
    with pytest.raises(CompressError, match=r"^--task .*mine\.yaml: expected a bundle or a checkpoint, .* found none$"):
        with_lengths(candidates(tmp_path / "alone.onnx"), task, None)
    pairs = bundle(tmp_path / "pairs", toy_tokenizer, text_columns=["a", "b"]) / "onnx" / "model.onnx"
    with pytest.raises(
        CompressError, match=r"pairs: expected a bundle for 1 text column\(s\), as task mine has; found 2$"
    ):
        with_lengths(candidates(pairs), task, None)
    with pytest.raises(CompressError, match="no task 'nothing'"):
        with_lengths(candidates(pairs), "nothing", None)


def test_rows_of_a_batch_are_padded_and_masked() -> None:
    batch = inputs([2, 4], vocabulary=50)
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert batch["input_ids"].shape == (2, 4)
    assert batch["input_ids"][0, 2:].tolist() == [0, 0]
    assert all(array.dtype == np.int64 for array in batch.values())
    assert 0 <= batch["input_ids"].min() <= batch["input_ids"].max() < 50


def test_a_graph_is_given_the_inputs_that_it_names() -> None:
    assert set(feed(Path("a.onnx"), ["input_ids"], {"vocab_size": "50"}, [3, 3])) == {"input_ids"}
    with pytest.raises(CompressError, match=r"^a\.onnx: expected the inputs \[.*\], found also \['pixels'\]$"):
        feed(Path("a.onnx"), ["pixels"], {}, [3])
