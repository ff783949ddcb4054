"""Reader against transformers: its model, its token windows, and the search of SQuAD's scripts in plain loops."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reader_toys import finder

from compress.runtime import Reader

LENGTH = 48
WORDS = ["the", "guy", "in", "that", "so", ",", ".", "cat", "is", "a", "good", "house", "(x)", "Été"]


class TorchEngine:
    """A torch model as a runtime."""

    def __init__(self, model: Any) -> None:
        self.path = Path("torch")
        self.hint: str | None = None
        self.model = model
        self.inputs: dict[str, type] = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), np.int64)

    def run(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            outputs = self.model(**{name: torch.from_numpy(values) for name, values in batch.items()})
        return torch.stack([outputs.start_logits, outputs.end_logits], dim=-1).numpy()


@pytest.fixture
def model() -> Any:
    import torch
    from transformers import BertConfig, BertForQuestionAnswering

    torch.manual_seed(0)
    size: dict[str, Any] = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    size |= {"intermediate_size": 64, "max_position_embeddings": LENGTH, "initializer_range": 0.5}
    return BertForQuestionAnswering(BertConfig(**size)).eval()


def searched(model: Any, tokenizer: Any, question: str, context: str) -> list[float]:
    """Return start, end, score and none, with windows cut by transformers; each token is read in the window where it has most context."""
    import torch

    room = LENGTH - 3 - len(tokenizer(question, add_special_tokens=False)["input_ids"])
    overlap = max(room // 4, 1)
    options = {"truncation": "only_second", "max_length": LENGTH, "stride": overlap, "padding": True}
    cut = tokenizer(
        question, context, **options, return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="pt"
    )
    names = ("input_ids", "attention_mask", "token_type_ids")
    with torch.inference_mode():
        outputs = model(**{name: cut[name] for name in names})
    starts, ends = outputs.start_logits.numpy(), outputs.end_logits.numpy()
    inside = [[i for i, text in enumerate(cut.sequence_ids(w)) if text == 1] for w in range(len(starts))]
    most: dict[int, tuple[int, int]] = {}
    for window, places in enumerate(inside):
        for place in range(len(places)):
            side = min(place, len(places) - 1 - place)
            if side > most.get(window * (room - overlap) + place, (-1, 0))[0]:
                most[window * (room - overlap) + place] = side, window
    best = [0.0, 0.0, -np.inf, float((starts[:, 0] + ends[:, 0]).min())]
    for window, places in enumerate(inside):
        for place, first in enumerate(places):
            if most[window * (room - overlap) + place][1] != window:
                continue
            for last in places[place : place + 30]:
                if (score := starts[window, first] + ends[window, last]) > best[2]:
                    offsets = cut["offset_mapping"][window].tolist()
                    best[:3] = offsets[first][0], offsets[last][1], float(score)
    return best


def test_the_same_answers_as_transformers_and_torch(tmp_path: Path, model: Any) -> None:
    """fp32 on both sides, in batches of other sizes: sums have another order, hence 1e-4."""
    from transformers import BertTokenizer

    folder, rng = finder(tmp_path / "x", max_length=LENGTH), random.Random(0)
    reader, tokenizer = Reader(folder, threads=1), BertTokenizer.from_pretrained(folder)
    reader._engine, reader._unpadded = TorchEngine(model), None
    pairs = [
        (" ".join(rng.choices(WORDS, k=rng.randint(1, 5))), " ".join(rng.choices(WORDS, k=rng.randint(1, 120))))
        for _ in range(40)
    ]
    outputs = reader.outputs(pairs, impossible=True)
    expected = np.array([searched(model, tokenizer, *pair) for pair in pairs])
    np.testing.assert_allclose(outputs[:, 2:], expected[:, 2:], atol=1e-4, rtol=1e-4)
    none = expected[:, 3] > expected[:, 2]
    np.testing.assert_array_equal(outputs[:, :2], np.where(none[:, None], 0, expected[:, :2]))
    assert len({tuple(row) for row in outputs[:, :2].tolist()}) > 20, "answers must stand in many places"
    best = [reader.answer(*pair) for pair in pairs]
    assert [(one.start, one.end) for one in best] == [tuple(row) for row in expected[:, :2].astype(int).tolist()]
