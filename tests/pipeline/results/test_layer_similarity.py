"""Layer similarity of students and teachers in runs: measured once on the tuning split, for every kind of task, or omitted with a
reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pretrained_toys import encoder_folder
from prune_runs import TEACHER_ALONE
from recipe_runs import TASK, TEACHER, compress, result_of

from compress.pipeline.results.similarity import LONGEST, TEXTS, TOKENS, sample_of
from compress.tasks import Encoded

COMMAND = ("--task", "tiny-task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "--no-bench")


def encoded(*lengths: int, first: int = 5) -> Encoded:
    ids = [np.arange(first, first + length, dtype=np.int32) for length in lengths]
    return Encoded(ids, [np.zeros(length, np.int8) for length in lengths], np.zeros(len(lengths)))


NAMES = [str(number) for number in range(LONGEST + 20)]


def test_the_sample_is_bounded_and_spread_over_the_split() -> None:
    many, long = encoded(*[4] * 2000), encoded(*[100] * 300)
    rows = sample_of(many, many, (NAMES, NAMES))
    assert len(rows) == TEXTS and (rows[0], rows[-1]) == (0, 1999)
    assert set(np.diff(rows)) <= {7, 8}
    rows = sample_of(long, long, (NAMES, NAMES))
    assert TOKENS - 100 < 100 * len(rows) <= TOKENS
    assert (rows[0], rows[-1]) == (0, 299)


def test_only_texts_of_the_same_tokens_are_compared() -> None:
    """Whatever their ids; texts that are too long are left out."""
    teacher, student = encoded(3, 9, 4, LONGEST, LONGEST + 1), encoded(3, 8, 4, LONGEST, LONGEST + 1, first=2)
    assert sample_of(student, teacher, (NAMES[3:], NAMES)).tolist() == [0, 2, 3]
    assert sample_of(student, teacher, (NAMES, NAMES)).tolist() == []


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "tiny-task.yaml").write_text(TASK)
    (folder / "alone.yaml").write_text(TEACHER_ALONE)
    encoder_folder(folder / "bytes")
    return folder


@pytest.mark.slow
def test_a_run_measures_its_student_once_and_its_report_shows_it(world: Path) -> None:
    command = ("run", "distilbert", *COMMAND)
    result = result_of(*command, cwd=world)
    similarity = result.similarity
    assert similarity is not None
    assert (similarity.model, similarity.split, similarity.left_out) == ("student", "tuning", ())
    assert similarity.texts == result.task.data.rows["tuning"]
    assert similarity.tokens > 3 * similarity.texts
    assert 0 < np.min(similarity.states) <= np.max(similarity.states) <= 1
    assert "by CKA, student layers 0 and 1 are nearest" in (world / "runs" / result.run / "report.md").read_text()
    again = compress(*command, "--set", "quantize.method=static", cwd=world)
    assert again.returncode == 0
    assert "cached  similarity student" in again.stderr


@pytest.mark.slow
def test_a_pruned_teacher_is_compared_with_the_whole_one(world: Path) -> None:
    similarity = result_of("run", "alone.yaml", *COMMAND, cwd=world).similarity
    assert similarity is not None
    assert similarity.model.startswith("teacher-")
    assert similarity.states[0][0] == 1  # the embeddings are unchanged
    assert 0 < np.max(np.diag(np.array(similarity.states))[1:]) <= 1


@pytest.mark.slow
def test_a_student_with_other_tokens_is_left_out_by_name(world: Path) -> None:
    similarity = result_of(
        "run", "logits", *COMMAND, "--student", "./bytes", "--set", "distill.max_steps=2", cwd=world
    ).similarity
    assert similarity is not None
    assert similarity.left_out == ("states and attention, as student and teacher cut texts into different tokens",)
    assert not similarity.states
