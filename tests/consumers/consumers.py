"""A bundle in the libraries that open one, each in an environment of its own: the same texts, and logits against ours.

    make test-consumers

It installs from the registries; a consumer that cannot be installed is skipped with the reason. The environments stay in
`.venv/consumers`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import tokenizers
from browser import chromium, tab
from consumer_bundles import PAIR_TASK, VECTOR_TASK, WORD_TASK, shipped
from consumer_environments import node_with, python_with
from file_server import served
from recipe_runs import TASK

from compress.runtime import Classifier, Embedder, Tagger

PROGRAMS = Path(__file__).with_name("programs")
ONNXRUNTIMES = ("1.17.3", "1.20.1", "1.22.1", "1.24.4", "")
FILES = {"model.onnx": "fp32", "model_quantized.onnx": "int8", "model_qdq.onnx": "qdq"}
WORDS = ("good", "bad", "film", "the", "is", "not", "a", "dull", "start", "and", "fine", "end")
TEXTS = [" ".join(WORDS[(start + step * each) % len(WORDS)] for each in range(1 + start % 9)) for start, step in
         ((number, 1 + number % 5) for number in range(20))]  # fmt: skip
PAIRS = [[" ".join(WORDS[(start + 5 * each) % len(WORDS)] for each in range(count)) for start, count in enumerate(counts)]
         for counts in ((40, 30), (30, 45), (40, 4), (4, 40), (15, 14))]  # fmt: skip
# Of the range of the logits: fp32 sums in another order; quantized values that rounding tips; OpenVINO's own int8 matmuls.
FP32, INT8, OPENVINO_INT8 = 1e-5, 2e-3, 2e-2
RUN_SECONDS = 300.0

Logits = np.ndarray


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained until its answers differ by text."""
    return shipped(tmp_path_factory.mktemp("world"), TASK, steps=300)


@pytest.fixture(scope="session")
def pair_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained so little that every token counts."""
    return shipped(tmp_path_factory.mktemp("pairs"), PAIR_TASK, steps=100)


@pytest.fixture(scope="session")
def word_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It labels words: each third word of the list is the beginning of an entity, those after it are inside."""
    world = tmp_path_factory.mktemp("words")
    tags: dict[str, str] = dict(zip(WORDS, ("B-ONE", "O", "B-TWO", "I-TWO") * 3, strict=True))
    rng = np.random.default_rng(0)
    train = [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(300)]
    for name, texts in (("train", train), ("dev", TEXTS)):
        lines = ("".join(f"{word} {tags[word]}\n" for word in text.split(" ")) for text in texts)
        (world / f"{name}.conll").write_text("\n".join(lines), encoding="utf-8")
    return shipped(world, WORD_TASK, steps=150)


@pytest.fixture(scope="session")
def vector_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of random weights: its vectors differ by text all the same."""
    return shipped(tmp_path_factory.mktemp("vectors"), VECTOR_TASK, steps=None)


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "texts.json"
    path.write_text(json.dumps(TEXTS), encoding="utf-8")
    return path


def answers(command: list[str], cwd: Path) -> Logits:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=RUN_SECONDS, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return np.array(json.loads(done.stdout.splitlines()[-1]), np.float32)


def ours(bundle: Path, file: str) -> Logits:
    return np.asarray(Classifier(bundle, precision=FILES[file], threads=1).logits(TEXTS, batch_size=1))


def check(found: Logits, expected: Logits, share: float) -> None:
    spread = float(np.ptp(expected, axis=0).max())
    assert spread > 1, "answers that are nearly the same for every text would agree with anything"
    assert found.shape == expected.shape
    difference = np.abs(found - expected).max()
    print(f"largest difference of a logit: {difference:.1g}")  # `-rP` shows it: the table of docs/bundle.md
    assert difference <= share * spread


def share_of(file: str) -> float:
    return FP32 if file == "model.onnx" else INT8


@pytest.fixture
def run_python(bundle: Path, texts: Path, tmp_path: Path) -> Callable[..., None]:
    def run(python: Path, program: str, file: str, share: float | None = None) -> None:
        command = [str(python), str(PROGRAMS / program), str(bundle), str(texts), file]
        check(answers(command, tmp_path), ours(bundle, file), share_of(file) if share is None else share)

    return run


def test_the_texts_are_twenty_different_ones() -> None:
    assert len(set(TEXTS)) == 20


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("version", ONNXRUNTIMES, ids=lambda version: version or "latest")
def test_onnxruntime(version: str, file: str, run_python: Callable[..., None]) -> None:
    numpy = "numpy<2" if version.startswith("1.17.") else "numpy"  # built against the first
    python = python_with(f"onnxruntime=={version}" if version else "onnxruntime", numpy, "tokenizers")
    run_python(python, "onnxruntime_alone.py", file)


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, run_python: Callable[..., None]) -> None:
    run_python(python_with("optimum-onnx[onnxruntime]"), "optimum_onnx.py", file)


@pytest.mark.parametrize("file", FILES)
def test_cross_encoder(file: str, run_python: Callable[..., None]) -> None:
    run_python(python_with("sentence-transformers[onnx]"), "cross_encoder.py", file)


@pytest.mark.parametrize("file", FILES)
def test_openvino(file: str, run_python: Callable[..., None]) -> None:
    share = FP32 if file == "model.onnx" else OPENVINO_INT8
    run_python(python_with("openvino", "tokenizers", "numpy"), "openvino_alone.py", file, share)


@pytest.mark.parametrize("file", ["model.onnx", "model_qdq.onnx"])
def test_tract(file: str, run_python: Callable[..., None]) -> None:
    """It has none of the operators of ONNX Runtime's own int8 file."""
    run_python(python_with("tract", "tokenizers", "numpy"), "tract_alone.py", file)


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx", "default"])
@pytest.mark.parametrize("version", ["3", "4"])
def test_transformers_js(version: str, file: str, bundle: Path, texts: Path) -> None:
    """In Node. The default is int8, as config.json says."""
    folder = node_with(f"@huggingface/transformers@{version}")
    program = shutil.copy(PROGRAMS / "transformers_js.mjs", folder)
    found = answers(["node", str(program), str(bundle), str(texts), file], folder)
    opened = "model_quantized.onnx" if file == "default" else file
    if file == "default":
        assert not np.array_equal(found, answers(["node", str(program), str(bundle), str(texts), "model.onnx"], folder))
    check(found, ours(bundle, opened), share_of(opened))


def words_as_ours(found: Logits, bundle: Path, file: str) -> None:
    expected = Tagger(bundle, precision=FILES[file], threads=1).logits(TEXTS, batch_size=1)
    assert len(expected) == sum(len(text.split(" ")) for text in TEXTS)
    check(found, expected, share_of(file))


@pytest.mark.parametrize("file", FILES)
def test_optimum_labels_words(file: str, word_bundle: Path, texts: Path, tmp_path: Path) -> None:
    python = python_with("optimum-onnx[onnxruntime]")
    command = [str(python), str(PROGRAMS / "optimum_onnx_words.py"), str(word_bundle), str(texts), file]
    words_as_ours(answers(command, tmp_path), word_bundle, file)


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx"])
@pytest.mark.parametrize("version", ["3", "4"])
def test_transformers_js_labels_words(version: str, file: str, word_bundle: Path, texts: Path) -> None:
    folder = node_with(f"@huggingface/transformers@{version}")
    program = shutil.copy(PROGRAMS / "transformers_js_words.mjs", folder)
    found = answers(["node", str(program), str(word_bundle), str(texts), file], folder)
    words_as_ours(found, word_bundle, file)


def vectors_as_ours(found: Logits, bundle: Path, file: str) -> None:
    expected = Embedder(bundle, precision=FILES[file], threads=1).embed(TEXTS, batch_size=1)
    spread = float(np.ptp(expected, axis=0).max())
    assert spread > 0.2, "vectors that are nearly the same for every text would agree with anything"
    difference = np.abs(found - expected).max()
    print(f"largest difference of a number of a vector: {difference:.1g}")
    assert found.shape == expected.shape
    assert difference <= share_of(file) * spread


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("requirement", "program"),
    [("sentence-transformers[onnx]", "sentence_encoder.py"), ("fastembed", "fastembed_custom.py")],
)
def test_sentence_encoders(
    requirement: str, program: str, file: str, vector_bundle: Path, texts: Path, tmp_path: Path
) -> None:
    command = [str(python_with(requirement)), str(PROGRAMS / program), str(vector_bundle), str(texts), file]
    vectors_as_ours(answers(command, tmp_path), vector_bundle, file)


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx"])
@pytest.mark.parametrize("version", ["3", "4"])
def test_transformers_js_gives_vectors(version: str, file: str, vector_bundle: Path, texts: Path) -> None:
    """Of texts that fit: it cuts longer ones without their closing separator."""
    folder = node_with(f"@huggingface/transformers@{version}")
    program = shutil.copy(PROGRAMS / "transformers_js_vectors.mjs", folder)
    vectors_as_ours(answers(["node", str(program), str(vector_bundle), str(texts), file], folder), vector_bundle, file)


def cut_joined(bundle: Path) -> Logits:
    """The logits of `PAIRS` where what is cut is the end of both texts together, the closing separator too."""
    limit = int(json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["max_length"])
    tokenizer = tokenizers.Tokenizer.from_file(str(bundle / "tokenizer.json"))
    tokenizer.no_truncation()
    session = onnxruntime.InferenceSession(bundle / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    rows = []
    for first, second in PAIRS:
        encoded = tokenizer.encode(first, second)
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {value.name: np.array([columns[value.name][:limit]], np.int64) for value in session.get_inputs()}
        rows.append(np.asarray(session.run(["logits"], feed)[0])[0])
    return np.array(rows, np.float32)


def check_cut(found: Logits, bundle: Path, *, joined: bool) -> None:
    """Whether long pairs were cut in one way and not in the other: `joined`, or the longer text first, as by us."""
    longest = np.asarray(Classifier(bundle, precision="fp32", threads=1).logits([(one, two) for one, two in PAIRS]))
    other, same = (longest, cut_joined(bundle)) if joined else (cut_joined(bundle), longest)
    far, near = (np.abs(found - logits).max(axis=1) for logits in (other, same))
    print(f"difference of a logit: at most {near.max():.1g}; cut otherwise at least {far.min():.1g}")
    assert near.max() < 1e-6 < far.min() / 20


@pytest.mark.parametrize(
    ("requirement", "program"),
    [("optimum-onnx[onnxruntime]", "optimum_onnx.py"), ("sentence-transformers[onnx]", "cross_encoder.py")],
)
def test_long_pairs_are_cut_as_ours(requirement: str, program: str, pair_bundle: Path, tmp_path: Path) -> None:
    python = python_with(requirement)
    (tmp_path / "pairs.json").write_text(json.dumps(PAIRS), encoding="utf-8")
    command = [str(python), str(PROGRAMS / program), str(pair_bundle), "pairs.json", "model.onnx"]
    check_cut(answers(command, tmp_path), pair_bundle, joined=False)


@pytest.mark.parametrize("version", ["3", "4"])
def test_transformers_js_cuts_the_end_of_both_texts_together(version: str, pair_bundle: Path) -> None:
    folder = node_with(f"@huggingface/transformers@{version}")
    program = shutil.copy(PROGRAMS / "transformers_js.mjs", folder)
    (folder / "pairs.json").write_text(json.dumps(PAIRS), encoding="utf-8")
    command = ["node", str(program), str(pair_bundle), "pairs.json", "model.onnx"]
    check_cut(answers(command, folder), pair_bundle, joined=True)


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx", "default"])
@pytest.mark.parametrize("version", ["3", "4"])
def test_transformers_js_in_a_browser(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    place = tmp_path / "served"
    (place / "models").mkdir(parents=True)
    (place / "js").symlink_to(node_with(f"@huggingface/transformers@{version}") / "node_modules")
    (place / "models" / "bundle").symlink_to(bundle)
    shutil.copy(PROGRAMS / "transformers_js_web.mjs", place)
    (place / "page.html").write_text("<!doctype html><title>Logits</title>", encoding="utf-8")
    with served(place) as address, tab(program, tmp_path / "profile") as page:
        page.open(f"{address}/page.html")
        call = f"program.answers({json.dumps(TEXTS)}, {json.dumps(file)})"
        found = page.run(f"import('/transformers_js_web.mjs').then(program => {call})")
        assert all(url.startswith((address, "blob:", "data:")) for url in page.requests())
    opened = "model_quantized.onnx" if file == "default" else file
    check(np.array(json.loads(found), np.float32), ours(bundle, opened), share_of(opened))
