"""Stages without optimizer steps report their progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CheckFailed, CompressError, Interrupted
from compress.pipeline import Listener, Request, plan_all
from compress.pipeline import run as running
from compress.pipeline.plan import Context, Job
from compress.pipeline.stages.registry import kind_of

STUDENT = "name: small\ntitle: Small\narchitecture: bert\nlayers: 1\n"


class Recorder(Listener):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int | None]] = []

    def progress(self, what: str, done: int, total: int | None) -> None:
        self.seen.append((what, done, total))


@pytest.fixture
def request_(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Request:
    """Return a request with a masked language model as the teacher, and some text."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="the film is not bad .\n" * 50)
    BertForMaskedLM(BertConfig.from_pretrained(teacher)).save_pretrained(teacher)
    (tmp_path / "small.yaml").write_text(STUDENT)
    return Request(
        ("tinybert-small",),
        (str(tmp_path / "task.yaml"),),
        teacher=str(teacher),
        student=str(tmp_path / "small.yaml"),
        corpus=(str(tmp_path / "text.txt"),),
        overrides=("augment.copies=2",),
        root=tmp_path / "runs",
    )


@pytest.mark.parametrize(("kind", "what"), [("augment", "words"), ("tokenize", "tokens")])
def test_how_far_a_stage_has_come_is_told(request_: Request, tmp_path: Path, kind: str, what: str) -> None:
    (plan,) = plan_all(request_)
    node = next(node for node in plan.nodes if node.kind.name == kind)
    listener = Recorder()
    for name in ("out", "work"):
        (tmp_path / name).mkdir()
    context = Context(plan.task, "fp32", 1, listener)
    kind_of(node).run(Job(plan, node, {}, context, tmp_path / "out", tmp_path / "work"))
    named, done, total = listener.seen[-1]
    assert named == what
    assert done > 0
    assert total == {"augment": done, "tokenize": getattr(node.spec, "max_tokens", 0)}[kind]


@pytest.fixture
def nothing_before_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_report_outlook", "preflight", "build_nodes", "check_texts"):
        monkeypatch.setattr(running, name, lambda *_: None)
    monkeypatch.setattr(running.ReportedSource, "of", lambda *_: None)


@pytest.mark.usefixtures("nothing_before_runs")
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_each_of_several_runs_is_named_and_a_note_that_they_share_comes_once(
    request_: Request, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, ...]
) -> None:
    seen: list[str] = []

    class Runs(Listener):
        def run(self, name: str, number: int, count: int) -> None:
            seen.append(f"{number} of {count}: {name}")

        def notice(self, line: str) -> None:
            seen.append(f"note: {line}")

    def ran(plan: Any, *_: Any) -> None:
        seen.append(f"ran {plan.name}")

    monkeypatch.setattr(running, "_run", ran)
    request_ = replace(request_, seeds=seeds)
    plans = [replace(plan, notes=("of all", f"of seed {plan.seed}")) for plan in plan_all(request_)]
    monkeypatch.setattr(running, "plan_all", lambda *_: plans)
    running._run_all(request_, Runs())
    names = [plan.name for plan in plans]
    notes = ["note: of all", *(f"note: of seed {seed}" for seed in seeds)]
    if len(seeds) == 1:
        assert seen == [*notes, f"ran {names[0]}"]
    else:
        assert seen == [*notes, f"1 of 2: {names[0]}", f"ran {names[0]}", f"2 of 2: {names[1]}", f"ran {names[1]}"]


@pytest.mark.usefixtures("nothing_before_runs")
@pytest.mark.parametrize(
    ("kind", "code"), [(CompressError, 2), (CheckFailed, 1), (lambda message: Interrupted(message, 15), 143)]
)
@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_what_ends_one_of_several_runs_names_it(
    request_: Request, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, ...], kind: Callable[[str], Any], code: int
) -> None:
    ends = kind("no room")

    def fails(*_: Any) -> None:
        raise ends

    monkeypatch.setattr(running, "_run", fails)
    request_ = replace(request_, seeds=seeds)
    first = plan_all(request_)[0].name
    with pytest.raises(type(ends)) as raised:
        running._run_all(request_, Listener())
    assert str(raised.value) == (f"{first}: no room" if len(seeds) > 1 else "no room")
    assert raised.value.exit_code == code
