"""Questions as windows of tokens: training targets, and the way back from tokens to answers."""

from __future__ import annotations

import numpy as np
import pytest
import tokenizers

from compress.errors import CompressError
from compress.metrics.answers import context_of, has_answer
from compress.tasks import EncodedSpans, Split, TaskBatches, collate, encode, of_words, wordpiece
from compress.tokenization.truncation import set_truncation_side

FILLER = "small town near the old river "
CONTEXTS = ("the old river", FILLER * 9 + "town river old " + FILLER, "", "near the town", "old " * 3)
ANSWERS = (
    [(4, 7), (8, 13)],
    [(len(FILLER) * 9, len(FILLER) * 9 + 10), (0, 5)],  # town river
    [],
    [(9, 13)],
    [(0, 3)],
)
QUESTIONS = ("river?", "the old town near", "small", "", "town " * 40)


@pytest.fixture(scope="module")
def tokenizer() -> tokenizers.Tokenizer:
    return wordpiece(300)


def split_of(rows: tuple[int, ...] = (0, 1, 2, 3, 4)) -> Split:
    labels = of_words([np.array(ANSWERS[row], np.int32).reshape(-1, 2) for row in rows])
    return Split(
        ([QUESTIONS[row] for row in rows], [CONTEXTS[row] for row in rows]),
        labels,
        unanswerable=not all(map(len, labels)),
    )


def encoded(tokenizer: tokenizers.Tokenizer, length: int = 32, rows: tuple[int, ...] = (0, 1, 2, 3, 4)) -> EncodedSpans:
    return spans_of(tokenizer, split_of(rows), length)


def spans_of(tokenizer: tokenizers.Tokenizer, split: Split, length: int) -> EncodedSpans:
    rows = encode(tokenizer, split, length)
    assert isinstance(rows, EncodedSpans)
    return rows


def certain(rows: EncodedSpans, windows: np.ndarray) -> np.ndarray:
    """Return [window, length, 2] of a model that has memorized every window; it is more confident in answers than in none."""
    batch = collate(rows, windows, 0)
    outputs = np.zeros((*batch["input_ids"].shape, 2), np.float32)
    sure = np.where(batch["labels"][:, 0] == 0, 1, 3)
    for side in (0, 1):
        outputs[np.arange(len(windows)), batch["labels"][:, side], side] = sure
    return outputs


def everything(rows: EncodedSpans, order: np.ndarray) -> np.ndarray:
    parts = ((part, certain(rows, part)) for part in np.array_split(order, min(3, len(order))))
    return rows.decided(rows.collected(parts), 0)


def test_a_model_that_has_learnt_the_targets_answers_rightly(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    assert len(rows) > len(CONTEXTS) and rows.impossible
    assert max(rows.lengths) <= 32
    outputs = everything(rows, np.arange(len(rows)))
    assert outputs.dtype == np.float32 and outputs.shape == (5, 6)
    assert outputs[:, :2].astype(int).tolist() == [list(answers[0]) if answers else [0, 0] for answers in ANSWERS]
    assert outputs[:, 4:].tolist() == [[1, 1]] * 5
    assert outputs[[0, 1, 3, 4], 2].tolist() == [6] * 4, "start and end of the best span"
    assert outputs[:, 3].tolist() == [0, 0, 2, 0, 0], "the smallest of [CLS] over the windows"
    assert np.array_equal(outputs, everything(rows, np.arange(len(rows))[::-1]))
    assert has_answer(rows.labels).tolist() == [True, True, False, True, True]
    assert context_of(rows.labels).tolist() == [0, 1, 2, 3, 4]


def test_without_unanswerable_questions_there_is_always_an_answer(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer, rows=(0, 3))
    assert not rows.impossible
    outputs = np.zeros((2, max(rows.lengths), 2), np.float32)
    outputs[:, 0] = 9  # of [CLS]
    decisions = rows.decided(rows.collected([(np.arange(2), outputs)]), 0)
    assert decisions[:, 3].tolist() == [-1e9, -1e9] and decisions[:, 1].all()
    assert decisions[0, :2].tolist() == [0, 3] and decisions[0, 4:].tolist() == [0, 0], "of equal spans the first: the"


def test_partial_answers_have_a_part_of_f1(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer, rows=(0,))
    _, end, _ = rows.cut.readable(0)
    outputs = np.zeros((1, end + 1, 2), np.float32)
    outputs[0, end - 3, 0] = outputs[0, end - 1, 1] = 5  # the old river; gold: old, or river
    decisions = rows.decided(rows.collected([(np.arange(1), outputs)]), 0)
    assert decisions[0].tolist() == [0, 13, 10, -1e9, 0, pytest.approx(2 / 3)]


def test_targets_are_in_windows_that_have_the_whole_answer(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    batch = collate(rows, np.arange(len(rows)), 0)
    assert batch["labels"].dtype == np.int64 and batch["labels"].shape == (len(rows), 2)
    assert batch["compared"].dtype == np.int64 and batch["compared"].shape == batch["input_ids"].shape
    assert (batch["compared"][:, 0] == 1).all(), "[CLS] stands for no answer"
    assert (batch["compared"] <= batch["attention_mask"]).all()
    for window, (first, last) in enumerate(batch["labels"].tolist()):
        begin, end, cls = rows.cut.readable(window)
        assert batch["compared"][window].sum() == end - begin + 1
        start, stop = (
            rows.answers[rows.cut.question[window]][0] if has_answer(rows.labels)[rows.cut.question[window]] else (0, 0)
        )
        offsets = rows.cut.offsets(window)
        whole = stop > start and len(offsets) and offsets[0, 0] <= start and offsets[-1, 1] >= stop
        assert (first == last == cls) != whole, window
        if whole:
            assert offsets[first - begin, 0] == start and offsets[last - begin, 1] == stop
            assert batch["compared"][window, first : last + 1].all()
    long = np.flatnonzero(rows.cut.question == 1)
    assert 1 <= (batch["labels"][long, 0] > 0).sum() < len(long), "other windows are trained to answer nothing"


def test_an_answer_inside_of_a_word_is_trained_by_the_whole_token():
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "river's": 3}, unk_token="[UNK]")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 1), ("[CLS]", 0))
    rows = spans_of(words, Split((["what"], ["a river's town"]), of_words([np.array([[2, 7]], np.int32)])), 16)
    batch = collate(rows, np.array([0]), 0)
    assert batch["input_ids"][0, batch["labels"][0]].tolist() == [3, 3]
    decisions = rows.decided(rows.collected([(np.array([0]), certain(rows, np.array([0])))]), 0)
    assert decisions[0, :2].tolist() == [2, 9] and decisions[0, 4:].tolist() == [0, 0], "river's is not river"


def test_cls_at_the_end_is_where_nothing_is_answered():
    """As in XLNet, which has [CLS] at the end."""
    last = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<sep>": 0, "<cls>": 1, "<unk>": 2}, unk_token="<unk>"))
    last.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    last.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[("<sep>", 0), ("<cls>", 1)],
    )
    rows = encode(
        last,
        Split(
            (["a", "b"], ["x y", "y"]), of_words([np.zeros((0, 2), np.int32), np.array([[0, 1]])]), unanswerable=True
        ),
        16,
    )
    batch = collate(rows, np.arange(2), 0)
    assert batch["labels"].tolist() == [[5, 5], [2, 2]]
    assert batch["compared"].tolist() == [[0, 0, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0]]
    outputs = np.zeros((2, 6, 2), np.float32)
    outputs[0, 5], outputs[1, 4], outputs[1, 2] = 4, 1, 3
    decisions = rows.decided(rows.collected([(np.arange(2), outputs)]), 0)
    assert decisions[:, :4].tolist() == [[0, 0, 0, 8], [0, 1, 6, 2]] and decisions[:, 4].tolist() == [1, 1]


def test_taken_windows_keep_their_questions(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    whole = everything(rows, np.arange(len(rows)))
    order = np.concatenate([np.flatnonzero(rows.cut.question == question) for question in (3, 1, 0)])
    part = rows.take(order)
    assert part.labels.tolist() == rows.labels[[3, 1, 0]].tolist() and part.contexts == [
        CONTEXTS[3],
        CONTEXTS[1],
        CONTEXTS[0],
    ]
    assert np.array_equal(everything(part, np.arange(len(part))), whole[[3, 1, 0]])
    assert part.impossible, "what its split may say, it may"
    one = rows.take(np.flatnonzero(rows.cut.question == 1)[:1])
    assert one.labels.tolist() == rows.labels[[1]].tolist() and everything(one, np.arange(1))[0, :2].tolist() == [
        0,
        0,
    ], "its window has no answer"
    assert [ids.tolist() for ids in part.input_ids] == [rows.input_ids[index].tolist() for index in order]


def test_windows_that_follow_others_keep_their_questions(tokenizer: tokenizers.Tokenizer):
    rows, other = encoded(tokenizer, rows=(0, 3)), encoded(tokenizer, rows=(1, 2))
    both = rows.concat(other)
    assert both.impossible and not rows.impossible and len(set(context_of(both.labels).tolist())) == 4
    expected = everything(encoded(tokenizer), np.arange(len(encoded(tokenizer))))[[0, 3, 1, 2]]
    assert np.array_equal(everything(both, np.arange(len(both))), expected)


def test_batches_of_training_have_each_window_once(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    batches = TaskBatches(rows, batch_size=4, pad_id=0, seed=1)
    seen = np.concatenate([batches.indices(step) for step in range(len(batches))])
    assert sorted(seen.tolist()) == list(range(len(rows)))
    batch = batches.collate(batches.indices(0))
    assert batch["labels"].shape == (len(batches.indices(0)), 2) and batch["compared"].shape == batch["input_ids"].shape


def test_a_split_of_several_parts_is_encoded_as_one(tokenizer: tokenizers.Tokenizer, monkeypatch: pytest.MonkeyPatch):
    whole = encoded(tokenizer)
    monkeypatch.setattr("compress.tasks.batches.spans.ENCODE_AT_ONCE", 2)
    parts = encoded(tokenizer)
    assert np.array_equal(parts.places, whole.places) and np.array_equal(parts.cut.question, whole.cut.question)
    assert [ids.tolist() for ids in parts.input_ids] == [ids.tolist() for ids in whole.input_ids]
    assert not parts.cut.encodings, "whose memory is many times that of ids"


def test_no_room_for_a_context_is_refused(tokenizer: tokenizers.Tokenizer):
    with pytest.raises(CompressError, match="max_length is 3; expected more than the 3 special tokens"):
        encode(tokenizer, split_of(), 3)


def test_windows_do_not_depend_on_the_side_that_the_tokenizer_cuts_on(tokenizer: tokenizers.Tokenizer) -> None:
    left = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    set_truncation_side(left, "left")
    same, other = encoded(tokenizer), encoded(left)
    assert len(same) > len(CONTEXTS)
    assert [ids.tolist() for ids in other.input_ids] == [ids.tolist() for ids in same.input_ids]
