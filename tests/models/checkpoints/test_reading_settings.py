"""A checkpoint's texts are cut on the side, and its pairs given the segments, that its tokenizer_config.json has transformers use."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from family_teachers import classifier_of, tokenizer_of
from tokenizers import Tokenizer, processors
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from compress.errors import CompressError
from compress.models.checkpoints.folders import load_tokenizer, save_checkpoint
from compress.pipeline.plan.teachers import resolve_teacher
from compress.runtime.cutting import truncation_side
from compress.tasks import Split, encode

LENGTH = 11
LONG = "the film is good and the plot is not bad at all but a dog runs in the park"
TEXTS = ["a dog", LONG, f"{LONG} . {LONG}"]
PAIRS = [(one, other) for one in TEXTS for other in TEXTS]
NO_SEGMENTS = {"model_input_names": ["input_ids", "attention_mask"]}


@pytest.fixture(params=["bert", "roberta"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tokenizer = tokenizer_of(request.param)
    words = max(tokenizer.get_vocab().values()) + 1
    save_checkpoint(classifier_of(request.param, vocab_size=words), tokenizer, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


@pytest.fixture
def of_pairs(tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """Return a copy of the tiny BERT, which reads segments, with a tokenizer of BERT's own form."""
    shutil.copytree(tiny_checkpoint("bert"), tmp_path / "pairs")
    toy_tokenizer.save(str(tmp_path / "pairs" / "tokenizer.json"))
    return tmp_path / "pairs"


def configure(folder: Path, **fields: Any) -> None:
    """Set fields of tokenizer_config.json; None removes one."""
    path = folder / "tokenizer_config.json"
    document = (json.loads(path.read_text()) if path.exists() else {}) | fields
    path.write_text(json.dumps({name: value for name, value in document.items() if value is not None}))


def store_side(folder: Path, side: str) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(5, direction=side)
    tokenizer.save(str(folder / "tokenizer.json"))


def ids_of(tokenizer: Tokenizer, *columns: Any) -> list[list[int]]:
    split = Split(tuple(map(list, columns)), np.arange(len(columns[0])))
    return [ids.tolist() for ids in encode(tokenizer, split, LENGTH).input_ids]


def check_cut(folder: Path, side: str) -> None:
    """Check texts and pairs against transformers; the longer text of a pair is cut first."""
    theirs, tokenizer = AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
    assert theirs.truncation_side == side
    ones, others = zip(*PAIRS, strict=True)
    cut: dict[str, Any] = {"truncation": True, "max_length": LENGTH}
    assert ids_of(tokenizer, TEXTS) == theirs(TEXTS, **cut)["input_ids"]
    assert ids_of(tokenizer, ones, others) == theirs(list(ones), list(others), **cut)["input_ids"]
    assert len(tokenizer.encode(LONG).ids) > LENGTH, "the tokenizer itself cuts nothing"


def test_texts_are_cut_on_the_checkpoints_side(folder: Path, tmp_path: Path) -> None:
    check_cut(folder, "right")
    configure(folder, truncation_side="left")
    check_cut(folder, "left")


def test_the_side_in_the_tokenizers_own_file_counts_unless_its_config_has_another(folder: Path) -> None:
    store_side(folder, "left")
    check_cut(folder, "left")
    configure(folder, truncation_side="right")
    check_cut(folder, "right")


def test_a_saved_checkpoint_keeps_the_side(folder: Path, tmp_path: Path) -> None:
    configure(folder, truncation_side="left")
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    save_checkpoint(model, load_tokenizer(folder), tmp_path / "saved")
    assert json.loads((tmp_path / "saved" / "tokenizer.json").read_text())["truncation"] is None
    check_cut(tmp_path / "saved", "left")


def pair_logits(folder: Path) -> torch.Tensor:
    """Return what transformers answers to pairs."""
    ones, others = map(list, zip(*PAIRS, strict=True))
    inputs = AutoTokenizer.from_pretrained(folder)(
        ones, others, truncation=True, max_length=24, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        return AutoModelForSequenceClassification.from_pretrained(folder).eval()(**inputs).logits


@pytest.mark.parametrize("fields", [NO_SEGMENTS, {"tokenizer_class": "TokenizersBackend"}])
def test_a_model_that_is_given_no_segments_is_given_the_first_alone(
    of_pairs: Path, fields: dict[str, Any], tmp_path: Path
) -> None:
    """The class is one of transformers 5 alone, which gives none unless they are listed."""
    configure(of_pairs, tokenizer_class="BertTokenizer", pad_token="[PAD]")
    usual = pair_logits(of_pairs)
    assert 1 in load_tokenizer(of_pairs).encode("a", "a").type_ids
    configure(of_pairs, **fields)
    expected, tokenizer = pair_logits(of_pairs), load_tokenizer(of_pairs)
    assert (expected - usual).abs().max() > 1e-3
    assert not any(tokenizer.encode("a", "a").type_ids)
    save_checkpoint(AutoModelForSequenceClassification.from_pretrained(of_pairs), tokenizer, tmp_path / "saved")
    torch.testing.assert_close(pair_logits(tmp_path / "saved"), expected)
    assert load_tokenizer(tmp_path / "saved").to_str() == tokenizer.to_str()


@pytest.mark.parametrize(
    "around",
    [
        processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        ),
        processors.Sequence(
            [processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), processors.ByteLevel(trim_offsets=False)]
        ),
    ],
)
def test_segments_are_left_out_of_every_form_of_a_pair(of_pairs: Path, around: Any) -> None:
    tokenizer = Tokenizer.from_file(str(of_pairs / "tokenizer.json"))
    tokenizer.post_processor = around
    tokenizer.save(str(of_pairs / "tokenizer.json"))
    configure(of_pairs, **NO_SEGMENTS)
    for pair in (None, "not bad"):
        before, after = tokenizer.encode("a good film", pair), load_tokenizer(of_pairs).encode("a good film", pair)
        assert (after.ids, after.type_ids) == (before.ids, [0] * len(before))


def test_what_cannot_be_followed_is_refused(of_pairs: Path) -> None:
    configure(of_pairs, truncation_side="both")
    with pytest.raises(
        CompressError, match=r"tokenizer_config\.json: truncation_side: expected one of left, right; fo"
    ):
        load_tokenizer(of_pairs)
    configure(of_pairs, truncation_side="left", model_input_names="input_ids")
    with pytest.raises(CompressError, match=r"tokenizer_config\.json: model_input_names: expected a list of names; fo"):
        load_tokenizer(of_pairs)
    configure(of_pairs, **NO_SEGMENTS)
    tokenizer = Tokenizer.from_file(str(of_pairs / "tokenizer.json"))
    tokenizer.post_processor = processors.ByteLevel()
    tokenizer.save(str(of_pairs / "tokenizer.json"))
    with pytest.raises(
        CompressError, match=r"tokenizer\.json: post_processor: expected TemplateProcessing or BertProc"
    ):
        load_tokenizer(of_pairs)


def test_only_a_checkpoint_that_is_read_otherwise_gets_another_key(of_pairs: Path) -> None:
    def identity() -> str:
        return resolve_teacher(str(of_pairs)).identity

    usual, tokens = identity(), load_tokenizer(of_pairs).to_str()
    configure(of_pairs, truncation_side="right", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    assert (identity(), load_tokenizer(of_pairs).to_str()) == (usual, tokens)
    configure(of_pairs, truncation_side="left")
    left = identity()
    configure(of_pairs, truncation_side="right", **NO_SEGMENTS)
    assert len({usual, left, identity()}) == 3
    config = of_pairs / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"type_vocab_size": 1}))
    assert "without segments" not in identity(), "a model of one segment is given none anyway"
    assert load_tokenizer(of_pairs).to_str() == tokens


def test_the_side_that_is_stored_with_the_tokenizer_is_in_the_key(of_pairs: Path) -> None:
    def identity() -> str:
        return resolve_teacher(str(of_pairs)).identity

    tokenizer = Tokenizer.from_file(str(of_pairs / "tokenizer.json"))
    tokenizer.enable_truncation(16, direction="left")
    tokenizer.save(str(of_pairs / "tokenizer.json"))
    (of_pairs / "tokenizer_config.json").unlink(missing_ok=True)
    assert truncation_side(load_tokenizer(of_pairs)) == "left"
    stored = identity()
    assert "cut on the left" in stored
    configure(of_pairs, truncation_side="right")
    assert truncation_side(load_tokenizer(of_pairs)) == "right"
    assert identity() not in (stored, "") and "left" not in identity()


LETTERS = ["A Film é É 漢字", "a film"]


@pytest.fixture(params=[True, False])
def of_letters(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A BERT whose tokenizer.json lowers letters, or does not, with words that tell the difference."""
    document = json.loads(tokenizer_of("bert").to_str())
    words = document["model"]["vocab"]
    for word in ("é", "É", "漢", "##字", "##é", "A", "Film", "film"):
        words.setdefault(word, len(words))
    document["normalizer"]["lowercase"] = request.param
    folder = tmp_path / "letters"
    save_checkpoint(classifier_of("bert", vocab_size=len(words)), Tokenizer.from_str(json.dumps(document)), folder)
    return folder


@pytest.mark.parametrize(
    "fields",
    [
        {"do_lower_case": True},
        {"do_lower_case": False},
        {"do_lower_case": None},
        {"tokenizer_class": None, "do_lower_case": False},
        {"strip_accents": False, "do_lower_case": True},
        {"tokenize_chinese_chars": False, "do_lower_case": True},
        {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False},
        {"tokenizer_class": "DistilBertTokenizerFast", "do_lower_case": False},
        {"tokenizer_class": "MobileBertTokenizer", "do_lower_case": None},
        {"tokenizer_class": "ErnieTokenizer", "do_lower_case": None},
        {"tokenizer_class": "TokenizerOfTheirOwn", "do_lower_case": False},
    ],
)
def test_letters_are_read_as_transformers_reads_them(of_letters: Path, fields: dict[str, Any], tmp_path: Path) -> None:
    """Its classes for BERT's tokenizers take their options, or defaults, and not what tokenizer.json says."""
    configure(of_letters, **fields)
    theirs, tokenizer = AutoTokenizer.from_pretrained(of_letters), load_tokenizer(of_letters)
    expected = theirs(LETTERS)["input_ids"]
    assert [tokenizer.encode(text).ids for text in LETTERS] == expected
    save_checkpoint(AutoModelForSequenceClassification.from_pretrained(of_letters), tokenizer, tmp_path / "saved")
    stored = Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    assert [stored.encode(text).ids for text in LETTERS] == expected, "the file alone says it, as in a bundle"
    assert AutoTokenizer.from_pretrained(tmp_path / "saved")(LETTERS)["input_ids"] == expected


def test_keys_tell_how_letters_are_read(of_letters: Path) -> None:
    lowers = Tokenizer.from_file(str(of_letters / "tokenizer.json")).normalizer.lowercase
    keys = []
    for option in (lowers, not lowers):
        configure(of_letters, do_lower_case=option)
        keys.append(resolve_teacher(str(of_letters)).identity)
    assert "letters" not in keys[0]
    assert keys[1].startswith(f"{keys[0]} letters as ")


def test_without_a_class_or_an_option_the_tokenizers_own_file_counts(of_letters: Path) -> None:
    configure(of_letters, tokenizer_class=None, do_lower_case=None)
    stored = Tokenizer.from_file(str(of_letters / "tokenizer.json"))
    assert load_tokenizer(of_letters).to_str() == stored.to_str()


def test_an_option_that_is_no_flag_is_refused(of_letters: Path) -> None:
    configure(of_letters, do_lower_case="yes")
    with pytest.raises(
        CompressError, match=r"tokenizer_config\.json: do_lower_case: expected true or false; found 'yes'"
    ):
        load_tokenizer(of_letters)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    "fields",
    [
        {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True},
        {"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": False},
        {"tokenizer_class": "RobertaTokenizer"},
        {"tokenizer_class": None, "add_prefix_space": True},
        {"add_prefix_space": True},
    ],
)
def test_a_space_before_a_text_is_read_as_transformers_reads_it(
    stored: bool, fields: dict[str, Any], tmp_path: Path
) -> None:
    """RoBERTa's own class goes by its option, or default; the last case has the general class, which goes by the file."""
    document = json.loads(tokenizer_of("roberta").to_str())
    document["pre_tokenizer"]["add_prefix_space"] = stored
    tokenizer = Tokenizer.from_str(json.dumps(document))
    folder = tmp_path / "roberta"
    words = max(tokenizer.get_vocab().values()) + 1
    save_checkpoint(classifier_of("roberta", vocab_size=words), tokenizer, folder)
    configure(folder, **fields)
    theirs, ours = AutoTokenizer.from_pretrained(folder), load_tokenizer(folder)
    expected = theirs(["film a", " film"])["input_ids"]
    assert [ours.encode(text).ids for text in ("film a", " film")] == expected
    same = ours.to_str() == tokenizer.to_str()
    assert ("beginnings" in resolve_teacher(str(folder)).identity) is not same
    save_checkpoint(AutoModelForSequenceClassification.from_pretrained(folder), ours, tmp_path / "saved")
    assert AutoTokenizer.from_pretrained(tmp_path / "saved")(["film a", " film"])["input_ids"] == expected
