"""The data of a quantization search: decisions on a thousand texts, scores on the tuning split only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from compress.pipeline.plan import Context, Listener
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.stages.calibration import evaluator
from compress.quantize.evaluator import Evaluator
from compress.spec.quantization import Quantize
from compress.spec.task import TaskSpec
from compress.tasks import Encoded


def context_of(generator: str = "sentiment", train: int = 1300) -> Context:
    kind: dict[str, Any] = {"labels": ("negative", "positive"), "metrics": ("accuracy",), "text": ("sentence",)}
    if generator == "similarity":
        kind = {"kind": "regression", "metrics": ("pearson",), "text": ("first", "second")}
    spec = TaskSpec.model_validate(
        {"name": "t", "label": "l", "max_length": 16, "synthetic": {"generator": generator, "train": train, "dev": 8}}
        | kind
    )
    return Context(TaskSource(spec, None, None), "fp32", threads=1, listener=Listener())


@pytest.fixture
def predicted_texts(monkeypatch: pytest.MonkeyPatch) -> list[Encoded]:
    """Record what is predicted, and predict the first class for each text."""
    texts: list[Encoded] = []

    def predicted(path: Path, encoded: Encoded, pad: int, *, threads: int) -> np.ndarray:
        texts.append(encoded)
        return np.tile([1.0, 0.0], (len(encoded), 1))

    monkeypatch.setattr("compress.evaluate.predict_onnx", predicted)
    return texts


def judged(context: Context, tokenizer: Tokenizer, folder: Path, **spec: Any) -> Evaluator:
    return evaluator(context, Quantize(**{"method": "auto", **spec}), tokenizer, 0, folder)


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def test_decisions_are_asked_of_a_thousand_texts_the_tuning_split_first(
    predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    context = context_of()
    judge = judged(context, toy_tokenizer, tmp_path)
    tuning, train = (context.task.encoded(split, toy_tokenizer, 16) for split in ("tuning", "train"))
    assert judge.texts == {"tuning": len(tuning), "train": 1000 - len(tuning)}
    assert 0 < len(tuning) < 1000
    logits = judge.all(tmp_path / "model.onnx")
    assert len(logits) == sum(judge.texts.values()) == 1000
    assert same(predicted_texts[-1].input_ids[: len(tuning)], tuning.input_ids)
    further = predicted_texts[-1].input_ids[len(tuning) :]
    known = {ids.tobytes() for ids in train.input_ids}
    assert all(ids.tobytes() in known for ids in further)
    mine, all_of_train = (np.quantile([len(ids) for ids in rows], [0, 0.5, 1]) for rows in (further, train.input_ids))
    assert mine.tolist() == all_of_train.tolist()  # short and long ones alike
    (notice,) = context.notices
    assert (
        f"{len(tuning):,} texts of the tuning split and {1000 - len(tuning):,} of train, which the model has seen"
        in notice
    )


def test_further_texts_have_no_say_in_points(
    predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """Whatever their predictions and labels are."""
    context = context_of()
    judge = judged(context, toy_tokenizer, tmp_path)
    logits = judge.all(tmp_path / "model.onnx")
    share = 100 * float(np.mean(context.task.data.tuning.labels == 0))
    assert judge.score(logits) == pytest.approx(share)
    logits[judge.texts["tuning"] :] = [0.0, 1.0]
    assert judge.score(logits) == pytest.approx(share)
    assert judge.losses_against(judge.all(tmp_path / "model.onnx"), logits)["flipped"] == judge.texts["train"]


def test_the_same_texts_are_asked_each_time(
    predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    for _ in range(2):
        judged(context_of(), toy_tokenizer, tmp_path).all(tmp_path / "model.onnx")
    assert same(predicted_texts[0].input_ids, predicted_texts[1].input_ids)


def test_a_small_train_split_gives_all_that_it_has(
    predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    context = context_of(train=200)
    judge = judged(context, toy_tokenizer, tmp_path)
    data = context.task.data
    assert judge.texts == {"tuning": len(data.tuning), "train": len(data.train)}
    assert len(judge.all(tmp_path / "model.onnx")) == 200


@pytest.mark.parametrize(
    ("generator", "spec"),
    [("similarity", {}), ("sentiment", {"method": "smoothquant"}), ("sentiment", {"method": "inc-static"})],
)
def test_where_no_goal_is_of_decisions_the_tuning_split_is_enough(
    generator: str, spec: dict[str, Any], predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    context = context_of(generator)
    judge = judged(context, toy_tokenizer, tmp_path, **spec)
    assert judge.texts == {"tuning": len(context.task.data.tuning)}
    assert len(judge.all(tmp_path / "model.onnx")) == judge.texts["tuning"]
    assert context.notices == []


def test_a_smaller_goal_is_asked_of_more_texts(
    predicted_texts: list[Encoded], toy_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    assert sum(judged(context_of(train=2400), toy_tokenizer, tmp_path, max_flips=0.1).texts.values()) == 2000
