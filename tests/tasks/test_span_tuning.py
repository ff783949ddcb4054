"""A tuning file of questions, and the contexts of other splits."""

from __future__ import annotations

from pathlib import Path

import pytest
from span_files import questions, span_task, squad, written

from compress.errors import CompressError
from compress.tasks import (
    load_training,
)

TRAIN, DEV = questions("train"), questions("dev", 4)


def test_a_tuning_file_may_ask_anew_of_what_train_has(tmp_path: Path) -> None:
    written(tmp_path, squad(TRAIN), squad(DEV))
    path = tmp_path / "own.json"
    path.write_text(
        squad([(f"And {question}", context, answers) for question, context, answers in TRAIN]), encoding="utf-8"
    )
    data = load_training(span_task(), tmp_path, None, path)
    assert len(data.tuning) == len(TRAIN) and not data.notes


def test_a_tuning_file_on_reported_contexts_is_refused_whatever_it_asks(tmp_path: Path) -> None:
    written(tmp_path, squad(TRAIN), squad(DEV))
    path = tmp_path / "own.json"
    reported = [(f"And {question}", context, answers) for question, context, answers in DEV]
    path.write_text(squad(reported), encoding="utf-8")
    with pytest.raises(
        CompressError, match=r"own\.json: .* of its .* questions are on contexts of dev, which scores are reported on"
    ):
        load_training(span_task(), tmp_path, None, path)
    new = questions("own", 2)
    path.write_text(squad([*new, *reported[:2]]), encoding="utf-8")
    data = load_training(span_task(), tmp_path, None, path)
    assert data.tuning.texts[1] == [context for _, context, _ in new]
    assert "2 of 8 tuning questions are on contexts of dev, and are left out" in data.notes
