"""Checkpoint folders: complete, safe and supported, or refused in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkpoint_refusals import refused
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from compress.corpus.vocabulary import byte_level
from compress.errors import CompressError
from compress.models.checkpoints import folders
from compress.models.checkpoints.folders import has_head, load_classifier, load_tokenizer
from compress.models.checkpoints.weights import weight_files
from compress.models.dimensions import read_config
from compress.spec.kinds import KindName

LABELS = ("no", "maybe", "yes")


@pytest.fixture
def folder(tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """Return a copy of the tiny BERT with a tokenizer, to damage."""
    shutil.copytree(tiny_checkpoint("bert"), tmp_path / "checkpoint")
    toy_tokenizer.save(str(tmp_path / "checkpoint" / "tokenizer.json"))
    return tmp_path / "checkpoint"


def config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_pickle_is_never_opened(folder: Path):
    (folder / "model.safetensors").unlink()
    refused(lambda: weight_files(folder), f"{folder}: expected model.safetensors; found none")
    (folder / "tf_model.h5").touch()
    refused(
        lambda: weight_files(folder), "found tf_model.h5, the format of another framework: convert it to safetensors"
    )
    (folder / "bundle.json").write_text("{}")
    refused(lambda: weight_files(folder), "expected model.safetensors; found a bundle, whose weights are in ONNX")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cposix\nsystem\n(S'exit'\ntR.")
    message = "found pytorch_model.bin, a pickle, which can run code when loaded: convert it to safetensors"
    for call in (
        lambda: weight_files(folder),
        lambda: load_classifier(folder, kind="classification", labels=LABELS, trained=False),
    ):
        refused(call, f"{folder}: expected model.safetensors; {message}")


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_an_adapter_alone_is_to_be_merged(folder: Path, suffix: str):
    (folder / "model.safetensors").rename(folder / f"adapter_model.{suffix}")
    (folder / "adapter_config.json").write_text("{}")
    refused(lambda: weight_files(folder), f"{folder}: expected model.safetensors; found an adapter, without the model")
    (folder / "pytorch_model.bin").touch()
    refused(lambda: weight_files(folder), "a pickle, which can run code when loaded: convert it to safetensors")


@pytest.mark.parametrize(("prefix", "owner"), [("_orig_mod.", "compiled by torch"), ("module.", "in DataParallel")])
def test_weights_saved_in_a_wrapper_name_it(folder: Path, prefix: str, owner: str):
    names = load_file(folder / "model.safetensors")
    save_file({prefix + name: weight for name, weight in names.items()}, folder / "model.safetensors")
    with pytest.raises(CompressError) as caught:
        has_head(folder, read_config(folder), "classification")
    assert str(caught.value).startswith(
        f"{folder}: the names of its weights begin with `{prefix}`: a model {owner} was saved"
    )
    assert f"MODEL.{prefix}save_pretrained(FOLDER)" in str(caught.value)


@pytest.mark.parametrize("kept", [0, 5, 100, 0.5, -1])
def test_truncated_weights_name_their_file(folder: Path, kept: float):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * kept) if 0 < kept < 1 else int(kept)])
    for call in (
        lambda: weight_files(folder),
        lambda: load_classifier(folder, kind="classification", labels=LABELS, trained=False),
    ):
        refused(call, f"{path}: not a complete safetensors file: ")


def test_sharded_weights_load_and_a_missing_shard_is_named(folder: Path):
    model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=False)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    shards = weight_files(folder)
    assert len(shards) > 2
    loaded = load_classifier(folder, kind="classification", labels=LABELS, trained=False).state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items())
    shards[1].unlink()
    refused(lambda: weight_files(folder), f"{shards[1]}: no such file; model.safetensors.index.json says")
    (folder / "model.safetensors.index.json").write_text("{}")
    refused(lambda: weight_files(folder), "model.safetensors.index.json: not the index of a sharded checkpoint")


def test_weights_that_would_be_random_are_refused(folder: Path):
    config(folder, num_hidden_layers=3)
    refused(
        lambda: load_classifier(folder, kind="classification", labels=LABELS, trained=False),
        "the checkpoint lacks 16 of the model's weights, e.g. bert.",
    )
    config(folder, num_hidden_layers=2, vocab_size=130)
    message = (
        "has other sizes than config.json for 1 of the model's weights, e.g. bert.embeddings.word_embeddings.weight"
    )
    refused(lambda: load_classifier(folder, kind="classification", labels=LABELS, trained=False), message)


def test_sizes_that_make_no_model(folder: Path):
    config(folder, hidden_size=33)
    message = (
        f"{folder / 'config.json'}: expected sizes of 1 or more and heads that divide the hidden size, found 2 layers"
    )
    refused(lambda: load_classifier(folder, kind="classification", labels=LABELS, trained=False), message)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"])
@pytest.mark.parametrize(("kind", "labels"), [("classification", ("b", "a")), ("regression", ())])
def test_a_head_of_another_size_is_new_and_the_rest_is_kept(
    tiny_checkpoint: Callable[[str], Path], family: str, kind: KindName, labels: tuple[str, ...]
):
    old = load_classifier(tiny_checkpoint(family), kind="classification", labels=LABELS, trained=False).state_dict()
    torch.manual_seed(0)
    model: Any = load_classifier(tiny_checkpoint(family), kind=kind, labels=labels, trained=False)
    new = model.state_dict()
    changed = {name for name in new if not torch.equal(new[name], old[name])}
    assert {name.split(".")[0] for name in changed} == {"classifier"}
    assert model.config.num_labels == max(1, len(labels))
    assert model.config.problem_type == ("single_label_classification" if labels else "regression")


def test_a_tokenizer_forgets_its_stored_truncation_and_padding(folder: Path, toy_tokenizer: Tokenizer):
    text = "the film is good " * 20
    stored = Tokenizer.from_str(toy_tokenizer.to_str())
    stored.enable_truncation(8)
    stored.enable_padding(length=8)
    stored.save(str(folder / "tokenizer.json"))
    assert load_tokenizer(folder).encode(text).ids == toy_tokenizer.encode(text).ids


def test_a_tokenizer_is_made_from_its_vocabulary_alone(folder: Path, toy_tokenizer: Tokenizer):
    (folder / "tokenizer.json").unlink()
    vocabulary = toy_tokenizer.get_vocab()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")
    tokenizer = load_tokenizer(folder)
    for text, pair in (("The FILM is good.", None), ("not bad", "zebra 7")):
        mine, expected = tokenizer.encode(text, pair), toy_tokenizer.encode(text, pair)
        assert (mine.ids, mine.type_ids) == (expected.ids, expected.type_ids)


def test_a_folder_without_a_tokenizer_is_refused(folder: Path):
    """transformers would create one with five tokens, for which every word is unknown."""
    (folder / "tokenizer.json").unlink()
    refused(lambda: load_tokenizer(folder), f"{folder}: expected tokenizer.json, or a vocabulary")
    (folder / "tokenizer.json").write_text("{")
    refused(lambda: load_tokenizer(folder), f"{folder / 'tokenizer.json'}: not a tokenizer: ")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (
            "spm.model",
            "found spm.model: have DebertaV2TokenizerFast of transformers 4 write a tokenizer.json beside it",
        ),
        ("spiece.model", "spiece.model needs the package sentencepiece to be read: install it, or give"),
    ],
)
def test_a_sentencepiece_model_says_what_it_takes(
    folder: Path, name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
):
    (folder / "tokenizer.json").unlink()
    (folder / name).write_bytes(b"\n\x0e")
    (folder / "config.json").write_text('{"model_type": "xlnet"}')
    monkeypatch.setattr("compress.models.checkpoints.vocabularies.find_spec", lambda name: None)
    refused(lambda: load_tokenizer(folder), remedy)


def test_a_vocabulary_of_another_family_is_refused(folder: Path):
    """transformers would ignore it and create a tokenizer that knows no word."""
    (folder / "tokenizer.json").unlink()
    (folder / "spiece.model").write_bytes(b"of an ALBERT")
    with pytest.raises(CompressError, match=r"a bert reads no words from spiece\.model"):
        load_tokenizer(folder)


def test_a_vocabulary_without_its_unknown_token_is_refused(folder: Path, toy_tokenizer: Tokenizer):
    known = [word for word in toy_tokenizer.get_vocab() if word != "[UNK]"]
    mine = Tokenizer(WordPiece(vocab={word: number for number, word in enumerate(known)}, unk_token="[UNK]"))
    mine.save(str(folder / "tokenizer.json"))
    refused(
        lambda: load_tokenizer(folder), f"{folder / 'tokenizer.json'}: the tokenizer cannot encode words that it does"
    )
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(known) + "\n")
    refused(lambda: load_tokenizer(folder), f"{folder}: the tokenizer cannot encode words that it does not know: ")


@pytest.mark.parametrize(("number", "expected"), [
    (1, "expected a number of its own for each token; found 1 for several"),
    (2**30, "expected numbers of tokens below 16777216; found 1073741824"),
])  # fmt: skip
def test_numbers_of_tokens_that_are_none(folder: Path, number: int, expected: str):
    """[UNK] has id 1. Tables are allocated by the largest id."""
    path = folder / "tokenizer.json"
    document = json.loads(path.read_text())
    document["model"]["vocab"]["film"] = number
    path.write_text(json.dumps(document))
    refused(lambda: load_tokenizer(folder), f"{path}: {expected}")


def test_labels_and_heads_as_the_config_tells_them(folder: Path):
    assert folders.config_labels(read_config(folder)) == LABELS
    assert folders.config_labels({"id2label": {str(i): f"c{i}" for i in range(12)}})[10:] == ("c10", "c11")
    assert folders.config_labels({"num_labels": 3}) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert folders.has_head(folder, read_config(folder), "classification")
    config(folder, architectures=["BertModel"])
    assert not folders.has_head(folder, read_config(folder), "classification")


def test_a_trained_head_must_be_the_checkpoints_own(tiny_checkpoint: Callable[[str], Path]):
    folder = tiny_checkpoint("bert")
    refused(lambda: load_classifier(folder, kind="classification", labels=("no", "yes"), trained=True), "classifier.")
    assert load_classifier(folder, kind="classification", labels=LABELS, trained=True) is not None


TEXTS = ("The FILM is not bad.", "é 漢 zebra-7  good", "")


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "albert", "mpnet"])
@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_a_saved_checkpoint_has_its_tokenizer_whatever_its_family(
    tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path, family: str, kind: str
):
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    ours = toy_tokenizer if kind == "wordpiece" else byte_level(["the film is not bad", "a good film"], 300)
    model = AutoModel.from_config(AutoConfig.from_pretrained(tiny_checkpoint(family)))
    folders.save_checkpoint(model, ours, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    for text in TEXTS:
        assert theirs(text)["input_ids"] == ours.encode(text).ids
    assert theirs("good", "bad film")["input_ids"] == ours.encode("good", "bad film").ids
    assert theirs.mask_token_id == ours.token_to_id("[MASK]" if kind == "wordpiece" else "<mask>")
    assert theirs.model_max_length == 24
    again = load_tokenizer(tmp_path)
    assert [again.encode(text).ids for text in TEXTS] == [ours.encode(text).ids for text in TEXTS]
