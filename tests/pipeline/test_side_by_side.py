"""Several processes that share the stages of several runs: the same results, each stage made once, none lost with its process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from recipe_runs import compress as command
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Listener, Request, plan_all, run, run_all
from compress.pipeline.plan import Context
from compress.pipeline.side_by_side import build_missing, missing_stages
from compress.store import Store


class Heard(Listener):
    """Labels of the stages that were begun here, in order, and of those made elsewhere."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.elsewhere: list[tuple[str, str]] = []

    def stage(self, label: str, cached: bool) -> None:
        self.begun += [] if cached else [label]

    def made(self, label: str, run: str) -> None:
        self.elsewhere.append((label, run))


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n" * 9)
    return tmp_path


def request(world: Path, root: str = "runs", **more: Any) -> Request:
    return Request(
        ("int8",), (str(world / "task.yaml"),), teacher=str(world / "teacher"), root=world / root, precision="fp32",
        threads=1, bench=None, overrides=("quantize.method=dynamic", "finetune.epochs=1"), **more,
    )  # fmt: skip


def stages(root: Path) -> dict[str, dict[str, Any]]:
    """Key -> the hashes of the files of each artefact of a store, but for logs, which have times."""
    found = {}
    for path in root.joinpath(".store").glob("*/manifest.json"):
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        found[path.parent.name] = {name: entry["sha256"] for name, entry in files.items() if name != "log.jsonl"}
    return found


def test_two_processes_come_to_what_one_does(world: Path) -> None:
    """To the byte, by the command, which names each stage once."""
    words = [
        "run",
        "int8",
        "--task",
        "task.yaml",
        "--teacher",
        "teacher",
        "--seeds",
        "3",
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
    assert len(stages(world / "both")) > 9
    said = [line.split()[:2] for line in both.stderr.splitlines()]
    begun, made = ([words[1] for words in said if words[:1] == [kind]] for kind in ("run", "made"))
    assert (
        sorted(each for each in begun + made if each in ("finetune", "quantize")) == ["finetune"] * 3 + ["quantize"] * 3
    )
    for name in ("report.md", "report.html"):
        assert (world / "both" / "report" / name).is_file()


def test_a_further_process_builds_all_that_is_free(world: Path) -> None:
    asked = replace(request(world), seeds=(0, 1))
    run._help(asked)
    plans = plan_all(asked)
    assert set(stages(asked.root)) == {node.key for plan in plans for node in plan.nodes}
    heard = Heard()
    run_all(replace(asked, jobs=2), heard)
    assert [label for label in heard.begun if not label.startswith(("evaluate", "similarity"))] == heard.elsewhere == []


def test_what_another_process_is_at_is_left_to_it_and_taken_up_where_that_ends(world: Path) -> None:
    asked = replace(request(world), seeds=(0, 1))
    plans, heard, cache = plan_all(asked), Heard(), Store(world / "runs/.store")
    contexts = [Context(plan.task, plan.precision, 1, heard) for plan in plans]
    missing = missing_stages(plans, contexts, asked.root)
    first = plans[0].nodes[0].key
    assert next(iter(missing)) == first
    cache.sweep()
    with FileLock(world / "runs/.store/.locks" / first):  # the other process
        assert cache.is_building(first) and not cache.is_building(plans[1].nodes[0].key)
        work = threading.Thread(target=build_missing, args=(missing, cache), daemon=True)
        work.start()
        deadline = time.monotonic() + 120
        while set(missing) - set(stages(asked.root)) != {node.key for node in plans[0].nodes}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert heard.begun == [node.label for node in plans[1].nodes]
    work.join(120)
    assert set(stages(asked.root)) == set(missing) and not work.is_alive()
    assert heard.begun == [node.label for plan in reversed(plans) for node in plan.nodes] and heard.elsewhere == []


def test_what_another_process_has_made_is_heard_of_once(world: Path) -> None:
    asked = replace(request(world), seeds=(0, 1))
    plans, heard = plan_all(asked), Heard()
    contexts = [Context(plan.task, plan.precision, 1, heard) for plan in plans]
    missing = missing_stages(plans, contexts, asked.root)
    run_all(request(world))
    build_missing(missing, Store(world / "runs/.store"))
    assert heard.elsewhere == [(node.label, plans[0].name) for node in plans[0].nodes]
    assert heard.begun == [node.label for node in plans[1].nodes]
    assert contexts[0].seen == {
        node.key: False for node in plans[0].nodes
    }  # a result says that they were not there before


def test_an_error_names_its_run(world: Path) -> None:
    """That of the process which goes on, whichever met it first."""
    asked = replace(
        request(world), seeds=(0, 1), jobs=2, overrides=("quantize.method=dynamic", "finetune.learning_rate=1e30")
    )
    with pytest.raises(CompressError, match=r"^int8-teacher-\S+-seed0-\w{6}: "):
        run_all(asked)


@pytest.mark.parametrize("jobs", [0, 1025])
def test_a_number_of_processes_that_nobody_means_is_refused(world: Path, jobs: int) -> None:
    with pytest.raises(CompressError, match=f"^jobs: expected 1 to 1024, found {jobs}$"):
        run_all(request(world, jobs=jobs))
    assert not (world / "runs").exists()


def test_under_torchrun_it_is_refused(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "2")):
        monkeypatch.setenv(name, value)
    with pytest.raises(CompressError, match=r"^--jobs: under torchrun"):
        plan_all(request(world, jobs=2))
