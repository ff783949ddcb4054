"""benchmarks/peers: how work is cut into calls, what is timed, how processes are started, and the contents of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.catalog import load_recipe
from compress.errors import CompressError
from compress.quantize.methods import QUANTIZERS

PEERS = Path(__file__).parents[1] / "benchmarks/peers"


def test_ragged_texts_are_short_and_the_same_each_time(peers: Any):
    lengths = peers("inputs").ragged_lengths()
    assert (len(lengths), max(lengths)) == (128, 64)
    assert np.mean(lengths) == pytest.approx(26, abs=0.5)
    assert lengths == peers("inputs").ragged_lengths()


def test_groups_hold_every_sequence_once_within_the_tokens(peers: Any):
    inputs = peers("inputs")
    lengths = [5, 9, 64, 20, 20, 3, 33]
    for tokens in (40, 64, 500):
        groups = inputs.groups(lengths, tokens)
        assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
        assert all(len(group) == 1 or len(group) * lengths[group[0]] <= tokens for group in groups)
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
    """Compares the settings of its file with those of the recipe `int8`."""
    settings: dict[str, Any] = {}
    monkeypatch.setattr("compress.export.export_onnx", lambda source, out, **how: settings.update(how))
    monkeypatch.setattr(
        "compress.quantize.quantize_onnx", lambda source, out, spec, **how: settings.update(how, spec=spec)
    )
    ours = peers("ours")
    assert next(iter(ours.VARIANTS)) == ours.DEFAULT  # the one that is timed twice
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    ours.convert(ours.DEFAULT, tmp_path, tmp_path)
    specs = {stage.kind: stage.spec for stage in load_recipe("int8").stages}
    assert settings["spec"] == specs["quantize"]
    assert specs["export"].graph == "auto"  # the fast graph for a BERT
    assert (settings["graph"], settings["opset"]) == ("fast", specs["export"].opset)
    assert settings["int8_format"] in (None, QUANTIZERS[specs["quantize"].method].int8_format)
    assert len(settings["feeds"]) == ours._CALIBRATION


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


def of(result: dict[str, Any], cpu: str, isa: list[str], date: str, *runs: tuple[str, str, int]) -> dict[str, Any]:
    """Return a copy of `result` on another CPU, with a run for each of (kind, model, threads)."""
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
    runs = [(each["date"], [(run["kind"], run["threads"]) for run in each["runs"]]) for each in filed.filed(tmp_path)]
    assert runs == [
        ("2026-01-01", [("classification", 1)]),
        ("2026-01-03", [("classification", 2)]),
        ("2026-01-02", [("classification", 1), ("tagging", 1)]),
        ("2026-01-04", [("classification", 1)]),
    ]


def test_a_folder_without_measurements_is_one_line(peers: Any, tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="no measurements on file"):
        peers("filed").filed(tmp_path)


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
