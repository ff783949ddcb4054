"""Several processes share the stages of several runs: the same results, each stage made once, none lost with its process."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from recipe_runs import compress as command
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Listener, Request, plan_all, run, run_all
from compress.pipeline.plan import Context
from compress.pipeline.side_by_side import Turns, build_missing, max_parallel_stages, missing_stages
from compress.store import Store

pytestmark = pytest.mark.end_to_end


class Heard(Listener):
    """Records the labels of the stages begun here, in order, and of those made elsewhere."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.elsewhere: list[tuple[str, str]] = []

    def stage(self, label: str, cached: bool) -> None:
        self.begun += [] if cached else [label]

    def built_elsewhere(self, label: str, run: str) -> None:
        self.elsewhere.append((label, run))


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n" * 9)
    return tmp_path


def request_of(world: Path, root: str = "runs", **more: Any) -> Request:
    return Request(
        ("int8",), (str(world / "task.yaml"),), teacher=str(world / "teacher"), root=world / root, precision="fp32",
        threads=1, bench=None, overrides=("quantize.method=dynamic", "finetune.epochs=1"), **more,
    )  # fmt: skip


def stages(root: Path) -> dict[str, dict[str, Any]]:
    """Return key -> hashes of the files of each artefact in a store, without logs, which contain times."""
    hashes = {}
    for path in root.joinpath(".store").glob("*/manifest.json"):
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        hashes[path.parent.name] = {name: entry["sha256"] for name, entry in files.items() if name != "log.jsonl"}
    return hashes


def wait_for(there: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_two_processes_come_to_what_one_does(world: Path) -> None:
    """The bytes are equal, and the command names each stage once."""
    words = [
        "run",
        "int8",
        "--task",
        "task.yaml",
        "--teacher",
        "teacher",
        "--seeds",
        "2",
        "--no-bench",
        "--precision",
        "fp32",
        "--threads",
        "1",
    ]
    words += ["--set", "quantize.method=dynamic", "--set", "finetune.epochs=1"]
    alone = command(*words, "-o", "alone", cwd=world)
    both = command(*words, "-o", "both", "-j", 2, cwd=world)
    assert (alone.returncode, both.returncode) == (0, 0), both.stderr
    assert stages(world / "both") == stages(world / "alone")
    assert len(stages(world / "both")) > 6
    said = [line.split()[:2] for line in both.stderr.splitlines()]
    begun, others = ([words[1] for words in said if words[:1] == [kind]] for kind in ("run", "built"))
    assert (
        sorted(each for each in begun + others if each in ("finetune", "quantize"))
        == ["finetune"] * 2 + ["quantize"] * 2
    )
    for name in ("report.md", "report.html"):
        assert (world / "both" / "report" / name).is_file()


def test_a_further_process_builds_all_that_is_free(world: Path) -> None:
    request = replace(request_of(world), seeds=(0, 1))
    run._help(request)
    plans = plan_all(request)
    assert set(stages(request.root)) == {node.key for plan in plans for node in plan.nodes}
    heard = Heard()
    run_all(replace(request, jobs=2), heard)
    assert [label for label in heard.begun if not label.startswith(("evaluate", "similarity"))] == heard.elsewhere == []


def test_processes_do_share(world: Path) -> None:
    """The first process waits in its first stage until another has made one."""
    request = replace(request_of(world), seeds=(0, 1), jobs=2)

    class Waiting(Heard):
        def stage(self, label: str, cached: bool) -> None:
            super().stage(label, cached)
            if len(self.begun) == 1:
                wait_for(lambda: bool(stages(request.root)), 120)

    heard = Waiting()
    results = run_all(request, heard)
    assert heard.elsewhere
    built = [node.label for plan in plan_all(request) for node in plan.nodes]
    begun = [label for label in heard.begun if not label.startswith(("evaluate", "similarity"))]
    assert sorted(begun + [label for label, _ in heard.elsewhere]) == sorted(built)
    assert not any(stage.cached for result in results for stage in result.stages)
    run_all(replace(request, jobs=1, root=world / "alone"), Heard())
    assert stages(request.root) == stages(world / "alone")


def test_a_stage_is_claimed_before_its_inputs_are_read(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading inputs takes long because of hashing; two processes that look for work meanwhile must not choose the same stage.
    Threads stand for processes, so nothing is trained: transformers loads one model at a time."""
    plans = plan_all(replace(request_of(world), seeds=(0, 1)))
    begun: list[str] = []
    waited: list[str] = []

    def build(plan: Any, nodes: Any, context: Any, cache: Store) -> None:
        time.sleep(0.3)  # the time for hashing
        begun.append(nodes[-1].key)
        cache.build(nodes[-1].key, lambda out, work: {}, describe={})

    def work() -> None:
        contexts = [Context(plan.task, plan.precision, 1, Listener()) for plan in plans]
        cache = Store(world / "runs/.store", on_notice=waited.append)
        build_missing(missing_stages(plans, contexts, cache), cache, Turns(plans, Listener()))

    monkeypatch.setattr("compress.pipeline.side_by_side.build_nodes", build)
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(work) for _ in range(2)]:
            done.result(120)
    assert sorted(begun) == sorted(node.key for plan in plans for node in plan.nodes)
    assert waited == []


def test_what_another_process_is_at_is_left_to_it_and_taken_up_where_that_ends(world: Path) -> None:
    request = replace(request_of(world), seeds=(0, 1))
    plans, heard, cache = plan_all(request), Heard(), Store(world / "runs/.store")
    contexts = [Context(plan.task, plan.precision, 1, heard) for plan in plans]
    missing = missing_stages(plans, contexts, Store.of_runs(request.root))
    first = plans[0].nodes[0].key
    assert next(iter(missing)) == first
    with Store(world / "runs/.store").claimed(first) as mine:  # the other process
        assert mine
        with cache.claimed(first) as too:
            assert not too
        work = threading.Thread(target=build_missing, args=(missing, cache, Turns(plans, heard)), daemon=True)
        work.start()
        wait_for(lambda: set(missing) - set(stages(request.root)) == {node.key for node in plans[0].nodes}, 120)
        assert heard.begun == [node.label for node in plans[1].nodes]
    work.join(120)
    assert set(stages(request.root)) == set(missing) and not work.is_alive()
    assert heard.begun == [node.label for plan in reversed(plans) for node in plan.nodes] and heard.elsewhere == []


def test_what_vanishes_meanwhile_is_made_again(world: Path) -> None:
    """Like a damaged artefact, which is discarded by any process that finds it."""
    request = request_of(world)
    run_all(request)
    (plan,), cache = plan_all(request), Store(world / "runs/.store")
    teacher, *others = (node.key for node in plan.nodes)
    for key in others:
        shutil.rmtree(cache.path(key))
    missing = missing_stages([plan], [Context(plan.task, plan.precision, 1, Heard())], Store.of_runs(request.root))
    assert set(missing) == set(others)
    shutil.rmtree(cache.path(teacher))
    build_missing(missing, cache, Turns([plan], Listener()))
    assert set(stages(request.root)) >= {teacher, *others}


def test_what_a_stage_has_to_say_is_said_whoever_built_it(world: Path) -> None:
    request = replace(
        request_of(world), overrides=("quantize.method=dynamic", "quantize.word_bits=4", "finetune.epochs=1")
    )
    run._help(request)
    (result,) = run_all(request)
    assert [line for line in result.settings["notices"] if "4 bits are not used here" in line]


def test_the_chain_of_one_run_has_all_cores(world: Path) -> None:
    plans = plan_all(replace(request_of(world), seeds=(0, 1, 2)))
    cache = Store.of_runs(world / "runs")
    assert [max_parallel_stages(plans[:count], cache) for count in (1, 3)] == [1, 3]
    run_all(request_of(world))
    assert max_parallel_stages(plans, cache) == 2


def test_what_is_interrupted_goes_on_with_as_many_threads(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two seeds is done, so one process has all the work; with the other's cores it would end with other weights."""
    monkeypatch.setattr("compress.pipeline.request.usable_cores", lambda: 4)
    request = replace(request_of(world), seeds=(0, 1), jobs=2, threads=None)
    monkeypatch.setattr(run, "Helpers", lambda *anything: nullcontext(Mock()))
    whole = [result.settings["threads"] for result in run_all(replace(request, root=world / "whole"))]
    run_all(replace(request, seeds=(0,), jobs=1, threads=2))
    rest = run_all(request)[1].settings["threads"]
    assert (whole, rest) == ([2, 2], 2)


@pytest.mark.slow
def test_ctrl_c_ends_all_processes_and_the_same_command_continues(world: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "compress",
        "run",
        "int8",
        "--task",
        "task.yaml",
        "--teacher",
        "teacher",
        "--seeds",
        "2",
    ]
    words += ["--no-bench", "--set", "quantize.method=dynamic", "-j", "2", "--set"]
    with subprocess.Popen([*words, "finetune.epochs=9999"], cwd=world, stderr=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)
        wait_for(lambda: len([*(world / "runs/.store").glob(".building/*/*/*")]) > 1, 120)
        children = watched.children(recursive=True)
        assert children
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert psutil.wait_procs(children, 30)[1] == []
    done = subprocess.run([*words, "finetune.epochs=1"], cwd=world, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_what_another_process_has_made_is_heard_of_once(world: Path) -> None:
    request = replace(request_of(world), seeds=(0, 1))
    plans, heard = plan_all(request), Heard()
    contexts = [Context(plan.task, plan.precision, 1, heard) for plan in plans]
    missing = missing_stages(plans, contexts, Store.of_runs(request.root))
    run_all(request_of(world))
    build_missing(missing, Store(world / "runs/.store"), Turns(plans, heard))
    assert heard.elsewhere == [(node.label, plans[0].name) for node in plans[0].nodes]
    assert heard.begun == [node.label for node in plans[1].nodes]
    assert contexts[0].seen == {
        node.key: False for node in plans[0].nodes
    }  # a result says that they did not exist before


def test_an_error_names_its_run(world: Path) -> None:
    """The error is that of the process that continues, whichever met it first."""
    request = replace(
        request_of(world), seeds=(0, 1), jobs=2, overrides=("quantize.method=dynamic", "finetune.learning_rate=1e30")
    )
    with pytest.raises(CompressError, match=r"^int8-teacher-\S+-seed0-\w{6}: "):
        run_all(request)


@pytest.mark.parametrize("jobs", [0, 1025])
def test_a_number_of_processes_that_nobody_means_is_refused(world: Path, jobs: int) -> None:
    with pytest.raises(CompressError, match=f"^jobs: expected 1 to 1024, found {jobs}$"):
        run_all(request_of(world, jobs=jobs))
    assert not (world / "runs").exists()


def test_under_torchrun_it_is_refused(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(CompressError, match=r"^--jobs: under torchrun"):
        plan_all(request_of(world, jobs=2))
