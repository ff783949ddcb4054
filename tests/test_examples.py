"""The scripts in examples/ run, offline and in seconds; test_kind_pages.py has those for the task kinds."""

from __future__ import annotations

import csv
import runpy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import compress
from compress import CompressError

pytestmark = pytest.mark.end_to_end

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = """
name: small
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 32
synthetic: {generator: sentiment, train: 120, dev: 40}
"""


def run_script(monkeypatch: pytest.MonkeyPatch, name: str, *words: object) -> None:
    monkeypatch.setattr("sys.argv", [name, *map(str, words)])
    monkeypatch.syspath_prepend(EXAMPLES)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_every_script_is_in_the_index() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    scripts = {path.name for path in EXAMPLES.glob("*.py")} - {"scripts.py"}
    assert scripts and all(f"[{name}]({name})" in index for name in scripts)


def test_a_toy_teacher_is_compressed_and_its_runs_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "small.yaml"
    task.write_text(SMALL)
    run_script(monkeypatch, "compress_toy.py", "--task", task, "--out", tmp_path, "--steps", 2)
    shown, progress = capsys.readouterr()
    assert "finetune teacher" in progress and "distill student" in progress
    assert "int8: " in shown and "distilbert: " in shown and "the story was superb ." in shown

    run_script(monkeypatch, "compress_toy.py", "--task", task, "--out", tmp_path, "--steps", 2)
    assert capsys.readouterr().out == shown  # the bundle is replaced by an equal one

    runs = sorted((tmp_path / "runs").glob("*seed0*"))
    run_script(monkeypatch, "compare_runs.py", *runs)
    shown = capsys.readouterr().out
    assert "the second against the first: " in shown and "distinguishable" in shown


@pytest.mark.parametrize("name", ["tag.py", "classify.py"])
def test_a_file_that_is_there_is_not_replaced(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / ("dev.conll" if name == "tag.py" else "dev.csv")
    mine.write_text("mine")
    with pytest.raises(SystemExit, match="2"):
        run_script(monkeypatch, name, "--out", tmp_path, "--steps", 1)
    said = capsys.readouterr().err
    assert said == f"error: {mine}: exists already, with other content; choose another folder with --out\n"
    assert mine.read_text() == "mine"


def test_a_file_or_folder_in_the_way_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder" / "train.conll").mkdir(parents=True)
    for name, message in (("file", "cannot be written"), ("folder", "exists already")):
        with pytest.raises(SystemExit, match="2"):
            run_script(monkeypatch, "tag.py", "--out", tmp_path / name)
        said = capsys.readouterr().err
        assert said.startswith(f"error: {tmp_path / name}") and message in said and said.count("\n") == 1


def test_runs_of_two_tasks_are_not_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [SimpleNamespace(task=SimpleNamespace(data=SimpleNamespace(fingerprint=name))) for name in "ab"]
    monkeypatch.setattr("compress.results.read_result", lambda folder: runs[int(folder.name)])
    with pytest.raises(SystemExit, match="2"):
        run_script(monkeypatch, "compare_runs.py", "0", "1")
    assert capsys.readouterr().err == "error: the two runs are not of the same task and data\n"


@pytest.mark.parametrize("name", ["answer", "choose", "classify", "embed", "rate", "rerank", "tag", "topics"])
def test_a_mistake_is_one_line_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, part in (
        (("--teacher", "none-such"), "none-such"),
        (("--teacher", "./nope"), "teacher ./nope: no such folder"),
        (("--steps", "0"), "--steps: expected a whole number of at least 1, found '0'"),
        (("--out", ""), "--out: expected a folder, found an empty word"),
    ):
        with pytest.raises(SystemExit, match="2"):
            run_script(monkeypatch, f"{name}.py", *words)
        said = capsys.readouterr().err
        assert said.startswith("error: ") and part in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_data_of_an_earlier_call_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise CompressError("stopped")

    monkeypatch.setattr("compress.run", stop)
    for _ in range(2):
        with pytest.raises(SystemExit, match="2"):
            run_script(monkeypatch, "tag.py", "--out", tmp_path)
        assert capsys.readouterr().err == "error: stopped\n"
    assert (tmp_path / "train.conll").read_text().count("\n\n") == 600


@pytest.mark.slow
def test_a_checkpoint_of_ones_own_is_quantized_on_csv_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with (EXAMPLES / "reviews" / "train.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    monkeypatch.setattr("compress.run", partial(compress.run, bench=None, threads=1))
    fine_tuned(tmp_path / "checkpoint", [row["review"] for row in rows], [row["stars"] for row in rows])
    task = EXAMPLES / "reviews" / "reviews.yaml"
    run_script(monkeypatch, "own_task.py", task, tmp_path / "checkpoint", "--out", tmp_path / "int8")
    shown = capsys.readouterr().out
    assert "of 60 decisions differ" in shown and "FAIL" not in shown
    assert (tmp_path / "int8" / "bundle" / "onnx" / "model_quantized.onnx").is_file()


def fine_tuned(folder: Path, texts: list[str], labels: list[str]) -> None:
    """Write a tiny BERT fine-tuned on the reviews, with a token for each of their words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    words = [*special.values(), *sorted({word for text in texts for word in text.split()})]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    wrapped.save_pretrained(folder)

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    names = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    config = BertConfig(vocab_size=len(words), max_position_embeddings=48, **sizes, **names)
    model = BertForSequenceClassification(config)
    batch = wrapped(texts, padding=True, return_tensors="pt")
    gold = torch.tensor([names["label2id"][label] for label in labels])
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(20):
        optimizer.zero_grad()
        model(**batch, labels=gold).loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
