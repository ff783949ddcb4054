"""Small GLUE folders written by hand, and the real ones if available."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

PARSES = "sentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
MNLI = f"index\tpromptID\tpairID\tgenre\t{PARSES}\tsentence1\tsentence2\tlabel1\t"
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
# A lone quote, a no-break space, other line separators, a carriage return and a byte order mark: all are text.
ODD = ['"He left', "a\u00a0b\u2028c\u0085d", "form\x0cfeed\x1cgroup", "mid\rreturn", "bom\ufeffhere", "''quoted''"]
AGAIN = " again"


def _lines(header: str, row: Callable[[int, str], str]) -> str:
    return header + "".join(f"{row(i, text)}\n" for i, text in enumerate(ODD))


def _nli(i: int) -> str:
    return ("entailment", "neutral", "contradiction")[i % 3]


def _two(i: int) -> str:
    return ("entailment", "not_entailment")[i % 2]


LAYOUTS: dict[str, dict[str, str]] = {
    "CoLA": {"*": _lines("", lambda i, t: f"gj04\t{i % 2}\t*\t{t}")},
    "SST-2": {"*": _lines("sentence\tlabel\n", lambda i, t: f"{t}\t{i % 2}")},
    "MRPC": {
        "*": _lines("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", lambda i, t: f"{i % 2}\t7\t8\t{t}\tb {i}")
    },
    "QQP": {
        "*": _lines(
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", lambda i, t: f"{i}\t1\t2\t{t}\tb {i}\t{i % 2}"
        )
    },
    "STS-B": {"*": _lines(STSB, lambda i, t: f"{i}\tg\tf\t2012\t1\tn\tn\t{t}\tb {i}\t{i * 0.75:.3f}")},
    "MNLI": {
        "train": _lines(MNLI + "gold_label\n", lambda i, t: f"{i}\t\t\t\t\t\t\t\t{t}\tb {i}\tx\t{_nli(i)}"),
        "*": _lines(
            MNLI + "label2\tlabel3\tlabel4\tlabel5\tgold_label\n",
            lambda i, t: f"{i}\t\t\t\t\t\t\t\t{t}\tb {i}\tx\tx\tx\tx\tx\t{_nli(i)}",
        ),
    },
    "QNLI": {"*": _lines("index\tquestion\tsentence\tlabel\n", lambda i, t: f"{i}\t{t}\tb {i}\t{_two(i)}")},
    "RTE": {"*": _lines("index\tsentence1\tsentence2\tlabel\n", lambda i, t: f"{i}\t{t}\tb {i}\t{_two(i)}")},
    "WNLI": {"*": _lines("index\tsentence1\tsentence2\tlabel\n", lambda i, t: f"{i}\t{t}\tb {i}\t{i % 2}")},
}


@pytest.fixture
def odd() -> list[str]:
    """The texts of every split of `glue`, in order."""
    return list(ODD)


@pytest.fixture
def glue(tmp_path: Path) -> Path:
    """A data directory with all nine tasks, with six odd rows in every file; texts of dev end in `AGAIN`."""
    for folder, contents in LAYOUTS.items():
        (tmp_path / folder).mkdir()
        devs = ["dev_matched", "dev_mismatched"] if folder == "MNLI" else ["dev"]
        for split in ["train", *devs]:
            text = contents.get(split, contents["*"])
            for odd in ODD if split != "train" else ():
                text = text.replace(odd, odd + AGAIN)
            (tmp_path / folder / f"{split}.tsv").write_bytes(text.encode())
    return tmp_path


@pytest.fixture(scope="session")
def real_glue() -> Path:
    """The official files; tests that use it are marked `shared`."""
    path = Path(os.environ.get("COMPRESS_GLUE_DIR", Path(__file__).parents[3] / "shared" / "glue"))
    if not path.is_dir():
        pytest.skip("no GLUE files: set COMPRESS_GLUE_DIR")
    return path


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with valid files of a two-class task, train.csv and dev.csv, 20 rows each."""
    for split, word in (("train", "number"), ("dev", "dev")):
        rows = "".join(f"words {word} {i},{'pos' if i % 2 else 'neg'}\n" for i in range(20))
        (tmp_path / f"{split}.csv").write_text(f"text,label\n{rows}")
    return tmp_path
