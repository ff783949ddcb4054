"""What users may name as a corpus, and a clear one-line error for anything else."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from corpus_toys import text, write_text

from compress.corpus import corpus_fingerprint, corpus_sources, files
from compress.corpus.sources import paragraphs
from compress.errors import CompressError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def noise(lines: int) -> bytes:
    """Return text that hardly compresses."""
    rng = np.random.default_rng(4)
    return "".join(f"{i} {rng.bytes(20).hex()}\n" for i in range(lines)).encode()


def read(*words: Path | str) -> list[str]:
    return list(paragraphs(corpus_sources([str(word) for word in words])))


def test_paragraphs_and_ends_of_documents_in_order(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\n two \n\n \nthree\u2028four\n".encode())
    assert read(tmp_path / "a.txt") == ["one", "two", "", "", "three\u2028four", ""]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_files_read_as_plain_ones_do(tmp_path: Path, suffix: str):
    plain = write_text(tmp_path / "a.txt", text(300))
    packed = tmp_path / f"a.txt{suffix}"
    raw = plain.read_bytes()
    half = len(raw) // 2
    packed.write_bytes(
        COMPRESS[suffix](raw[:half]) + COMPRESS[suffix](raw[half:])
    )  # two streams, like those of parallel tools
    assert read(packed) == read(plain)


def test_a_folders_text_files_are_taken_by_name_at_any_depth(tmp_path: Path):
    for name in ("b.txt", "a/z.txt", "a/README.md", ".hidden/c.txt", "a/.part.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    assert read(tmp_path) == ["a/z.txt", "", "b.txt", ""]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("left", [1.0, 0.5, 0.999])
def test_a_file_that_was_cut_short_says_so_in_one_line(tmp_path: Path, suffix: str, left: float):
    packed = COMPRESS[suffix](noise(3000))
    path = tmp_path / f"a{suffix}"
    path.write_bytes(packed[: int(len(packed) * left) - 1])
    with pytest.raises(CompressError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: the compressed file is truncated after line ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_file_that_is_damaged_or_not_compressed_says_so_in_one_line(tmp_path: Path, suffix: str):
    path = tmp_path / f"a{suffix}"
    path.write_text("plain text, but for its name\n" * 100)
    with pytest.raises(CompressError, match=rf"a\{suffix}: is damaged, or not compressed as its name says: [^\n]*$"):
        corpus_sources([str(path)])
    packed = bytearray(COMPRESS[suffix](noise(9000)))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
    path.write_bytes(packed)
    with pytest.raises(CompressError, match=r"damaged|UTF-8"):
        read(path)


def test_text_that_is_not_utf8_is_told_with_its_line(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"gut\n\n" + "schön\n".encode("latin-1"))
    with pytest.raises(CompressError, match=r"a\.txt:3: expected UTF-8 text, found byte 0xf6"):
        read(path)
    path.write_bytes(b"\xff\xfe" + "hello\n".encode("utf-16-le"))
    with pytest.raises(CompressError, match=r"a\.txt:1: expected UTF-8"):
        corpus_sources([str(path)])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nowhere.txt", r"nowhere\.txt: no such file or folder"),
        ("a.csv", r"a\.csv: expected a text file named \.txt, \.xz, \.gz or \.zst"),
        ("empty.txt", r"empty\.txt: holds no text"),
        ("blank.txt", r"blank\.txt: holds no text"),
        ("empty", r"empty: expected text files named \.txt.*, found none"),
        ("pipe.txt", r"pipe\.txt: expected a text file, found a pipe"),
        ("pipe.gz", r"pipe\.gz: expected a text file, found a pipe"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path: Path, word: str, message: str):
    (tmp_path / "a.csv").write_text("a\n")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "blank.txt").write_text("\n \n\n")
    (tmp_path / "empty").mkdir()
    for name in ("pipe.txt", "pipe.gz"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(CompressError, match=message):
        corpus_sources([str(tmp_path / word)])


def test_no_words_and_the_same_file_twice_are_refused(tmp_path: Path):
    with pytest.raises(CompressError, match="expected at least one text file"):
        corpus_sources([])
    path = write_text(tmp_path / "a.txt", text(1))
    with pytest.raises(CompressError, match=r"a\.txt: given twice"):
        corpus_sources([str(path), str(tmp_path)])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link.txt").symlink_to(path)
    with pytest.raises(CompressError, match=r"link\.txt: given twice"):
        corpus_sources([str(path), str(tmp_path / "b")])


def test_configurations_columns_and_commits_of_one_data_set_are_several():
    words = [
        f"hub:o/n/{config}@{commit * 40}:{column}" for config in "ab" for commit in "01" for column in ("text", "title")
    ]
    assert len(corpus_sources(words)) == 8
    with pytest.raises(CompressError, match="data set o/n: given twice"):
        corpus_sources([*words, words[3]])


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path):
    path = write_text(tmp_path / "a.txt", text(1))
    path.chmod(0)
    with pytest.raises(CompressError, match=r"a\.txt: cannot be read: Permission denied"):
        corpus_sources([str(path)])


@pytest.mark.parametrize("filler", ["word ", "äöü€", "語"])
def test_a_line_without_end_is_cut_between_words_or_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filler: str
):
    monkeypatch.setattr(files, "LONGEST", 100)
    line = "\ufeff" + filler * 200
    (tmp_path / "a.txt").write_text(f"{line}\nshort\n", encoding="utf-8")
    *pieces, short, end = read(tmp_path / "a.txt")
    assert (short, end) == ("short", "")
    assert max(len(piece.encode()) for piece in pieces) <= 100
    assert (" " if " " in filler else "").join(pieces) == line.removeprefix("\ufeff").strip()
    raw = (tmp_path / "a.txt").read_bytes()
    (tmp_path / "a.txt").write_bytes(raw + b"\n" + b"\x80" * 300)
    with pytest.raises(CompressError, match=r"a\.txt:4: expected UTF-8"):
        read(tmp_path / "a.txt")


def test_the_fingerprint_follows_contents_and_names_and_not_the_place(tmp_path: Path):
    def fingerprint(*words: Path) -> str:
        return corpus_fingerprint(corpus_sources([str(word) for word in words]))

    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    a, b = write_text(tmp_path / "x" / "a.txt", text(2)), write_text(tmp_path / "x" / "b.txt", text(2, seed=1))
    before = fingerprint(a, b)
    assert before == fingerprint(tmp_path / "x")
    assert before != fingerprint(b, a)
    assert before != fingerprint(a)
    moved = [path.rename(tmp_path / "y" / path.name) for path in (a, b)]
    assert before == fingerprint(*moved)
    moved[0].write_text(moved[0].read_text() + "more\n")
    assert before != fingerprint(*moved)
