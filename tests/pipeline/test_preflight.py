"""What cannot work is refused before anything is computed, and the error names the two things that disagree."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from compress.errors import CompressError
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.plan.teachers import resolve_teacher
from compress.pipeline.preflight import preflight
from compress.quantize.methods import QUANTIZERS

TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: {length}
synthetic: {{generator: sentiment, train: 40, dev: 8}}
"""
Usage = namedtuple("Usage", "total used free")


class Case:
    """A teacher, a task and a recipe to damage, and their plan."""

    def __init__(self, folder: Path, tiny: Callable[[str], Path], tokenizer: Tokenizer) -> None:
        self.folder, self.tiny, self.tokenizer = folder, tiny, tokenizer
        self.root = folder / "runs"
        self.teacher = folder / "teacher"
        self.use("bert", architectures=["BertModel"])

    def use(self, family: str, **config: Any) -> None:
        shutil.rmtree(self.teacher, ignore_errors=True)
        shutil.copytree(self.tiny(family), self.teacher)
        self.tokenizer.save(str(self.teacher / "tokenizer.json"))
        path = self.teacher / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))

    def plan(self, length: int = 16, *overrides: str) -> list[Plan]:
        (self.folder / "task.yaml").write_text(TASK.format(length=length))
        request = Request(
            ("int8",), (str(self.folder / "task.yaml"),), teacher=str(self.teacher), root=self.root, overrides=overrides
        )
        return plan_all(request)

    def augmenting(self, glove: Path) -> list[Plan]:
        """Plans of a recipe whose augment stage reads `glove`."""
        (self.folder / "task.yaml").write_text(TASK.format(length=16))
        (self.folder / "small.yaml").write_text("name: small\ntitle: Small\narchitecture: bert\nlayers: 1\n")
        task, student = str(self.folder / "task.yaml"), str(self.folder / "small.yaml")
        overrides = (f"augment.glove={glove}",)
        request = Request(
            ("tinybert-small",),
            (task,),
            teacher=str(self.teacher),
            student=student,
            root=self.root,
            overrides=overrides,
        )
        return plan_all(request)

    def sharing(self) -> list[Plan]:
        """Plans of a recipe with three stages for an ALBERT of two layers that share a block."""
        card = {"name": "s", "title": "S", "architecture": "albert", "layers": 2, "init": "convert"}
        (self.folder / "s.yaml").write_text(json.dumps(card | {"albert": {"embedding": 8}}))
        (self.folder / "task.yaml").write_text(TASK.format(length=16))
        task, student = str(self.folder / "task.yaml"), str(self.folder / "s.yaml")
        teacher = str(self.teacher)
        return plan_all(Request(("albert",), (task,), teacher=teacher, student=student, root=self.root))

    def refused(self, plans: list[Plan]) -> str:
        return self._said(lambda: preflight(plans, self.root))

    def unplanned(self, length: int, *overrides: str) -> str:
        """Return the error that `compress plan` already raises."""
        return self._said(lambda: self.plan(length, *overrides))

    def _said(self, work: Callable[[], object]) -> str:
        with pytest.raises(CompressError) as caught:
            work()
        assert caught.value.exit_code == 2
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def case(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Case:
    return Case(tmp_path, tiny_checkpoint, toy_tokenizer)


def test_what_fits_passes_and_nothing_is_written(case: Case):
    preflight(case.plan(), case.root)
    assert not case.root.exists()


def test_texts_longer_than_the_teachers_positions(case: Case):
    preflight(case.plan(24), case.root)
    assert case.unplanned(25) == (
        "task toy: max_length is 25 tokens and teacher teacher has 24 positions; "
        "set max_length to at most 24, for files of your own --max-length 24"
    )
    message = case.unplanned(16, "stages[0].finetune.max_length=30")
    assert message.startswith("recipe int8, finetune: max_length is 30 tokens and teacher teacher has 24 positions")


def test_roberta_keeps_two_positions_for_itself(case: Case):
    """26 rows, of which texts use those after the padding index, 1."""
    case.use("roberta", architectures=["RobertaModel"])
    preflight(case.plan(24), case.root)
    assert "max_length is 25 tokens and teacher teacher has 24 positions" in case.unplanned(25)


def test_a_tokenizer_with_more_tokens_than_the_embedding_table(case: Case):
    case.use("bert", architectures=["BertModel"], vocab_size=40)
    assert case.refused(case.plan()) == (
        f"{case.teacher}: the tokenizer knows 64 tokens and the embedding table (config.json: vocab_size) has 40 rows; "
        "the tokenizer belongs to another checkpoint"
    )


def test_a_roberta_whose_padding_stands_in_every_text(case: Case):
    """transformers counts the positions of tokens other than padding, a graph those of all tokens."""
    begins = case.tokenizer.token_to_id("[CLS]")
    case.use("roberta", architectures=["RobertaModel"], pad_token_id=begins)
    message = case.refused(case.plan())
    assert message.startswith(
        f"{case.teacher}: config.json: pad_token_id: positions are counted by it, and {begins} is [CLS]"
    )
    case.use("bert", architectures=["BertModel"], pad_token_id=begins)  # BERT counts positions differently
    preflight(case.plan(), case.root)


@pytest.mark.parametrize(("pad", "expected"), [
    ("x", "config.json: pad_token_id: expected a whole number from 0 to 16777215; found 'x'"),
    (10**6, "config.json: pad_token_id: expected less than vocab_size, "),
])  # fmt: skip
def test_a_padding_token_that_is_none(case: Case, pad: object, expected: str):
    config = case.teacher / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pad_token_id": pad}))
    with pytest.raises(CompressError, match=expected):
        case.plan()


def test_a_checkpoint_with_more_layers_than_its_config(case: Case):
    config = case.teacher / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_hidden_layers": 1}))
    assert case.refused(case.plan()) == (
        f"{case.teacher}: the weights have 2 layers and config.json says 1; the config belongs to another checkpoint"
    )


def test_a_fast_graph_that_a_teacher_has_not_is_told_before_its_training(case: Case):
    config = case.teacher / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"hidden_act": "silu"}))
    message = case.refused(case.plan(16, "export.graph=fast"))
    assert "this bert has another, silu: export with graph: plain" in message
    preflight(case.plan(), case.root)


def test_a_checkpoint_without_a_tokenizer(case: Case):
    (case.teacher / "tokenizer.json").unlink()
    assert case.refused(case.plan()).startswith(f"{case.teacher}: expected tokenizer.json, or a vocabulary")


def test_labels_of_a_fine_tuned_teacher_that_are_not_the_tasks(case: Case):
    case.use("bert")
    refused = case.refused(case.plan())
    assert refused.startswith(f"{case.teacher}: the checkpoint has 3 labels ['no', 'maybe', 'yes'] and the ")
    assert refused.endswith("task 2: ['negative', 'positive']; --refit trains a new head")
    case.use("bert", id2label={"0": "bad", "1": "good"}, label2id={"bad": 0, "good": 1})
    assert "labels ['bad', 'good'] are not the task's ['negative', 'positive']" in case.refused(case.plan())


def test_weights_that_are_pickled_or_cut_are_refused_even_earlier(case: Case):
    path = case.teacher / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CompressError, match=r"model\.safetensors: not a complete safetensors file"):
        case.plan()
    path.rename(case.teacher / "pytorch_model.bin")
    with pytest.raises(CompressError, match=r"expected model\.safetensors; found pytorch_model\.bin, a pickle"):
        case.plan()
    assert not case.root.exists()


def test_a_disk_that_is_too_small(case: Case, monkeypatch: pytest.MonkeyPatch):
    plans = case.plan()
    needed = plans[0].sizes["teacher"].parameters * 28
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, needed - 1))
    free, least = (needed - 1) // 10**6, -(-needed // 10**6)
    assert free < least
    assert case.refused(plans).startswith(
        f"{case.root}: {free} MB are free and this plan needs about {least} MB; free some"
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, needed))
    preflight(plans, case.root)


def test_a_disk_too_small_for_every_checkpoint(case: Case, monkeypatch: pytest.MonkeyPatch):
    """A teacher, and the student after each of three stages, whose layers share a block."""
    plans = case.sharing()
    teacher, student = plans[0].sizes["teacher"], plans[0].sizes["student"]
    needed = (teacher.parameters + 3 * student.parameters) * 28
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, needed - 1))
    assert "this plan needs about" in case.refused(plans)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, needed))
    preflight(plans, case.root)


def test_word_vectors_that_do_not_parse(case: Case):
    path = case.folder / "vectors.txt"
    with pytest.raises(CompressError, match=r"^augment\.glove: .*vectors\.txt: no such file"):
        case.augmenting(path)
    path.write_text("film 1 2\nmovie 1\n")
    assert case.refused(case.augmenting(path)) == f"{path}:2: expected a word and 2 finite numbers, found 1"
    path.write_text("")
    assert case.refused(case.augmenting(path)) == f"{path}: empty; expected a word and its vector on every line"
    path.write_text("film 1 2\n" * 100_000 + "movie 1\n")  # beyond the lines that the stage reads
    plans = case.augmenting(path)
    preflight(plans, case.root)
    path.write_text("spoilt\n")
    (node,) = [node for node in plans[0].nodes if node.kind.name == "augment"]
    (case.root / ".store" / node.key).mkdir(parents=True)
    preflight(plans, case.root)  # the file is not read again


def test_what_is_in_the_store_needs_no_room_and_no_teacher(case: Case, monkeypatch: pytest.MonkeyPatch):
    plans = case.plan()
    for node in plans[0].nodes:
        (case.root / ".store" / node.key).mkdir(parents=True)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    (case.teacher / "tokenizer.json").unlink()
    preflight(plans, case.root)


def test_an_output_folder_that_is_a_file_or_in_one(case: Case):
    (case.folder / "runs").write_text("mine")
    assert case.refused(case.plan()).startswith(f"{case.root}: cannot be written: Not a directory; choose another")
    case.root = case.folder / "runs" / "below"
    assert case.refused(case.plan()).startswith(f"{case.root}: cannot be written: Not a directory; choose")
    assert (case.folder / "runs").read_text() == "mine"


def test_an_output_folder_that_may_not_be_written(case: Case, monkeypatch: pytest.MonkeyPatch):
    """root may write anywhere, so the system's error is simulated."""

    def refuses(**where: Path) -> None:
        assert where == {"dir": case.root.absolute()}
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    case.root.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuses)
    assert case.refused(case.plan()).startswith(f"{case.root}: cannot be written: Permission denied; choose")


def test_a_teachers_identity_is_that_of_all_its_files(case: Case):
    seen = {resolve_teacher(str(case.teacher)).identity}
    vocabulary = case.tokenizer.get_vocab()
    (case.teacher / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    for name in ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt"):
        path = case.teacher / name
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if name == "model.safetensors" else data + b"\n")
        seen.add(resolve_teacher(str(case.teacher)).identity)
    (case.teacher / "tokenizer.json").unlink()
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (case.teacher / name).write_text("{}")
        seen.add(resolve_teacher(str(case.teacher)).identity)
    assert len(seen) == 8


@pytest.mark.parametrize("name", ["no/such/folder", "a-file.txt/teacher"])
def test_a_teacher_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file.txt").touch()
    with pytest.raises(CompressError, match=rf"^teacher {name}: no such folder; expected the folder of"):
        resolve_teacher(name)


def test_a_missing_package_costs_no_training(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = case.plan(16, "quantize.method=inc-static")
    missing = replace(QUANTIZERS["inc-static"], packages=("a-package-that-is-not-there",))
    monkeypatch.setitem(QUANTIZERS, "inc-static", missing)
    with pytest.raises(CompressError, match=r"a_package_that_is_not_there.*pip install 'neural-compressor\[pt\]'"):
        preflight(plans, case.root)
    preflight(case.plan(16, "quantize.method=static"), case.root)  # the other methods do not need it
