"""Custom vocabularies: deterministic, of the requested size, and readable by transformers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from corpus_toys import text, write_text
from default_suite import slow
from recipe_runs import compress
from transformers import AutoTokenizer

from compress.corpus import corpus_sources, train_vocabulary
from compress.corpus.vocabulary import Kind
from compress.errors import CompressError
from compress.tokenization.special import special_ids
from compress.tokenization.word_starts import continuing

KINDS = pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
SIZE = {"wordpiece": 70, "bpe": 300}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", [*text(60), ["Über die Ärzte, 100 % Größe 漢字 ."]])


def vocab(corpus: Path, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return compress("vocab", "--corpus", corpus, "-o", folder, *arguments, cwd=folder.parent)


@KINDS
def test_it_has_the_size_and_the_special_tokens_of_its_kind_and_any_text_goes_through(corpus: Path, kind):
    tokenizer = train_vocabulary(corpus_sources([str(corpus)]), kind=kind, size=SIZE[kind])
    assert tokenizer.get_vocab_size() == SIZE[kind]
    special = special_ids(tokenizer)
    assert None not in (special.pad, special.mask)
    assert [tokenizer.id_to_token(number) for number in special.every] == (
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        if kind == "wordpiece"
        else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    )
    line = "the very long story of two films 漢字 größe"
    again = tokenizer.decode(tokenizer.encode(line).ids)
    assert again.strip() == (line if kind == "bpe" else "the very long story of two films 漢 字 große")
    assert continuing(tokenizer).any()


@pytest.mark.parametrize("kind", ["wordpiece", *slow("bpe")])
def test_every_process_makes_the_same(corpus: Path, tmp_path: Path, kind: str):
    folders = [tmp_path / str(number) for number in range(2)]
    for folder in folders:  # not forked from one process, because all would then share its hash seed
        words = ["vocab", "--corpus", corpus, "--kind", kind, "--size", SIZE[kind], "-o", folder]
        command = [str(Path(sys.executable).with_name("compress")), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{folder}: {SIZE[kind]} tokens\n"
    first, second = ((folder / "tokenizer.json").read_bytes() for folder in folders)
    assert first == second


def test_text_of_more_letters_than_are_taken_keeps_the_size_and_is_the_same_each_time(tmp_path: Path):
    """Like Hangul or Chinese: 1,000 letters are used, each as a token at the start and inside of words."""
    letters = [chr(0xAC00 + number) for number in range(1400)]
    lines = ["".join(letters[start : start + 7]) for start in range(0, 1400, 7)] * 3
    sources = corpus_sources([str(write_text(tmp_path / "text.txt", [lines]))])
    first, second = (train_vocabulary(sources, kind="wordpiece", size=2030, lowercase=False) for _ in range(2))
    assert first.get_vocab_size() <= 2030
    assert first.get_vocab() == second.get_vocab()


@KINDS
def test_transformers_reads_the_folder_alike(corpus: Path, tmp_path: Path, kind: Kind):
    assert vocab(corpus, tmp_path / "words", "--kind", kind, "--size", SIZE[kind]).returncode == 0
    theirs = AutoTokenizer.from_pretrained(tmp_path / "words")
    ours = train_vocabulary(corpus_sources([str(corpus)]), kind=kind, size=SIZE[kind])
    assert theirs("the Film is not bad")["input_ids"] == ours.encode("the Film is not bad").ids
    assert theirs.mask_token_id == special_ids(ours).mask


def test_cased_keeps_case_and_accents(corpus: Path, tmp_path: Path):
    assert vocab(corpus, tmp_path / "words", "--size", 90, "--cased").returncode == 0
    theirs = AutoTokenizer.from_pretrained(tmp_path / "words")
    assert theirs.decode(theirs("Über")["input_ids"], skip_special_tokens=True) == "Über"


def test_a_text_with_fewer_words_says_so(corpus: Path, tmp_path: Path):
    done = vocab(corpus, tmp_path / "words", "--size", 20_000)
    assert done.returncode == 0
    assert "the text gives no more, of 20,000 allowed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--corpus", "nowhere.txt"), "nowhere.txt: no such file or folder"),
        (("--corpus", "{corpus}", "--size", 20), "the size of the vocabulary: expected at least"),
        (
            ("--corpus", "{corpus}", "--kind", "bpe", "--size", 200),
            "the size of the vocabulary: expected at least 261, for 5 special tokens and 256 bytes; found 200",
        ),
        (("--corpus", "{corpus}", "--kind", "bpe", "--cased"), "--cased: byte-level BPE always keeps upper case"),
        (("--corpus", "{corpus}", "--out", "{folder}"), "exists already; choose a new folder with --out"),
    ],
)
def test_what_cannot_be_is_told_in_a_line_and_nothing_is_written(corpus: Path, tmp_path: Path, arguments, message):
    options = [str(word).format(corpus=corpus, folder=corpus.parent) for word in arguments]
    done = compress("vocab", "--out", tmp_path / "words", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "words").exists()


def test_text_without_a_letter_is_refused(tmp_path: Path):
    (tmp_path / "blank.txt").write_text("\u200b\n")
    with pytest.raises(CompressError, match=r"blank\.txt: no word to make a vocabulary from"):
        train_vocabulary(corpus_sources([str(tmp_path / "blank.txt")]), kind="wordpiece", size=300)
