"""What an augment stage reads must be what the plan names, and have words to replace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.preflight import preflight
from compress.pipeline.stages import augment
from compress.store import hash_file


def test_one_that_moved_since_the_plan_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SimpleNamespace(folder=tmp_path, identity="planned with")
    monkeypatch.setattr(augment, "resolve_teacher", lambda word: source)
    job: Any = SimpleNamespace(node=SimpleNamespace(outside={"masked_lm": "planned with"}))
    assert augment._planned_checkpoint(job, "acme/lm") == tmp_path
    source.identity = "another commit"
    with pytest.raises(CompressError, match=r"^augment\.masked_lm: acme/lm: it changed since this command started"):
        augment._planned_checkpoint(job, "acme/lm")


def test_one_that_is_not_there_is_refused_by_the_name_of_its_field() -> None:
    overrides = ("augment.masked_lm=nowhere",)
    request = Request(("tinybert-small",), ("toy-sentiment",), teacher="bert-mini", overrides=overrides)
    with pytest.raises(CompressError, match=r"stage augment: masked_lm: teacher `nowhere` is not in the catalogue"):
        plan_all(request)


def test_word_vectors_that_changed_since_the_plan_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("good 1 0\nfine 0.9 0.1\n")
    spec = SimpleNamespace(glove=str(path))
    job: Any = SimpleNamespace(spec=spec, node=SimpleNamespace(outside={"glove": hash_file(path)}))
    assert augment._other_proposer(job).vocabulary == ("good", "fine")
    path.write_text("good 1 0\npoor 0.9 0.1\n")
    with pytest.raises(CompressError, match=r"^augment\.glove: .*glove\.txt: it changed since this command started"):
        augment._other_proposer(job)


CHINESE = "name: films\nkind: classification\ntext: [text]\nlabel: label\nmetrics: [accuracy]\nfiles: {train: train.csv, dev: dev.csv}\n"


@pytest.mark.parametrize(("word", "refused"), [("好", True), ("12 !", True), ("the of", True), ("film", False)])
def test_texts_without_a_word_to_replace_are_refused_before_anything_is_trained(
    tmp_path: Path, word: str, refused: bool
) -> None:
    (tmp_path / "films.yaml").write_text(CHINESE)
    for name, count in (("train", 40), ("dev", 8)):
        rows = [
            f"{('好看不' if name == 'train' else '电影院')[n % 3] * (n + 1)} {word},{'ab'[n % 2]}" for n in range(count)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    request = Request(("tinybert-small",), (str(tmp_path / "films.yaml"),), teacher="bert-mini")
    (plan,) = plan_all(request)
    if not refused:
        preflight([plan], tmp_path / "runs")
        return
    with pytest.raises(
        CompressError,
        match=r"^recipe tinybert-small, stage augment: no text of train has a word to replace: .*--set augment",
    ):
        preflight([plan], tmp_path / "runs")
    (without,) = plan_all(replace(request, overrides=("augment.enabled=false",)))
    preflight([without], tmp_path / "runs")


def test_copies_without_a_replaced_word_are_refused_by_the_name_of_the_field() -> None:
    request = Request(
        ("tinybert-small",), ("toy-sentiment",), "bert-mini", overrides=("augment.replace_probability=0",)
    )
    with pytest.raises(CompressError, match=r"augment\.replace_probability: expected .*0"):
        plan_all(request)
