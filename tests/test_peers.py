"""benchmarks/peers: how work is cut into calls, what is timed, how its processes are started, and what its page says."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from compress.catalog import load_recipe
from compress.children import run
from compress.quantize.methods import QUANTIZERS

PEERS = Path(__file__).parents[1] / "benchmarks/peers"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PEERS)
    return importlib.import_module


def test_ragged_texts_are_short_and_the_same_each_time(peers: Any):
    lengths = peers("inputs").ragged_lengths()
    assert (len(lengths), max(lengths)) == (128, 64)
    assert np.mean(lengths) == pytest.approx(26, abs=0.5)
    assert lengths == peers("inputs").ragged_lengths()


def test_groups_hold_every_sequence_once_within_the_tokens(peers: Any):
    inputs = peers("inputs")
    lengths = [5, 9, 64, 20, 20, 3, 33]
    for tokens in (40, 64, 500):
        made = inputs.groups(lengths, tokens)
        assert sorted(index for group in made for index in group) == list(range(len(lengths)))
        assert all(len(group) == 1 or len(group) * lengths[group[0]] <= tokens for group in made)
    assert inputs.groups(lengths, inputs.WHOLE) == [list(range(len(lengths)))]


@pytest.mark.parametrize("cell", ["1x32", "1x128", "32x128", "ragged"])
def test_all_ways_of_a_cell_hold_the_same_tokens(peers: Any, cell: str):
    inputs = peers("inputs")
    tokens = {sum(int(batch.mask.sum()) for batch in inputs.calls(cell, way)) for way in inputs.CELLS[cell]}
    assert len(tokens) == 1


def test_padding_is_at_the_end_and_has_the_id_zero(peers: Any):
    batch = peers("inputs").padded([2, 4])
    assert batch.mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert ((batch.ids > 0) == (batch.mask > 0)).all()


def samples(*milliseconds: float) -> dict[str, Any]:
    times = [{"wall": value + 1, "cpu": value} for value in milliseconds]
    middle = sorted(milliseconds)[len(milliseconds) // 2]
    return {"way": 1, "wall": middle + 1, "cpu": middle, "samples": times}


def test_a_ratio_compares_the_times_of_the_same_round(peers: Any):
    report = peers("report")
    slow_middle, fast = samples(2, 20, 2), samples(4, 40, 1)
    cell = {"mine": slow_middle, "other": fast}
    assert report.ratio(cell, "mine", "other", "cpu") == 0.5
    assert report.ratio(cell, "mine", "other", "wall") == pytest.approx(0.6)


def test_a_ratio_whose_samples_were_not_kept_is_the_published_one(peers: Any):
    cell = {
        "mine": {"way": 1, "wall": 3.0, "cpu": 2.0, "over": {"other": 0.7}},
        "other": {"way": 1, "wall": 9.0, "cpu": 8.0},
    }
    assert peers("report").ratio(cell, "mine", "other", "cpu") == 0.7


@pytest.fixture
def result(peers: Any) -> dict[str, Any]:
    again = peers("measuring").AGAIN
    agreement = {"largest_difference": 0.01, "correlation": 0.99, "decisions": 1.0}
    cells = {
        "1x32": {"mine": samples(2, 2), "other": samples(1, 1), again: samples(2, 2)},
        "1x128": {"mine": samples(4, 4), "second": samples(3, 3), "other": samples(6, 6), again: samples(4, 4)},
    }
    run = {"model": "m", "kind": "classification", "threads": 1, "cells": cells}
    run["failed"] = {"third": "no environment: no such version"}
    run["agreement"] = dict.fromkeys(("mine", "second", "other", again), agreement)
    ours = {"mine": True, "second": True, "other": False, "third": False}
    return {
        "command": "python run.py",
        "date": "2026-01-02",
        "machine": {"cpu": "a CPU", "cores": 1, "isa": ["avx2"]},
        "rounds": 2,
        "ragged": {"sequences": 1, "mean": 1.0, "longest": 1},
        "variants": {name: {"what": "a file", "ours": mine} for name, mine in ours.items()},
        "environments": {"ours": {"onnxruntime": "1"}},
        "runs": [run],
    }


def test_the_page_says_where_ours_is_slower_and_who_is_missing(peers: Any, result: dict[str, Any]):
    report = peers("report")
    page = report.render([result])
    assert "| our best | mine | second |" in page
    assert "| ours / other | **2.00 lost** | 0.50 |" in page
    assert "| second | failed | 4 (3) |" in page
    assert report.digits(2554.4) == "2,554"
    assert "* **third**: no environment: no such version" in page
    assert "| ours / third |" not in page
    assert "| a-avx2 | m | 1 | 2026-01-02 | **2.00 lost** other | 0.50 other | failed | failed |" in page


def test_margins_that_go_another_way_do_not_agree(peers: Any):
    measuring, head = peers("measuring"), peers("heads").HEADS["classification"]
    reference = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, -1.0]])
    same = measuring._agreement(head, reference, (reference + 0.1).tolist())
    assert same == {"largest_difference": pytest.approx(0.1), "correlation": pytest.approx(1), "decisions": 1.0}
    assert (
        measuring._agreement(head, reference, reference[:, ::-1].tolist())["correlation"] < measuring.LEAST_CORRELATION
    )


@pytest.mark.parametrize("kind", ["tagging", "span"])
def test_tokens_agree_where_they_are_real(peers: Any, kind: str) -> None:
    measuring, head, mask = peers("measuring"), peers("heads").HEADS[kind], peers("inputs").checked().mask
    reference = np.random.default_rng(0).normal(size=(*mask.shape, 2))
    padded = np.where(mask[..., None] == 1, reference + 0.1, 1e3)
    same = measuring._agreement(head, reference, padded.tolist())
    assert same == {"largest_difference": pytest.approx(0.1), "correlation": pytest.approx(1), "decisions": 1.0}
    other = measuring._agreement(head, reference, reference[:, :, ::-1].tolist())
    assert other["correlation"] < measuring.LEAST_CORRELATION
    assert other["decisions"] < 0.5


def test_several_outputs_stand_side_by_side(peers: Any) -> None:
    one, two = np.zeros((2, 3)), np.ones((2, 3))
    assert peers("heads").side_by_side([one]) is one
    assert peers("heads").side_by_side([one, two]).tolist() == np.stack([one, two], axis=-1).tolist()


def test_the_default_form_is_what_a_recipe_without_settings_makes(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the settings with which its file is written, beside those of the recipe `int8`."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr("compress.export.export_onnx", lambda source, out, **how: asked.update(how))
    monkeypatch.setattr(
        "compress.quantize.quantize_onnx", lambda source, out, spec, **how: asked.update(how, spec=spec)
    )
    ours = peers("ours")
    assert next(iter(ours.VARIANTS)) == ours.DEFAULT  # the one that is timed twice
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    ours.convert(ours.DEFAULT, tmp_path, tmp_path)
    specs = {stage.kind: stage.spec for stage in load_recipe("int8").stages}
    assert asked["spec"] == specs["quantize"]
    assert specs["export"].graph == "auto"  # of a BERT the fast graph
    assert (asked["graph"], asked["opset"]) == ("fast", specs["export"].opset)
    assert asked["int8_format"] in (None, QUANTIZERS[specs["quantize"].method].int8_format)
    assert len(asked["feeds"]) == ours._CALIBRATION


def test_the_default_form_stands_in_brackets_beside_the_fastest(peers: Any, result: dict[str, Any]) -> None:
    default = peers("ours").DEFAULT
    result["variants"][default] = {"what": "a file", "ours": True}
    (run,) = result["runs"]
    run["agreement"][default] = run["agreement"]["mine"]
    for cell in run["cells"].values():
        cell[default] = samples(5, 5)
    page = peers("report").render([result])
    assert "| ours / other | **2.00 lost** (**5.00 lost**) | 0.50 (0.83) |" in page
    assert f"`{default}`" in page


def test_openvino_s_telemetry_is_off_in_every_child(peers: Any, tmp_path: Path) -> None:
    """Asked of openvino itself, as convert_model and NNCF set it up, by a user who has never been asked."""
    code = "from openvino.tools.ovc.telemetry_utils import init_ovc_telemetry as telemetry; print(telemetry().consent)"
    variables = peers("process")._variables(Path(sys.executable), 1, ours=False)
    for expected, less in (("False", {}), ("True", {"CI": ""})):
        home = tmp_path / expected
        home.mkdir()
        environment = {**variables, "HOME": str(home), **less}
        assert run([sys.executable, "-c", code], 120, environment=environment) == f"{expected}\n"


def test_an_environment_that_hangs_is_given_up(peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer is left out, with the reason in a line; the others are measured."""
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    environments, candidates = peers("environments"), peers("candidates")
    monkeypatch.setattr(environments.sys, "executable", str(program))
    monkeypatch.setattr(environments, "_SECONDS", 0.2)
    found, missing = candidates.interpreters(["pytorch"], tmp_path / "environments", lambda *words: None)
    assert list(found) == [candidates.OURS]
    assert {*missing} == {*peers("pytorch").VARIANTS}
    assert all(reason.startswith("no environment: ") for reason in missing.values())
    assert "had not ended after 0.2 s" in missing["PyTorch eager"]


@pytest.fixture
def hanging(tmp_path: Path) -> Path:
    """An interpreter that starts a process, writes both ids into `pids`, and answers nothing."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $$ $! > {tmp_path}/pids\nwait\n")
    program.chmod(0o755)
    return program


def assert_gone(file: Path) -> None:
    for pid in map(int, file.read_text().split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_conversion_that_hangs_is_killed_and_listed(peers: Any, tmp_path: Path, hanging: Path) -> None:
    candidates = peers("candidates")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/model.safetensors").write_bytes(b"weights")
    made, failed = candidates.convert_all(tmp_path, {"ctranslate2_int8": hanging}, lambda *words: None, seconds=1)
    assert made == []
    assert failed.keys() == {"CTranslate2 int8"}
    assert "no answer in 1 s to `convert`" in failed["CTranslate2 int8"]
    assert_gone(tmp_path / "pids")


PEER = """
import os, time
import numpy as np
PACKAGES = ("numpy",)
def load(variant, out, threads):
    def predict(ids, mask):
        if variant == "hangs" and len(ids) == 1:
            open(out / "pids", "w").write(str(os.getpid()))
            time.sleep(600)
        return np.stack([np.zeros(len(ids)), np.linspace(-1, 1, len(ids))], 1)
    return predict
"""


def test_a_candidate_that_hangs_is_killed_and_the_others_are_measured(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: dict[str, Any]
) -> None:
    """In processes of their own: one answers at first, then never again."""
    candidates, measuring, inputs = peers("candidates"), peers("measuring"), peers("inputs")
    for name in ("child.py", "inputs.py"):
        shutil.copy(PEERS / name, tmp_path)
    (tmp_path / "toy.py").write_text(PEER)
    start = partial(peers("process").start, program=tmp_path / "child.py")
    monkeypatch.setattr(candidates, "start", start)
    monkeypatch.setattr(measuring, "CELLS", {"1x32": (1,)})
    names = ("mine", "hangs")
    listed = [candidates.Candidate(name, "toy", Path(sys.executable), tmp_path) for name in names]
    count = len(inputs.checked().ids)
    reference = np.stack([np.zeros(count), np.linspace(-1, 1, count)], 1)
    head = peers("heads").HEADS["classification"]
    cell = measuring._cell

    def impatient(children: Any, *arguments: Any) -> Any:  # from here on: a busy machine takes its time to start them
        assert children.running["hangs"].timeout == 60
        children.running["hangs"].timeout = 0.3
        return cell(children, *arguments)

    monkeypatch.setattr(measuring, "_cell", impatient)
    run = measuring.measure(listed, head, reference, 1, 1, lambda *words: None, seconds=60)
    assert run["cells"]["1x32"].keys() == {"mine", measuring.AGAIN}
    assert "no answer in 0.3 s to `run`" in run["failed"]["hangs"]
    assert_gone(tmp_path / "pids")
    result["variants"]["hangs"] = {"what": "a file", "ours": False}
    result["runs"] = [{"model": "m", "kind": "classification", **run}]
    page = peers("report").render([json.loads(json.dumps(result))])
    assert "* **hangs**: no answer in 0.3 s to `run`" in page
    assert "| hangs | failed | 0.0000 | 1.000 | 1.00 |" in page


@pytest.mark.parametrize("flags", [("avx2", "avx512_vnni"), ("avx2", "avx512_bf16")])
def test_bf16_is_measured_where_the_cpu_has_it_and_said_where_not(
    peers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    candidates = peers("candidates")
    monkeypatch.setattr(candidates, "isa", lambda: flags)
    monkeypatch.setattr(candidates, "_convert", lambda *_: None)
    pythons = {peer: Path(sys.executable) for peer in ("openvino_nncf", "pytorch")}
    made, failed = candidates.convert_all(tmp_path, pythons, lambda *words: None)
    bf16 = {*peers("openvino_nncf").NEEDS_BF16, *peers("pytorch").NEEDS_BF16}
    assert len(bf16) == 4
    has = "avx512_bf16" in flags
    assert failed == ({} if has else dict.fromkeys(failed, candidates.NO_BF16))
    assert {*failed} == (set() if has else bf16)
    assert bf16 <= {candidate.name for candidate in made} if has else bf16.isdisjoint(c.name for c in made)


def of(result: dict[str, Any], cpu: str, isa: list[str], date: str, *runs: tuple[str, str, int]) -> dict[str, Any]:
    """A copy of `result` on another CPU, with a run for each of (kind, model, threads)."""
    named = [{**result["runs"][0], "kind": kind, "model": model, "threads": threads} for kind, model, threads in runs]
    return {**result, "machine": {"cpu": cpu, "cores": 1, "isa": isa}, "date": date, "runs": named}


def test_a_kind_of_cpu_is_its_vendor_and_its_extensions(peers: Any) -> None:
    kind = peers("filed").cpu_kind
    assert kind({"cpu": "AMD EPYC", "isa": ["avx2"]}) == "amd-avx2"
    assert kind({"cpu": "13th Gen Intel(R) Core(TM) i7", "isa": ["avx2", "avx_vnni"]}) == "intel-avx2-avx_vnni"
    assert kind({"cpu": "", "isa": []}) == "cpu"


def test_a_new_measurement_replaces_its_like_alone(peers: Any, tmp_path: Path, result: dict[str, Any]) -> None:
    filed = peers("filed")
    vnni = ["avx2", "avx512_vnni"]
    one, two, tagger = ("classification", "m", 1), ("classification", "m", 2), ("tagging", "m", 1)
    path = filed.file_result(of(result, "AMD EPYC", ["avx2"], "2026-01-01", one), tmp_path)
    before = path.read_bytes()
    filed.file_result(of(result, "Intel Xeon", vnni, "2026-01-02", one, two, tagger), tmp_path)
    filed.file_result(of(result, "Intel Xeon", vnni, "2026-01-03", two), tmp_path)
    filed.file_result(of(result, "Intel Xeon", [*vnni, "amx_int8"], "2026-01-04", one), tmp_path)
    assert path.read_bytes() == before
    names = ["amd-avx2", "intel-avx2-avx512_vnni", "intel-avx2-avx512_vnni-amx_int8"]
    assert sorted(file.stem for file in tmp_path.iterdir()) == names
    found = [(each["date"], [(run["kind"], run["threads"]) for run in each["runs"]]) for each in filed.filed(tmp_path)]
    assert found == [
        ("2026-01-01", [("classification", 1)]),
        ("2026-01-03", [("classification", 2)]),
        ("2026-01-02", [("classification", 1), ("tagging", 1)]),
        ("2026-01-04", [("classification", 1)]),
    ]


def test_the_page_is_drawn_from_all_kinds_of_cpu(peers: Any, tmp_path: Path, result: dict[str, Any]) -> None:
    filed, one, tagger = peers("filed"), ("classification", "m", 1), ("tagging", "m", 1)
    filed.file_result(of(result, "AMD EPYC", ["avx2"], "2026-01-01", one), tmp_path)
    filed.file_result(of(result, "Intel Xeon", ["avx2"], "2026-01-02", one, tagger), tmp_path)
    page = peers("report").render(filed.filed(tmp_path))
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings[2:7] == [
        "## amd-avx2",
        "### m, 1 thread",
        "## intel-avx2",
        "### m, 1 thread",
        "### m, tagging, 1 thread",
    ]
    assert "2026-01-02, Intel Xeon, 1 usable core(s), avx2; 2 rounds" in page
    assert page.count("| ours / other | **2.00 lost** | 0.50 |") == 3


def test_the_committed_pages_are_drawn_from_the_committed_figures(peers: Any) -> None:
    reports = PEERS.parents[1] / "reports"
    for name, program in (("peers", "report"), ("text-to-answer", "text_report")):
        drawn = peers(program).render(peers("filed").filed(reports / name))
        assert drawn == (reports / f"{name}.md").read_text(encoding="utf-8"), (
            f"draw it again: {program}.py reports/{name}"
        )
