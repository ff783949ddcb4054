"""What `compress reproduce` would run: from each result's command, with files in the report's folder, here, or given again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import TASK

from compress.cli.reproducing import plan_reruns, request_of, words_of
from compress.errors import CompressError
from compress.models.cards import load_student, load_teacher
from compress.pipeline import Listener, Request, plan_all
from compress.pipeline.request import load_recipe, teacher_words
from compress.reproduction import MovedData, Rerun, check_reruns, locate_files, rerun_all, reruns
from compress.reproduction.conditions import are_exact, conditions_of
from compress.results import Result, read_results, write_result
from compress.tasks import OwnFiles

pytestmark = pytest.mark.end_to_end

REPORTS = Path(__file__).parents[2] / "reports"
HERE = sorted(path for path in REPORTS.glob("*/result*.json"))


@pytest.mark.parametrize("path", HERE, ids=lambda path: path.parent.name)
def test_the_commands_of_our_reports_are_read_and_the_files_that_they_name_are_there(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All files except data, which are given again, and checkpoints."""
    monkeypatch.chdir(tmp_path)
    moved = MovedData(data_dir=tmp_path, corpus=(str(tmp_path),))
    for result in read_results(path):
        request = reruns.narrow_request(request_of(locate_files(words_of(result.command), path.parent, moved)), result)
        assert request.seeds == (result.seed,) and len(request.recipes) == 1
        recipe = load_recipe(str(request.recipes[0]), request.overrides)
        (teacher,) = (load_teacher(word).name for word in teacher_words(request, recipe))
        folder = result.student_origin is not None and "." not in str(request.student)  # of a checkpoint, not here
        student = load_student(request.student).name if request.student and not folder else result.student
        assert not folder or request.student in (None, result.student)
        assert (recipe.name, teacher, student) == (result.recipe["name"], result.teacher, result.student)


def test_there_are_reports_to_read() -> None:
    assert len(HERE) > 20


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Request], Result]:
    """Return a function from (command, its request) to a result recorded in `report`, with the request's current data. `task.yaml` is
    here."""
    (*_, template) = read_results(REPORTS / "vocabulary" / "results.json")
    monkeypatch.chdir(tmp_path)
    Path("task.yaml").write_text(TASK)
    Path("report").mkdir()

    def make(command: str, request: Request) -> Result:
        plan = plan_all(replace(request, seeds=request.seeds[:1]))[0]
        data = template.task.data.model_copy(update={"fingerprint": plan.task.fingerprint})
        result = template.model_copy(
            update={
                "command": command,
                "recipe": {**template.recipe, "name": plan.recipe.name},
                "seed": plan.seed,
                "task": template.task.model_copy(update={"name": plan.task.spec.name, "data": data}),
                "origin": None,
                "corpus": plan.corpus.record if plan.corpus else None,
            }
        )
        write_result(result, Path("report"))
        return result

    return make


def reruns_here(moved: MovedData | None = None) -> list[Rerun]:
    return plan_reruns(Path("report"), moved or MovedData(), Path("again"), None)


COMMAND = "compress run distilbert int8 --task task.yaml --task toy-sentiment --teacher bert-mini --seeds 3 --set distill.epochs=1"


def test_of_a_command_for_many_runs_each_result_has_its_own(recorded: Callable[..., Result]) -> None:
    makers = [
        Request((recipe,), (task,), teacher="bert-mini", seeds=(seed,), overrides=overrides)
        for recipe, overrides in (("distilbert", ("distill.epochs=1",)), ("int8", ()))
        for task in ("task.yaml", "toy-sentiment")
        for seed in (0, 2)
    ]
    results = [recorded(COMMAND, maker) for maker in makers]
    documents = [
        result.model_copy(update={"run": str(number)}).model_dump(mode="json") for number, result in enumerate(results)
    ]
    Path("report", "result.json").unlink()
    Path("report", "results.json").write_text(json.dumps(documents))
    all_reruns = reruns_here()
    precision = results[0].settings["precision"]
    assert [rerun.plan.name for rerun in all_reruns] == [
        plan_all(replace(maker, precision=precision))[0].name for maker in makers
    ]
    assert {rerun.request.bench for rerun in all_reruns} == {None}
    assert {rerun.request.precision for rerun in all_reruns} == {precision}
    assert {rerun.request.threads for rerun in all_reruns} == {results[0].settings["threads"]}


def test_what_two_results_ask_for_is_run_once(recorded: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    result = recorded(
        "compress run int8 -t task.yaml --teacher bert-mini", Request(("int8",), ("task.yaml",), "bert-mini")
    )
    (rerun,) = reruns_here()
    requests: list[Request] = []

    def run_all(request: Request, listener: Listener) -> list[Result]:
        requests.append(request)
        return [result]

    monkeypatch.setattr(reruns, "run_all", run_all)
    assert rerun_all([rerun, rerun], Listener()) == [result, result]
    assert requests == [rerun.request]


def test_files_of_ones_own_may_lie_elsewhere_by_now(recorded: Callable[..., Result]) -> None:
    for name, rows in {"train": 40, "dev": 12}.items():
        lines = [f"the {name} film {i} is {'good' if i % 2 else 'bad'},{'yes' if i % 2 else 'no'}" for i in range(rows)]
        Path(f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    own = OwnFiles(Path("train.csv"), Path("dev.csv"))
    recorded(
        "compress run int8 --train train.csv --dev dev.csv --teacher bert-mini",
        Request(("int8",), own=own, teacher="bert-mini"),
    )
    assert len(reruns_here()) == 1
    Path("data").mkdir()
    for name in ("train", "dev"):
        shutil.move(f"{name}.csv", f"data/{name}.csv")
    with pytest.raises(
        CompressError, match=r"--train train.csv: is neither in report nor here; give it anew with --train"
    ):
        reruns_here()
    elsewhere = MovedData(train=Path("data/train.csv"), dev=Path("data/dev.csv"))
    assert len(reruns_here(elsewhere)) == 1
    shutil.copytree("data", "report/data")  # what is given anew is not looked for there
    Path("report/data/dev.csv").write_text("text,label\nanother film,no\n")
    assert len(reruns_here(elsewhere)) == 1
    with pytest.raises(CompressError, match=r"--dev dev\.csv: no such file or folder"):
        reruns_here(MovedData(train=Path("data/train.csv"), dev=Path("dev.csv")))
    with Path("data/dev.csv").open("a") as file:
        file.write("one more film,yes\n")
    with pytest.raises(CompressError, match="the fingerprint of its data differs"):
        reruns_here(elsewhere)


def test_plain_text_may_lie_elsewhere_by_now_and_is_checked(recorded: Callable[..., Result]) -> None:
    Path("text.txt").write_text("a film is good .\n" * 40)
    words, corpus = ("tinybert-small",), ("text.txt",)
    recorded(
        "compress run tinybert-small -t task.yaml --teacher bert-mini --corpus text.txt",
        Request(words, ("task.yaml",), "bert-mini", corpus=corpus),
    )
    Path("texts").mkdir()
    shutil.move("text.txt", "texts/text.txt")
    elsewhere = MovedData(corpus=("texts/text.txt",))
    assert reruns_here(elsewhere)[0].request.corpus == ("texts/text.txt",)
    Path("texts/text.txt").write_text("others\n" * 40)
    with pytest.raises(CompressError, match="--corpus: its text differs from the recorded one"):
        reruns_here(elsewhere)


def test_a_checkpoint_may_lie_in_the_reports_folder(tmp_path: Path) -> None:
    (tmp_path / "teacher").mkdir()
    words = words_of("compress run int8 -t toy-sentiment --teacher teacher --teacher bert-mini")
    assert locate_files(words, tmp_path, MovedData())["teacher"] == [str(tmp_path / "teacher"), "bert-mini"]


def test_another_checkpoint_than_on_record_is_refused(
    recorded: Callable[..., Result], toy_tokenizer: Tokenizer
) -> None:
    Path("report/words").mkdir()
    toy_tokenizer.save("report/words/tokenizer.json")
    Path("report/tiny.yaml").write_text(
        "name: tiny\ntitle: Tiny\nlicence: Apache-2.0\n"
        "random: {layers: 2, hidden: 32, heads: 2, intermediate: 64, max_positions: 32, tokenizer: ./words}\n"
    )
    request = Request(("int8",), ("task.yaml",), "report/tiny.yaml")
    result = recorded("compress run int8 -t task.yaml --teacher tiny.yaml", request)
    write_result(result.model_copy(update={"origin": plan_all(request)[0].teacher.origin}), Path("report"))
    assert reruns_here()[0].request.teacher == ("report/tiny.yaml",)
    tokenizer = Path("report/words/tokenizer.json")
    tokenizer.write_text(tokenizer.read_text() + " ")
    with pytest.raises(CompressError, match=r"teacher tiny: its tokenizer\.json differs from the recorded one"):
        reruns_here()


def test_a_student_that_a_recipe_names_beside_it_is_found(recorded: Callable[..., Result]) -> None:
    shutil.copy(REPORTS / "smallest" / "small.yaml", "report/small.yaml")
    text = Path("report/small.yaml").read_text().replace("../pruned-quarter/", "./")
    Path("report/small.yaml").write_text(text)
    card = (REPORTS / "pruned-quarter" / "distil-2l.yaml").read_text()
    Path("report/distil-2l.yaml").write_text(card.replace("[1, 4]", "[1, 3]"))
    command = "compress run small.yaml -t task.yaml --teacher bert-mini"
    recorded(command, Request(("report/small.yaml",), ("task.yaml",), "bert-mini", student="report/distil-2l.yaml"))
    assert reruns_here()[0].request.student == "report/distil-2l.yaml"


def test_a_card_that_gives_another_shape_by_now_is_noted(recorded: Callable[..., Result]) -> None:
    result = recorded(
        "compress run int8 -t task.yaml --teacher bert-mini", Request(("int8",), ("task.yaml",), "bert-mini")
    )
    then, now = result.models[0].architecture, "4 x 128, 4 heads, FFN 512"
    assert f"architecture of teacher: {then} on record, {now} now" in reruns_here()[0].changed


def test_answers_on_record_that_cannot_be_read_are_told_before_any_work(recorded: Callable[..., Result]) -> None:
    recorded("compress run int8 -t task.yaml --teacher bert-mini", Request(("int8",), ("task.yaml",), "bert-mini"))
    Path("report/per_example.npz").write_bytes(b"none")
    with pytest.raises(CompressError, match=r"per_example\.npz: cannot be read"):
        check_reruns(reruns_here(), Path("report"))


@pytest.fixture(scope="module")
def of_one_code() -> Result:
    """Return a result from a CPU only, with all stages by the same code."""
    (*_, result) = read_results(REPORTS / "vocabulary" / "results.json")
    stages = tuple(stage.model_copy(update={"code": result.code}) for stage in result.stages)
    models = tuple(model.model_copy(update={"code": result.code}) for model in result.models)
    machine = result.machine.model_copy(update={"gpu": None})
    return result.model_copy(update={"stages": stages, "models": models, "machine": machine})


@pytest.mark.parametrize(
    ("fields", "exact"),
    [({}, True), ({"cpu": "b"}, False), ({"isa": ("avx2",)}, False), ({"gpu": "c"}, False), ({"os": "d"}, True)],
)
def test_figures_must_be_the_same_on_the_same_kind_of_cpu(
    of_one_code: Result, fields: dict[str, Any], exact: bool
) -> None:
    other = of_one_code.model_copy(update={"machine": of_one_code.machine.model_copy(update=fields)})
    assert are_exact(conditions_of(of_one_code, other)) == exact


@pytest.mark.parametrize(("library", "exact"), [("torch", False), ("onnxruntime", False), ("pydantic", True)])
def test_what_computes_must_be_of_the_same_version(of_one_code: Result, library: str, exact: bool) -> None:
    other = of_one_code.model_copy(update={"versions": of_one_code.versions | {library: "0"}})
    assert are_exact(conditions_of(of_one_code, other)) == exact


def test_on_a_gpu_no_two_trainings_are_the_same(of_one_code: Result) -> None:
    result = of_one_code.model_copy(update={"machine": of_one_code.machine.model_copy(update={"gpu": "a"})})
    assert not are_exact(conditions_of(result, result))


def test_a_stage_of_other_code_or_of_code_that_is_not_on_record_is_not_the_same(of_one_code: Result) -> None:
    assert of_one_code.code is not None
    for code in (None, of_one_code.code.model_copy(update={"source": "0"})):
        stage = of_one_code.stages[0].model_copy(update={"code": code})
        older = of_one_code.model_copy(update={"stages": (stage, *of_one_code.stages[1:])})
        assert not are_exact(conditions_of(older, of_one_code)) and not are_exact(conditions_of(older, older))
    elsewhere = of_one_code.code.model_copy(update={"commit": "0" * 40})
    assert are_exact(conditions_of(of_one_code.model_copy(update={"code": elsewhere}), of_one_code))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"threads": 9}, ("threads", "1 or 9 by stage", "1")),
        ({"threads": None}, ("threads", "1 or not recorded by stage", "1")),
        ({"processes": 2}, ("processes", "1 or 2 by stage", "1")),
        ({"device": "cuda"}, ("training device", "cpu or cuda by stage", "cpu")),
    ],
)
def test_a_stage_that_was_trained_otherwise_is_not_the_same(
    of_one_code: Result, fields: dict[str, Any], line: tuple[str, str, str]
) -> None:
    """For example one that another command left in the store."""
    older, now = trained_with(of_one_code, fields, {}), trained_with(of_one_code, {}, {})
    conditions = conditions_of(older, now)
    (other,) = (each for each in conditions if not each.same)
    assert (other.name, other.recorded, other.now) == line
    assert not are_exact(conditions) and not are_exact(conditions_of(older, older))


@pytest.mark.parametrize(("fields", "exact"), [({}, True), ({"processes": 2}, True), ({"device": "cuda"}, False)])
def test_stages_that_were_all_trained_alike_give_the_same_on_a_cpu_alone(
    of_one_code: Result, fields: dict[str, Any], exact: bool
) -> None:
    result = trained_with(of_one_code, fields, fields)
    assert are_exact(conditions_of(result, result)) == exact
    assert are_exact(conditions_of(result, trained_with(of_one_code, {}, {}))) == (not fields)


def trained_with(result: Result, *several: dict[str, Any]) -> Result:
    """Return the result with a training stage for each of `several`, which are parts of its record."""
    (stage,) = (each for each in result.stages if "steps" in each.info)
    trained = [stage.model_copy(update={"info": stage.info | fields}) for fields in several]
    return result.model_copy(update={"stages": (*trained, *(each for each in result.stages if each is not stage))})
