"""Which folders a Tagger opens, and which it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runtime_toys import bag, describe
from tagger_toys import SAYS, chain

from compress.errors import CompressError
from compress.runtime import Classifier, Tagger, load


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return chain(tmp_path / "chain", says=SAYS, scale=0.1)


@pytest.mark.parametrize("how", ["architectures", "bundle.json"])
def test_each_folder_is_opened_by_its_own(tmp_path: Path, how: str) -> None:
    words, texts = chain(tmp_path / "words"), bag(tmp_path / "texts")
    if how == "bundle.json":
        config = json.loads((words / "config.json").read_text())
        del config["architectures"]
        (words / "config.json").write_text(json.dumps(config))
        describe(words, task={"kind": "tagging"}, text_columns=["tokens"], max_length=24)
        describe(texts, task={"kind": "classification"})
    assert isinstance(load(words, threads=1), Tagger)
    assert isinstance(load(texts, threads=1), Classifier)
    opened: list[Any] = [load(words), load(texts)]
    assert [len(model.predict(["a b", "c"])) for model in opened] == [2, 2]
    with pytest.raises(CompressError, match=r"labels the words of texts; open it with compress\.runtime\.Tagger, or"):
        Classifier(words)
    with pytest.raises(CompressError, match=r"labels texts; open it with compress\.runtime\.Classifier, or"):
        Tagger(texts)


def test_a_folder_that_contradicts_itself(tmp_path: Path) -> None:
    describe(folder := chain(tmp_path / "x"), task={"kind": "multilabel"})
    with pytest.raises(CompressError, match=r"architectures: found BertForTokenClassification, .* the kind multilabel"):
        load(folder)
    describe(folder, task={"kind": "tagging"}, text_columns=["one", "two"])
    with pytest.raises(CompressError, match="text_columns: expected one, whose words get labels, found 2"):
        load(folder)


def _labels(count: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda config: config | {"id2label": {str(i): f"L{i}" for i in range(count)}}


def test_a_model_with_other_labels_or_of_texts_is_refused(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(_labels(3)(config)))
    with pytest.raises(CompressError, match=r"expected scores \[1, 3, 3\] .* found \[1, 3, 5\]; .* belong together"):
        Tagger(folder).predict("a")
    texts = bag(tmp_path / "texts")
    (texts / "config.json").write_text(json.dumps(_labels(3)(config)))
    with pytest.raises(CompressError, match=r"expected scores \[1, 3, 3\] .* found \[1, 3\]"):
        Tagger(texts).predict("a")


def test_it_tells_what_it_is(folder: Path) -> None:
    expected = (
        f"Tagger({str(folder)!r}, precision='fp32', runtime='onnxruntime', labels: O, B-LOC, I-LOC, B-PER, … (5))"
    )
    assert repr(Tagger(folder)) == expected


def test_an_answer_imports_nothing_heavy(folder: Path) -> None:
    script = (
        "import sys\n"
        "from compress.runtime import load\n"
        "assert load(sys.argv[1]).predict(['the guy'])[0][0].label == 'PER'\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "datasets", "pandas", "onnx", "pydantic", "rich", "typer", "sklearn", "scipy"}
    assert not set(done.stdout.split()) & heavy
    assert done.stderr == ""
