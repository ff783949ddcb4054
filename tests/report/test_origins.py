"""What a page says about the origin of its results: code, stages made by other code, teacher, plain text."""

from __future__ import annotations

from collections.abc import Callable

from compress.provenance import Code, Corpus, TeacherOrigin
from compress.report.page import page_of, tasks_of
from compress.report.render import html_report, markdown_report
from compress.report.sections.details import codes, environment
from compress.results import Result

Make = Callable[..., Result]
NOW = Code(version="0.2.0", source="a" * 64, commit="b" * 40, dirty=False)
ALIKE = Code(version="0.2.0", source="a" * 64, commit="e" * 40, dirty=False)  # another commit, the same files
EARLIER = Code(version="0.1.0", source="c" * 64, commit="d" * 40, dirty=True)
ORIGIN = TeacherOrigin(
    kind="package", name="a-model", revision="1.5", files={"model.safetensors": "1" * 64, "config.json": "2" * 64}
)
CORPUS = Corpus(names=("a.txt", "b.txt"), fingerprint="3" * 64)


def recorded(result: Result, code: Code = NOW, stage: Code | None = NOW) -> Result:
    stages = (
        result.stages[0].model_copy(update={"code": stage}),
        *(s.model_copy(update={"code": code}) for s in result.stages[1:]),
    )
    models = tuple(model.model_copy(update={"code": code}) for model in result.models)
    own = {"code": code, "timed_by": code, "origin": ORIGIN, "corpus": CORPUS}
    return result.model_copy(update={"stages": stages, "models": models, **own})


def rows(*results: Result) -> dict[str, str]:
    return {
        name: text for name, text in environment(results) if not name.startswith(("Machine", "Instruction", "Versions"))
    }


def test_one_code_one_teacher_one_text(fake: Make) -> None:
    assert rows(recorded(fake()), recorded(fake(seed=1), stage=ALIKE)) == {
        "Code": "0.2.0, commit bbbbbbbbbbbb, source aaaaaaaaaaaa",
        "Weights of minilm-l6": "package a-model 1.5, model.safetensors 111111111111",
        "Plain text": "a.txt, b.txt, SHA-256 333333333333",
    }


def test_what_other_code_made_is_named(fake: Make) -> None:
    one, two = recorded(fake(), stage=EARLIER), recorded(fake(seed=1), stage=None)
    two = two.model_copy(update={"timed_by": EARLIER})
    origins = rows(one, two)
    earlier = "Made earlier, by 0.1.0, commit dddddddddddd with changes, source cccccccccccc"
    assert origins[earlier] == "finetune model, latencies"
    assert origins["Made earlier, by code that was not recorded"] == "finetune model"
    assert codes([one, two]) == [NOW, EARLIER]


def test_runs_of_several_codes_are_told_apart(fake: Make) -> None:
    one, two = recorded(fake()), recorded(fake(seed=1), code=EARLIER, stage=EARLIER)
    texts = [text for name, text in environment([one, two]) if name == "Code"]
    assert texts == [f"{NOW} ({one.run})", f"{EARLIER} ({two.run})"]


def test_a_result_of_before_says_nothing_of_it(fake: Make) -> None:
    assert rows(fake()) == {}
    assert codes([fake()]) == []


def test_it_is_on_both_pages(fake: Make) -> None:
    tasks = tasks_of([recorded(fake())])
    page = page_of(tasks)
    assert str(NOW) in markdown_report(page, "")
    assert str(NOW) in html_report(page, tasks)
