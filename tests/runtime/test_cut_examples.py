"""Texts that are longer than a model reads: opened models count them, and `compress predict` says how many there were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from embedder_toys import averages
from predict_runs import predict
from runtime_toys import bag, describe
from tokenizer_toys import TOKENIZERS
from tokenizers import Tokenizer

from compress.runtime import Chooser, Classifier, Embedder, cutting
from compress.runtime.cutting import Cutter, cut_flags

WHOLE, LONG = " ".join("a" * 22), " ".join("a" * 23)  # models here read 24 tokens, of which two are special


def counts(model: Classifier | Chooser | Embedder) -> tuple[int, int]:
    return model.examples_cut, model.examples_read


def test_a_classifier_counts_texts_that_it_cuts(folder: Path) -> None:
    model = Classifier(folder)
    model.predict([WHOLE, LONG, "a", LONG * 200])
    assert counts(model) == (2, 4)
    model.logits([LONG])
    assert counts(model) == (3, 5)


def test_a_pair_is_cut_if_both_texts_together_are_too_long(folder: Path) -> None:
    describe(folder, text_columns=["one", "other"])
    model = Classifier(folder)
    half = " ".join("a" * 11)
    model.predict([(half, half), (half, " ".join("a" * 10)), (LONG * 200, LONG * 200), (LONG, "")])
    assert counts(model) == (3, 4)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", list(TOKENIZERS))
def test_long_pairs_are_known_to_be_cut(name: str, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own: Tokenizer = TOKENIZERS[name]()
    own.no_truncation()
    texts = [("good film " * size, "bad " * other) for size in (1, 4, 9) for other in (1, 5, 40)]
    lengths = [len(own.encode(*pair)) for pair in texts]
    own.enable_truncation(24, strategy="longest_first", direction=side)
    for characters in (cutting.LONG, 1):
        monkeypatch.setattr(cutting, "LONG", characters)
        assert cut_flags(Cutter(own).encode(texts)) == [length > 24 for length in lengths]


def test_an_embedder_counts_pairs_once(tmp_path: Path) -> None:
    model = Embedder(averages(tmp_path / "averages"))
    long = "a " * 10_000
    list(model.answers(["a", (long, long), ("a", long), ("a", "b"), long]))
    assert counts(model) == (3, 5)
    model.embed([long, "a"])
    assert counts(model) == (4, 7)


def test_a_chooser_counts_questions(tmp_path: Path) -> None:
    folder = bag(tmp_path / "chooser", logits_bias=(0.0,))
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertForMultipleChoice"]}
    (folder / "config.json").write_text(json.dumps(config))
    model = Chooser(folder)
    model.predict([("a", ["b", "c"]), (LONG, ["b", "c"]), ("a", [LONG, "b", "c"]), ("a", ["b", "c", "d"])])
    assert counts(model) == (2, 4)


def test_predict_says_how_many_texts_were_cut(folder: Path, tmp_path: Path) -> None:
    many = "2 of 3 texts have more than 24 tokens; the rest of each was not read\n"
    done = predict(folder, lines=f"{LONG}\n{WHOLE}\n{LONG}\n")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, many, 3)
    done = predict(folder, "--json", LONG)
    assert done.stderr == "1 of 1 text has more than 24 tokens; the rest was not read\n"
    assert json.loads(done.stdout)["text"] == LONG
    (tmp_path / "in.csv").write_text(f"text\n{LONG}\n{WHOLE}\n{LONG}\n")
    for output in ((), ("--output", tmp_path / "out.csv")):
        assert predict(folder, "--input", tmp_path / "in.csv", *output).stderr == many
    assert predict(folder, WHOLE).stderr == ""


def test_predict_calls_pairs_and_examples_what_they_are(folder: Path, tmp_path: Path) -> None:
    describe(folder, text_columns=["one", "other"])
    assert predict(folder, lines=f"{LONG}\ta\na\tb\n").stderr.startswith("1 of 2 pairs has more than 24 tokens")
    (tmp_path / "in.txt").write_text(f"{'a ' * 10_000}\na\n")
    embedder = averages(tmp_path / "averages")
    done = predict(embedder, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.npy")
    assert (done.returncode, done.stderr.startswith("1 of 2 examples has more than ")) == (0, True)
