"""Tagger: the logits, words and entities of transformers, for each aggregation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from runtime_toys import WORDS, tokenizer_file
from tagger_toys import LABELS

from compress.runtime import Tagger
from compress.runtime.kinds.classification import softmax
from compress.runtime.tagger import Aggregation


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A BertForTokenClassification as a folder, and the model itself."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    from compress.export.fast import build_fast
    from compress.graphs.model_files import write_model

    torch.manual_seed(0)
    folder, names = tmp_path_factory.mktemp("exported"), {number: str(name) for number, name in enumerate(LABELS)}
    size: dict[str, Any] = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    size |= {"intermediate_size": 64, "max_position_embeddings": 24, "initializer_range": 0.5}
    config = BertConfig(**size, id2label=names, label2id={name: i for i, name in names.items()})
    model = BertForTokenClassification(config).eval()
    model.save_pretrained(folder)
    graph = build_fast(model, kind="tagging")
    assert graph is not None
    write_model(graph, folder / "model.onnx")
    tokenizer_file(folder / "tokenizer.json")
    return folder, model


def test_the_same_logits_as_transformers_and_torch(exported: tuple[Path, Any]) -> None:
    """Compares each word's first token, in texts that fit: fp32 on both sides, with another order of summation."""
    import torch
    from transformers import BertTokenizer

    folder, model = exported
    texts = [" ".join(WORDS[: i % 7]) for i in range(20)]
    split = [text.split() for text in texts]
    inputs = BertTokenizer.from_pretrained(folder)(split, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = model(**inputs).logits.numpy()
    expected = np.array(
        [logits[row, inputs.word_ids(row).index(word)] for row, words in enumerate(split) for word in range(len(words))]
    )
    tagger = Tagger(folder, threads=1)
    for options in ({}, {"batch_size": 1}, {"batch_size": 3}, {"tokens": 30}):
        np.testing.assert_allclose(tagger.logits(texts, **options), expected, atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(tagger.logits(split), expected, atol=1e-4, rtol=1e-4)
    assert len(set(expected.argmax(axis=1))) > 1, "the words must not all get the same answer"


def test_entities_are_those_of_transformers_pipeline(exported: tuple[Path, Any]) -> None:
    """For each of its aggregation strategies, and token by token. Its words end at spaces."""
    from transformers import BertTokenizer, pipeline

    folder, model = exported
    ask = pipeline("token-classification", model=model, tokenizer=BertTokenizer.from_pretrained(folder), device="cpu")
    tagger = Tagger(folder, threads=1)
    several, decided = 0, set()
    for text in (" ".join(WORDS[i : i + 6]).replace(",", "so") for i in range(9)):
        for strategy in get_args(Aggregation):
            expected: Any = ask(text, aggregation_strategy=strategy)
            if strategy == "none":  # every token; the first of each word is compared
                expected = [one for one in expected if not one["word"].startswith("##")]
            (entities,) = tagger.tag(text, aggregation=strategy)
            assert tagger.predict(text, aggregation=strategy) == [entities]
            decided.add((strategy, tuple((one.label, one.start) for one in entities)))
            name = "entity" if strategy == "none" else "entity_group"
            assert [(one.label, one.start) for one in entities] == [(one[name], one["start"]) for one in expected]
            np.testing.assert_allclose([one.score for one in entities], [one["score"] for one in expected], rtol=1e-3)
            several += sum(" " in one.text for one in entities)
    assert several > 3
    first, average, largest = (
        {answers for each, answers in decided if each == name} for name in ("first", "average", "max")
    )
    assert first != average and first != largest, "the other tokens must matter"


HOSTILE = [
    ["Café", "cafe\u0301", "ÀÉÎ", "Straße", "until"],
    ["a\u00adb", "\u200d", "e\u0301\u0301", "so", "\u0301", "text"],
    ["雨が降る", "ветер", "x,y", "[SEP]", "i\u0307t"],
    ["\U0001f600", "words\ufe0f", "\ud55c\uae00", "\u1112\u1161\u11ab", "\ufb01t"],
    ["a\u00a0b", "(some)", "\u202eit\u202c", "more\u0000", "\u0e01\u0e33"],
]


@pytest.mark.parametrize("strategy", ["first", "average", "max"])
def test_hostile_words_are_decided_as_transformers_decides_their_tokens(
    exported: tuple[Path, Any], strategy: Any
) -> None:
    """Applies its rule for a word to the tokens that its tokenizer assigns to each word of a list."""
    import torch
    from transformers import BertTokenizer, pipeline
    from transformers.pipelines.token_classification import AggregationStrategy

    folder, model = exported
    tokenizer = BertTokenizer.from_pretrained(folder)
    decide: Any = pipeline("token-classification", model=model, tokenizer=tokenizer, device="cpu")
    tagger, sizes = Tagger(folder, threads=1), []
    for words in HOSTILE:
        inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        assert inputs["input_ids"].shape[1] <= 24, "one window"
        with torch.inference_mode():
            scores = model(**inputs).logits[0].softmax(-1).numpy()
        names = inputs.tokens()
        (labelled,) = tagger.label_words([words], aggregation=strategy)
        for number, answer in enumerate(labelled.labels):
            own = [place for place, word in enumerate(inputs.word_ids()) if word == number]
            tokens = [{"scores": scores[place], "word": names[place], "start": 0, "end": 0} for place in own]
            sizes.append(len(own))
            if not own:
                assert answer.label == "O"
                continue
            expected = decide.aggregate_word(tokens, AggregationStrategy(strategy))
            assert answer.label == expected["entity"], (words[number], names)
            assert answer.score == pytest.approx(expected["score"], rel=1e-3)
    assert 0 in sizes and sum(size > 1 for size in sizes) > 5


def test_tokens_of_words_in_windows_are_decided_as_by_hand(exported: tuple[Path, Any]) -> None:
    """In a long text, a word gets the mean, or the most confident, of its tokens in the window that decides its first token."""
    folder, _ = exported
    tagger = Tagger(folder, threads=1)
    text = " ".join(WORDS[number % len(WORDS)] for number in range(60))
    spans = tagger.words(text)
    cut = tagger._windower([text], spans)
    assert len(cut.encodings) > 3 and (cut.places.last > cut.places.position).any()
    tokens = [softmax(logits[0]) for encoding in cut.encodings for _, logits in tagger._runs([encoding], None, None)]
    expected = {"average": [], "max": []}
    for window, first, last in zip(cut.places.window, cut.places.position, cut.places.last, strict=True):
        own = tokens[window][first : last + 1]
        expected["average"].append(own.mean(axis=0).max())
        expected["max"].append(own.max())
    for strategy, scores in expected.items():
        (labelled,) = tagger.label_words(text, aggregation=strategy)  # type: ignore[arg-type]
        np.testing.assert_allclose([one.score for one in labelled.labels], scores, rtol=1e-4)
