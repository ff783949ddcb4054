"""The embedded tasks and their vocabulary: the same on every machine, with correct labels."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from whole import TaskData, load_task

from compress.errors import CompressError
from compress.spec.task import Synthetic
from compress.tasks import BUILTIN_TASKS, encode, fingerprint, wordpiece
from compress.tasks.synthetic import GENERATORS, generate
from compress.tasks.synthetic.entailment import Fact, relation

TOYS = [name for name, spec in BUILTIN_TASKS.items() if spec.synthetic]
DIGEST = """
import hashlib, json
from compress.tasks import BUILTIN_TASKS, wordpiece
from compress.tasks.synthetic import generate
data = [generate(spec.synthetic) for spec in BUILTIN_TASKS.values() if spec.synthetic]
print(hashlib.sha256(json.dumps(data).encode()).hexdigest(), hashlib.sha256(wordpiece(400).to_str().encode()).hexdigest())
"""


@pytest.fixture(scope="module", params=TOYS)
def data(request: pytest.FixtureRequest) -> TaskData:
    return load_task(BUILTIN_TASKS[request.param], None, None)


def sentences(*columns: list[str]) -> set[str]:
    return {text for column in columns for text in column}


def test_sizes_and_shape(data: TaskData) -> None:
    assert len(data.train) + len(data.tuning) == 6000
    assert {name: len(split) for name, split in data.reported.items()} == {"dev": 1000}
    assert data.source == "synthetic" and data.notes == ()


def test_dev_shares_no_sentence_with_train(data: TaskData) -> None:
    """Not even one side of a pair."""
    known = sentences(*data.train.texts, *data.tuning.texts)
    assert known.isdisjoint(sentences(*data.reported["dev"].texts))


def test_labels_are_balanced_and_scores_cover_the_range(data: TaskData) -> None:
    labels = data.reported["dev"].labels
    if data.labels:
        assert np.bincount(labels).max() / len(labels) < 1.2 / len(data.labels)
    else:
        assert labels.min() >= 0 and labels.max() <= 5
        assert np.histogram(labels, bins=5, range=(0, 5))[0].min() > 20


def test_sentences_are_short_and_words_are_whole(data: TaskData) -> None:
    tokenizer = wordpiece(2000)
    assert tokenizer.get_vocab_size() <= 2000
    for column in data.train.texts:
        encodings = tokenizer.encode_batch(column)
        assert max(len(encoding.ids) for encoding in encodings) <= 24
        assert not any(token.startswith("##") for encoding in encodings for token in encoding.tokens)
    lengths = encode(tokenizer, data.train, 512).lengths
    assert lengths.max() <= data.spec.max_length  # nothing is cut


def test_dev_has_no_unknown_word(data: TaskData) -> None:
    tokenizer = wordpiece(2000)
    unknown = tokenizer.token_to_id("[UNK]")
    assert not any(unknown in ids for ids in encode(tokenizer, data.reported["dev"], 512).input_ids)


@pytest.mark.parametrize(
    ("premise", "hypothesis", "expected"),
    [
        (("some", "poodle", "sprints", "in the park"), ("some", "dog", "runs", ""), "entailment"),
        (("some", "dog", "runs", ""), ("some", "poodle", "runs", ""), "neutral"),
        (("no", "dog", "runs", ""), ("no", "poodle", "sprints", "in the park"), "entailment"),
        (("no", "poodle", "runs", ""), ("no", "dog", "runs", ""), "neutral"),
        (("some", "poodle", "sprints", ""), ("no", "dog", "runs", ""), "contradiction"),
        (("no", "dog", "runs", ""), ("some", "poodle", "runs", "in the park"), "contradiction"),
        (("no", "poodle", "runs", ""), ("some", "dog", "runs", ""), "neutral"),
        (("some", "dog", "runs", "in the park"), ("no", "dog", "runs", "on the beach"), "neutral"),
    ],
)
def test_entailment_follows_hierarchies_and_quantifiers(
    premise: tuple[str, str, str, str], hypothesis: tuple[str, str, str, str], expected: str
) -> None:
    assert relation(Fact(*premise), Fact(*hypothesis)) == expected


def test_another_seed_gives_other_examples_and_another_fingerprint() -> None:
    spec = BUILTIN_TASKS["toy-sentiment"]
    own = Synthetic(generator="sentiment", seed=1)
    other = spec.model_copy(update={"synthetic": own})
    assert fingerprint(spec, None, None) != fingerprint(other, None, None)
    first, second = (generate(s)["train"] for s in (Synthetic(generator="sentiment"), own))
    assert len(set(first) & set(second)) < 0.5 * len(first)


def test_more_than_can_be_said_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GENERATORS, "sentiment", lambda draw: (f"only {draw.below(7)}", "positive"))
    with pytest.raises(CompressError, match="expected 8 different examples, the generator found 7"):
        generate(Synthetic(generator="sentiment", train=8, dev=1))
    with pytest.raises(CompressError, match="expected 2 different examples, the generator found 1"):
        generate(Synthetic(generator="sentiment", train=6, dev=2))


@pytest.mark.slow
def test_the_same_in_every_process_whatever_the_hash_seed() -> None:
    """Compared with a second process with another hash seed (0 switches Python's hash randomization off)."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", DIGEST], capture_output=True, text=True, env=environment, check=True)
    splits = [generate(BUILTIN_TASKS[name].synthetic) for name in TOYS]  # type: ignore[arg-type]
    here = hashlib.sha256(json.dumps(splits).encode()).hexdigest()
    tokenizer = hashlib.sha256(wordpiece(400).to_str().encode()).hexdigest()
    assert done.stdout.split() == [here, tokenizer]


def test_wordpiece_is_a_bert_tokenizer() -> None:
    tokenizer = wordpiece(300)
    assert [tokenizer.token_to_id(t) for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == list(range(5))
    pair = tokenizer.encode("The MOVIE", "was good")
    assert pair.tokens[0] == "[CLS]" and pair.tokens.count("[SEP]") == 2 and pair.tokens[-1] == "[SEP]"
    assert pair.type_ids == sorted(pair.type_ids) and set(pair.type_ids) == {0, 1}
    assert tokenizer.encode("the movie").ids == tokenizer.encode("The MOVIE").ids
    assert tokenizer.get_vocab_size() <= 300
    assert sorted(tokenizer.get_vocab().values()) == list(range(tokenizer.get_vocab_size()))


def test_a_vocabulary_without_room_for_the_letters_is_refused() -> None:
    with pytest.raises(CompressError, match=r"vocabulary: expected at least \d+, for 5 special tokens .*; found 20"):
        wordpiece(20)
