"""Which folders a Reader opens, and which it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from reader_toys import finder
from runtime_toys import bag, describe
from tagger_toys import chain

from compress.errors import CompressError
from compress.runtime import Classifier, Reader, Tagger, load


@pytest.mark.parametrize("how", ["BertForQuestionAnswering", "XLNetForQuestionAnsweringSimple", "bundle.json"])
def test_load_opens_it(tmp_path: Path, how: str) -> None:
    folder = finder(tmp_path / "x", architecture=how)
    if how == "bundle.json":
        config = json.loads((folder / "config.json").read_text())
        del config["architectures"]
        (folder / "config.json").write_text(json.dumps(config))
        describe(folder, task={"kind": "span"}, text_columns=["question", "context"], max_length=24)
    assert isinstance(load(folder, threads=1), Reader)
    assert Reader(folder).predict([("who", "so the guy")])[0].answer == "the guy"


def test_the_others_refuse_it_and_it_refuses_theirs(tmp_path: Path) -> None:
    questions, words, texts = finder(tmp_path / "q"), chain(tmp_path / "words"), bag(tmp_path / "texts")
    for other in (Classifier, Tagger):
        with pytest.raises(
            CompressError, match=r"answers questions about texts; open it with compress\.runtime\.Reader, or"
        ):
            other(questions)
    with pytest.raises(CompressError, match=r"labels the words of texts; open it with compress\.runtime\.Tagger, or"):
        Reader(words)
    with pytest.raises(CompressError, match=r"labels texts; open it with compress\.runtime\.Classifier, or"):
        Reader(texts)
    assert isinstance(load(words), Tagger)
    assert isinstance(load(texts), Classifier)


def test_a_folder_that_contradicts_itself(tmp_path: Path) -> None:
    describe(folder := finder(tmp_path / "x"), task={"kind": "tagging"})
    with pytest.raises(CompressError, match=r"architectures: found BertForQuestionAnswering, .* the kind tagging"):
        load(folder)
    describe(folder, task={"kind": "span"}, text_columns=["text"])
    with pytest.raises(CompressError, match="text_columns: expected two, a question and its context, found 1"):
        load(folder)
    describe(folder, task={"kind": "span"}, max_length=3)
    with pytest.raises(CompressError, match="max_length is 3; expected more than the 3 special tokens"):
        load(folder)
    describe(folder, task={"kind": "span"}, max_length=4)
    assert Reader(folder).predict([("who", "so it in the")])[0].answer == "in"


def test_a_graph_with_one_output_is_refused(tmp_path: Path) -> None:
    folder = chain(tmp_path / "x", labels=("start", "end", "more"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"architectures": ["BertForQuestionAnswering"], "id2label": {"0": "start", "1": "end"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        CompressError, match=r"expected scores \[1, \d+, 2\] .* found \[1, \d+, 3\]; .* belong together"
    ):
        Reader(folder).predict([("a", "b")])


def test_it_tells_what_it_is(tmp_path: Path) -> None:
    folder = finder(tmp_path / "x")
    assert repr(Reader(folder)) == (
        f"Reader({str(folder)!r}, precision='fp32', runtime='onnxruntime', labels: start, end)"
    )
    assert Reader(folder).columns == 2


def test_an_answer_imports_nothing_heavy(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from compress.runtime import load\n"
        "assert load(sys.argv[1]).answer('who', 'so the guy').answer == 'the guy'\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    folder = finder(tmp_path / "x")
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    heavy = {"torch", "transformers", "datasets", "pandas", "onnx", "pydantic", "rich", "typer", "sklearn", "scipy"}
    assert not set(done.stdout.split()) & heavy
    assert done.stderr == ""
