"""`compress reproduce`: repeats a report's run elsewhere, and reports figures, files and data that differ."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipe_runs import TASK, TEACHER, compress
from reproduced_records import elsewhere, with_score, with_wrong

from compress.results import PER_EXAMPLE, read_result

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]
Alter = Callable[[dict[str, Any]], None]
RUN = (
    "run",
    "int8",
    "--task",
    "task.yaml",
    "--teacher",
    "tiny.yaml",
    "--no-bench",
    "--threads",
    "1",
    "--report",
    "report",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `report`, of a run, with the cards that its command names; and `runs`, with that run and its store."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    done = compress(*RUN, cwd=folder)
    assert done.returncode == 0, done.stderr
    for card in ("tiny.yaml", "task.yaml"):
        (folder / card).rename(folder / "report" / card)
    return folder


@pytest.fixture(scope="module")
def reproduction(world: Path) -> tuple[dict[str, Any], list[Path]]:
    """Return the first reproduction's output as JSON, and the report's files before it."""
    before = sorted(world.joinpath("report").rglob("*"))
    done = compress("reproduce", "report", "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), before


@pytest.fixture
def altered(world: Path, reproduction: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Alter], Path]:
    """Return a function that makes `report`, in the current folder, with an altered record. `reproduced` has the repeated run."""

    def make(alter: Alter) -> Path:
        report = tmp_path / "report"
        shutil.copytree(world / "report", report)
        document = json.loads((report / "result.json").read_text("utf-8"))
        alter(document)
        (report / "result.json").write_text(json.dumps(document), encoding="utf-8")
        return report

    (tmp_path / "reproduced").symlink_to(world / "reproduced")
    monkeypatch.chdir(tmp_path)
    return make


def figures(out: str) -> list[dict[str, Any]]:
    (run,) = json.loads(out)["runs"]
    return run["figures"]


def test_a_run_is_made_again_and_all_is_the_same(world: Path, reproduction: tuple[dict[str, Any], list[Path]]) -> None:
    document, before = reproduction
    (run,) = document["runs"]
    assert run["exact"] and run["stages_from_store"] == 0 and not run["changed_settings"]
    assert document["verdicts"] == {"same": 6}
    assert [(each["model"], each["name"]) for each in run["figures"]] == [
        (model, name) for model in ("teacher fp32", "teacher int8") for name in ("accuracy", "file_bytes", "parameters")
    ]
    scores = [figure for figure in run["figures"] if figure["split"] == "dev"]
    assert {(figure["changed"], figure["examples"]) for figure in scores} == {(0, 40)}
    assert sorted(world.joinpath("report").rglob("*")) == before
    again = read_result(world / document["out"] / run["run"])
    assert again.run == read_result(world / "report").run and again.settings["bench"] is None
    assert again.settings["threads"] == 1


def test_the_table_says_what_is_the_same(cli: Cli, altered: Callable[[Alter], Path]) -> None:
    altered(lambda document: None)
    done = cli("reproduce", "report")
    assert done.code == 0
    for words in (
        "As recorded: CPU, ",
        ", code.\n",
        "Figures must be the same.",
        "Stages: 3 of 3 were in reproduced/.store already and were not made again.\n",
        "Times are not measured again.",
        "\n6 same\n",
    ):
        assert words in done.out
    assert "Not as recorded" not in done.out


def test_a_score_that_is_another_by_the_same_code_differs(cli: Cli, altered: Callable[[Alter], Path]) -> None:
    altered(lambda document: with_score(document, 97.5))
    done = cli("reproduce", "report", "--json")
    assert done.code == 1 and "report: 1 of 6 figures differ" in done.err
    (figure,) = (each for each in figures(done.out) if each["verdict"] == "differs")
    assert (figure["model"], figure["name"], figure["recorded"]) == ("teacher int8", "accuracy", 97.5)


def test_answers_that_are_others_by_the_same_code_differ_though_the_score_is_the_same(
    cli: Cli, altered: Callable[[Alter], Path]
) -> None:
    report = altered(lambda document: None)
    run = read_result(report)
    with np.load(report / PER_EXAMPLE) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    gold, *answers = kept["tiny-task/dev"]
    row = json.loads(str(kept["index"]))["tiny-task/dev"][run.run][run.final.predictions]
    right, wrong = np.flatnonzero(answers[row - 1] == gold)[0], np.flatnonzero(answers[row - 1] != gold)[0]
    kept["tiny-task/dev"][row, [right, wrong]] ^= 1
    np.savez_compressed(report / PER_EXAMPLE, allow_pickle=False, **kept)
    done = cli("reproduce", "report")
    assert done.code == 1 and "2 of 40" in done.out


@pytest.mark.parametrize(("wrong", "verdict", "code"), [(3, "within its interval", 0), (18, "differs", 1)])
def test_on_another_machine_the_interval_of_the_difference_decides(
    cli: Cli, altered: Callable[[Alter], Path], wrong: int, verdict: str, code: int
) -> None:
    report = altered(elsewhere)
    document = json.loads((report / "result.json").read_text("utf-8"))
    with_score(document, with_wrong(report, wrong))
    (report / "result.json").write_text(json.dumps(document), encoding="utf-8")
    done = cli("reproduce", "report", "--json")
    assert done.code == code, done.err
    (figure,) = (each for each in figures(done.out) if each["verdict"] != "same")
    interval = figure["interval"]
    assert (figure["verdict"], figure["changed"]) == (verdict, wrong)
    assert interval["points"] == pytest.approx(100 * wrong / 40)
    assert (interval["low"] <= 0 <= interval["high"]) == (verdict != "differs")
    done = cli("reproduce", "report")
    assert "Not as recorded: CPU (Another CPU; now " in done.out and f"+{2.5 * wrong:.2f}, " in done.out


def test_answers_on_record_that_do_not_give_the_score_on_record_are_told(
    cli: Cli, altered: Callable[[Alter], Path]
) -> None:
    def alter(document: dict[str, Any]) -> None:
        elsewhere(document)
        with_score(document, 97.5)

    altered(alter)
    done = cli("reproduce", "report", "--json")
    (figure,) = (each for each in figures(done.out) if each["verdict"] != "same")
    assert done.code == 1 and figure["why"] == "the recorded answers do not give the recorded score"


@pytest.mark.parametrize(("off", "verdict"), [(2.5, "within its interval"), (40.0, "differs")])
def test_without_answers_on_record_its_own_interval_decides(
    cli: Cli, altered: Callable[[Alter], Path], off: float, verdict: str
) -> None:
    def alter(document: dict[str, Any]) -> None:
        elsewhere(document)
        with_score(document, document["models"][-1]["headline"] - off)
        model = document["models"][0]
        model["scores"]["dev"]["accuracy"] = model["headline"] = model["headline"] + 2.5

    (altered(alter) / PER_EXAMPLE).unlink()
    done = cli("reproduce", "report", "--json")
    teacher, quantized = (each for each in figures(done.out) if each["name"] == "accuracy")
    assert done.code == (verdict == "differs")
    assert (teacher["verdict"], teacher["why"]) == ("not judged", "no answers are on record")
    assert quantized["verdict"] == verdict and quantized["why"].startswith("no answers are on record; ±")


@pytest.mark.parametrize(
    ("more", "where", "verdict"),
    [(1, elsewhere, "within 1%"), (5000, elsewhere, "differs"), (1, lambda document: None, "differs")],
)
def test_a_file_may_differ_a_little_elsewhere_alone(
    cli: Cli, altered: Callable[[Alter], Path], more: int, where: Alter, verdict: str
) -> None:
    def alter(document: dict[str, Any]) -> None:
        where(document)
        document["models"][-1]["file_bytes"] += more

    altered(alter)
    done = cli("reproduce", "report", "--json")
    assert [each["verdict"] for each in figures(done.out) if each["verdict"] != "same"] == [verdict]
    assert done.code == (verdict == "differs")


def test_a_model_that_is_not_made_any_more_differs(cli: Cli, altered: Callable[[Alter], Path]) -> None:
    def alter(document: dict[str, Any]) -> None:
        document["models"][-1] |= {"precision": "qdq", "predictions": "teacher-qdq"}

    report = altered(alter)
    (report / PER_EXAMPLE).unlink()
    done = cli("reproduce", "report")
    assert done.code == 1 and "report: 3 of 6 figures differ" in done.err and "no such model or score" in done.out


def test_other_threads_may_give_other_figures(cli: Cli, altered: Callable[[Alter], Path]) -> None:
    def alter(document: dict[str, Any]) -> None:
        document["settings"]["threads"] = 7

    altered(alter)
    done = cli("reproduce", "report", "--threads", 1)
    assert done.code == 0 and "Not as recorded: threads (1 or 7 by stage; now 1)." in done.out


def test_settings_that_are_others_now_are_told_before(cli: Cli, altered: Callable[[Alter], Path]) -> None:
    def alter(document: dict[str, Any]) -> None:
        document["recipe"]["stages"][0]["finetune"]["max_steps"] = 9

    altered(alter)
    done = cli("reproduce", "report", "--quiet")
    assert "finetune.max_steps: 9 on record, 3 now" in " ".join(done.err.split())


def command(text: str) -> Alter:
    return lambda document: document.update(command=text)


OWN = "compress run int8 --task task.yaml --teacher tiny.yaml"
REFUSED: dict[str, tuple[Alter, tuple[str, ...], str]] = {
    "another command": (command("compress ablate int8"), (), "its command is `compress ablate int8`; expected one of `compress run`"),
    "quotes": (command("compress run 'int8"), (), "expected one of `compress run`"),
    "an option": (command(f"{OWN} --sedes 3"), (), "its command cannot be read: No such option: --sedes"),
    "help": (command(f"{OWN} --help"), (), "its command cannot be read: No such option: --help"),
    "a number": (command(f"{OWN} --seed x"), (), "its command cannot be read: Invalid value for '--seed'"),
    "no recipe": (command("compress run"), (), "its command cannot be read: Missing argument 'RECIPE"),
    "a recipe": (command(OWN.replace("int8", "distilbert")), (), "its command makes no run of the recipe int8"),
    "a task": (command(OWN.replace("task.yaml", "toy-sentiment")), (), "its command makes no run on the task tiny-task"),
    "a seed": (command(f"{OWN} --seed 1"), (), "its command makes no run with the seed 0"),
    "a file": (command(OWN.replace("task.yaml", "gone.yaml")), (), "--task gone.yaml: is neither in report nor here"),
    "a teacher": (command(OWN.replace("tiny.yaml", "gone.yaml")), (), "--teacher gone.yaml: is neither in report nor here"),
    "a folder": (command(f"{OWN} --data-dir gone"), (), "--data-dir gone: is neither in report nor here; give it anew with --data-dir"),
    "given in vain": (lambda document: None, ("--data-dir", "."), "--data-dir: no command on record names any; leave it out"),
    "data": (lambda document: document["task"]["data"].update(fingerprint="0" * 64), (), "the fingerprint of its data differs"),
    "text": (
        lambda document: document.update(corpus={"names": ["a.txt"], "fingerprint": "0" * 64}), (), "--corpus: its text differs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_made_again_is_one_line(cli: Cli, altered: Callable[[Alter], Path], name: str) -> None:
    alter, words, message = REFUSED[name]
    altered(alter)
    done = cli("reproduce", "report", "-o", "again", *words)
    assert done.code == 2 and done.out == "" and len(done.err.strip().splitlines()) == 1
    assert message in done.err and not Path("again").exists()


@pytest.mark.parametrize("of", ["run", "report", "report of an earlier measurement"])
def test_the_folder_of_the_run_itself_is_refused(
    cli: Cli, world: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    monkeypatch.chdir(world)
    run = read_result(Path("report")).run
    for card in ("tiny.yaml", "task.yaml"):
        shutil.copy(Path("report", card), Path("runs", run, card))
    path = Path("runs", run, "result.json")
    text = path.read_text("utf-8")
    if "earlier" in of:  # the run was measured again since
        path.write_text(json.dumps(json.loads(text) | {"created": "2030-01-01T00:00:00+00:00"}), encoding="utf-8")
    done = cli("reproduce", f"runs/{run}" if of == "run" else "report", "-o", "runs")
    path.write_text(text, encoding="utf-8")
    message = f"--out runs: holds runs/{run}, the run to be made again; choose another folder"
    assert done.code == 2 and message in done.err


def test_several_processes_are_refused(
    cli: Cli, altered: Callable[[Alter], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    altered(lambda document: None)
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    done = cli("reproduce", "report")
    assert done.code == 2 and "reproduce: works in one process; start it without torchrun" in done.err


def test_what_is_no_report_is_refused(cli: Cli, tmp_path: Path) -> None:
    done = cli("reproduce", tmp_path)
    assert done.code == 2 and "holds no result.json" in done.err
