"""Word labels in data sets of the hub, as numbers with names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tagged_files import dev_words, read, sentences

from compress.errors import CompressError
from compress.spec.task import Hub

TRAIN, DEV = sentences("train"), sentences("dev", 12)
EXPECTED = [list(zip(*text, strict=True)) for text in DEV]


def test_class_labels_of_a_data_set_have_their_names(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    names = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
    tags = datasets.List(datasets.ClassLabel(names=names))
    features = datasets.Features({"tokens": datasets.List(datasets.Value("string")), "ner_tags": tags})
    saved = {
        split: datasets.Dataset.from_dict(
            {"tokens": [w for w, _ in texts], "ner_tags": [[names.index(tag) for tag in t] for _, t in texts]},
            features=features,
        )
        for split, texts in (("train", TRAIN), ("validation", DEV))
    }
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "set"))
    data, reported = read(tmp_path, hub=Hub(path="set"), label="ner_tags")
    assert (
        data.labels == ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER") and dev_words(reported) == EXPECTED
    )


@pytest.mark.parametrize("columns", [False, True])
def test_class_labels_of_spans_have_their_names(tmp_path: Path, columns: bool) -> None:
    """A list of objects, or an object of lists, with another ClassLabel, `source`, that is not the label."""
    datasets = pytest.importorskip("datasets")
    names, integer = datasets.ClassLabel(names=["PER", "ORG", "LOC"]), datasets.Value("int32")
    fields = {"source": datasets.ClassLabel(names=["a", "b"]), "start": integer, "end": integer, "label": names}
    spans: Any = {name: [each] for name, each in fields.items()} if columns else [fields]

    def row(number: int, label: int) -> dict[str, Any]:
        span = {"source": 1, "start": 0, "end": 3, "label": label}
        return {"text": f"Ada {number}", "entities": {k: [v] for k, v in span.items()} if columns else [span]}

    features = datasets.Features({"text": datasets.Value("string"), "entities": spans})
    saved = {
        split: datasets.Dataset.from_list([row(number, number % 2 * 2) for number in numbers], features=features)
        for split, numbers in (("train", range(30)), ("validation", range(40, 43)))
    }
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "set"))
    data, reported = read(tmp_path, hub=Hub(path="set"), text=("text",), label="entities")
    assert data.labels == ("O", "B-LOC", "I-LOC", "B-ORG", "I-ORG", "B-PER", "I-PER")
    assert dev_words(reported)[:2] == [[("Ada", "B-PER"), ("40", "O")], [("Ada", "B-LOC"), ("41", "O")]]
    saved["train"] = datasets.Dataset.from_list([row(0, -1)], features=features)
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "hidden"))
    with pytest.raises(CompressError, match=r"row 1: entities: span 1: expected .*-1"):
        read(tmp_path, hub=Hub(path="hidden"), text=("text",), label="entities")
