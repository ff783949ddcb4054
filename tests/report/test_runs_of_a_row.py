"""Which runs share a row of a report, and what it shows of several: seeds, machines, threads, settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_tables import column, only

from compress.errors import CompressError
from compress.metrics import ClassHeadline
from compress.provenance import Corpus
from compress.report.grouping.groups import median_latency
from compress.report.page import page_of, tasks_of
from compress.report.sections import sentences
from compress.report.sections.details import environment
from compress.report.sections.scores import main_table
from compress.results import Latency, Result
from compress.results.fidelity import Delta
from compress.stats.significance import paired_bootstrap_seeds


def test_seeds_are_mean_and_spread_and_times_their_median(fake: Callable[..., Result]) -> None:
    results = [fake(seed=seed) for seed in (2, 0, 1)]
    task = only(results)
    scores = [result.models[2].headline for result in results]
    assert task.variants[0].seeds == (0, 1, 2)
    assert column(main_table(task), "Accuracy")[4] == f"{np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}"
    slow = results[0].models[0].onnx
    assert slow is not None
    tripled = tuple(latency.model_copy(update={"p50": latency.p50 * 3}) for latency in slow.latency)
    changed = results[0].models[0].model_copy(update={"onnx": slow.model_copy(update={"latency": tripled})})
    outlier = results[0].model_copy(update={"models": (changed, *results[0].models[1:])})
    timing = only([outlier, *results[1:]]).baseline.latency((1, 32))
    assert timing is not None
    assert timing.p50 == slow.latency[0].p50


def test_students_of_one_name_and_other_layers_are_no_seeds_of_one_another(fake: Callable[..., Result]) -> None:
    def with_layers(run: Result, layers: str) -> Result:
        models = [
            model.model_copy(
                update={"architecture": f"{layers if model.name == 'student' else 6} x 384, 12 heads, FFN 1536"}
            )
            for model in run.models
        ]
        return run.model_copy(update={"models": tuple(models)})

    changed = only([with_layers(fake(), "3"), with_layers(fake(seed=1), "4")])  # the card was edited between them
    assert [variant.label for variant in changed.variants] == [
        f"distilbert ({layers} x 384, 12 heads, FFN 1536)" for layers in (3, 4)
    ]
    (alike,) = only([with_layers(fake(), "3"), with_layers(fake(seed=1), "3")]).variants
    assert (alike.label, alike.seeds) == ("distilbert", (0, 1))
    (pruned,) = only([with_layers(fake(), "3 of"), with_layers(fake(seed=1), "4 of")]).variants  # another shape by seed
    assert pruned.seeds == (0, 1)
    stages = [{"prune": {"flops": 0.5}}]
    by_stage = [run.model_copy(update={"recipe": {**run.recipe, "stages": stages}}) for run in changed.results]
    (pruned,) = only(by_stage).variants
    assert pruned.seeds == (0, 1)


def test_students_of_one_name_and_another_start_are_no_seeds_of_one_another(fake: Callable[..., Result]) -> None:
    def starting(run: Result, copied: Any, **fields: Any) -> Result:
        return run.model_copy(update={"student_card": {"layers": 3, "copy_layers": copied, **fields}})

    def labels(*runs: Result) -> list[tuple[str, tuple[int, ...]]]:
        return [(variant.label, variant.seeds) for variant in only(list(runs)).variants]

    one = starting(fake(), "every_other")
    assert labels(one, starting(fake(seed=1), "every_other")) == [("distilbert", (0, 1))]
    assert labels(one, starting(fake(seed=1), [0, 2, 4])) == [
        ("distilbert (copy_layers=every_other)", (0,)), ("distilbert (copy_layers=[0, 2, 4])", (1,)),
    ]  # fmt: skip
    assert labels(one, starting(fake(seed=1), "every_other", init="prune")) == [
        ("distilbert (init=as usual)", (0,)), ("distilbert (init=prune)", (1,)),
    ]  # fmt: skip
    assert labels(one, fake(seed=1)) == [("distilbert", (0, 1))]  # older results do not record it


def test_runs_on_other_plain_text_are_rows_of_their_own(fake: Callable[..., Result]) -> None:
    def on_text(run: Result, name: str, digest: str) -> Result:
        return run.model_copy(update={"corpus": Corpus(names=(name,), fingerprint=digest * 32)})

    def labels(*runs: Result) -> list[str]:
        return [variant.label for variant in only(list(runs)).variants]

    one, other = on_text(fake(), "a.txt", "0a"), on_text(fake(run="b"), "b.txt", "0b")  # of the same seed
    assert labels(one, other) == ["distilbert (a.txt)", "distilbert (b.txt)"]
    assert labels(one, on_text(fake(seed=1), "b.txt", "0b")) == ["distilbert (a.txt)", "distilbert (b.txt)"]
    changed = on_text(fake(run="b"), "a.txt", "0b")
    assert labels(one, changed) == [f"distilbert (text {digest * 4})" for digest in ("0a", "0b")]
    assert labels(one, on_text(fake(seed=1), "elsewhere/a.txt", "0a")) == ["distilbert"]
    assert labels(one, fake(seed=1)) == ["distilbert"]  # an older result may not record it
    assert labels(one, other, fake(seed=1)) == [
        *("distilbert (a.txt)", "distilbert (b.txt)", "distilbert (text not recorded)")
    ]


def test_without_predictions_seeds_go_by_their_spread_and_own_intervals(fake: Callable[..., Result]) -> None:
    """Two seeds, −1.03 and +0.97: the variance of their mean is 2² / 2 / 2 = 1 over seeds, plus that of the examples of one seed, from
    the widths 2.64 and 7 of their intervals. The critical value is between the normal one and Student's t."""
    results = [fake(seed=seed) for seed in range(2)]
    shifted = results[1].models[2].model_copy(update={"delta": Delta(points=0.97, low=-5, high=2, mcnemar_p=None)})
    results[1] = results[1].model_copy(update={"models": (*results[1].models[:2], shifted)})
    delta = only(results).rows[4].delta
    of_examples = ((2.64 / 3.91993) ** 2 + (7 / 3.91993) ** 2) / 2
    share = 1 / (1 + of_examples)
    half = (1.95996 + (12.7062 - 1.95996) * 5 * share**2 / (1 + 4 * share**2)) * (1 + of_examples) ** 0.5
    assert delta is not None
    assert (delta.points, delta.low, delta.high) == pytest.approx((-0.03, -0.03 - half, -0.03 + half), abs=1e-3)
    assert "spread of the seeds and their own intervals" in page_of(tasks_of(results)).reading[-1]


def test_with_predictions_seeds_are_resampled_together(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    results = [run_directory(fake(seed=seed)) for seed in range(3)]
    runs = tmp_path / "runs"
    pairs, gold = [], np.zeros(0)
    for result in results:
        with np.load(runs / result.run / "predictions.npz") as arrays:
            pairs.append((arrays["teacher-fp32/dev"], arrays["student-int8/dev"]))
            gold = arrays["gold/dev"]
    expected = paired_bootstrap_seeds(ClassHeadline(("accuracy",)), pairs, gold)
    for folders in ([runs], [runs / result.run for result in results]):
        delta = only(results, folders).rows[4].delta
        assert delta is not None
        assert (delta.points, delta.low, delta.high) == expected
    assert "predictions of all seeds" in page_of(tasks_of(results, [runs]), [runs]).reading[-1]


def test_predictions_of_another_run_are_refused(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    results = [run_directory(fake(seed=seed)) for seed in range(2)]
    wrong = results[1].models[2].model_copy(update={"headline": 12.0})
    results[1] = results[1].model_copy(update={"models": (*results[1].models[:2], wrong)})
    with pytest.raises(CompressError, match=r"seed1-a1b2c3/predictions\.npz: its student-int8 do not give the score"):
        tasks_of(results, [tmp_path / "runs"])


def test_different_machines_are_a_warning_and_rows_of_their_own(fake: Callable[..., Result]) -> None:
    one = fake()
    other = fake(machine=one.machine.model_copy(update={"cpu": "Intel Xeon 8488C"}))
    task = only([one, other])
    (warning,) = sentences.warnings([one, other])
    assert "[A] AMD EPYC 9R14: seed 0 of SST-2; trained in fp32. [B] Intel Xeon 8488C: seed 0 of SST-2;" in warning
    assert warning.endswith("Latencies of different machines cannot be compared.")
    assert {row.recipe for row in task.rows} == {"distilbert [A]", "distilbert [B]"}
    assert sentences.lede([one, other]) == ""


def test_fewer_cores_do_not_make_another_machine(fake: Callable[..., Result]) -> None:
    one = fake(seed=0)
    cores = one.machine.cores - 1
    fewer = fake(
        seed=1,
        machine=one.machine.model_copy(update={"cores": cores}),
        settings={**one.settings, "threads": cores},
    )
    assert sentences.warnings([fewer, one]) == []
    assert len(only([fewer, one]).variants) == 1
    assert dict(environment([fewer, one]))["Machine"] == dict(environment([one]))["Machine"]


def test_runs_timed_with_other_threads_are_rows_of_their_own(fake: Callable[..., Result]) -> None:
    one, other = fake(), fake("int8")
    quicker = [
        model.model_copy(update={"onnx": model.onnx and model.onnx.model_copy(update={"threads": 2})})
        for model in other.models
    ]
    other = other.model_copy(update={"models": tuple(quicker)})
    task = only([one, other])
    assert [row.name for row in task.rows].count("teacher fp32") == 4  # for each run, plus PyTorch eager
    assert "threads: compare only models of equal threads" in " ".join(sentences.warnings([one, other]))


def test_machines_that_timed_nothing_have_no_latencies_to_confuse(fake: Callable[..., Result]) -> None:
    results = []
    for cpu in ("AMD EPYC 9R14", "Intel Xeon 8488C"):
        result = fake(noise=())
        models = tuple(model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models)
        machine = result.machine.model_copy(update={"cpu": cpu})
        results.append(result.model_copy(update={"models": models, "machine": machine}))
    (warning,) = sentences.warnings(results)
    assert "[A] AMD EPYC 9R14: " in warning
    assert warning.endswith("[B] Intel Xeon 8488C: seed 0 of SST-2; trained in fp32.")


def without_times(result: Result) -> Result:
    models = tuple(model.model_copy(update={"onnx": None, "torch_eager": None}) for model in result.models)
    return result.model_copy(update={"models": models, "noise": ()})


def on_another_machine(result: Result) -> Result:
    return result.model_copy(
        update={
            "machine": result.machine.model_copy(update={"cpu": "Intel Xeon 8488C"}),
            "settings": {**result.settings, "precision": "bf16"},
        }
    )


def test_tasks_of_two_machines_that_are_timed_on_one_share_the_names_of_rows(fake: Callable[..., Result]) -> None:
    one = fake()
    other = one.model_copy(update={"task": one.task.model_copy(update={"name": "mrpc", "title": "MRPC"})})
    other = on_another_machine(other)
    untimed = [one, without_times(other)]
    assert {row.recipe for task in tasks_of(untimed) for row in task.rows if row.recipe} == {"distilbert"}
    (warning,) = sentences.warnings(untimed)
    assert f"[A] AMD EPYC 9R14: {one.task.title}; trained in {one.settings['precision']}." in warning
    assert "[B] Intel Xeon 8488C: MRPC; trained in bf16." in warning
    assert warning.endswith("All times are of [A].")
    assert sentences.lede(untimed) == sentences.lede([one])
    timed = [one, other]
    assert {row.recipe for task in tasks_of(timed) for row in task.rows if row.recipe} == {
        "distilbert [A]",
        "distilbert [B]",
    }
    assert "Latencies of different machines cannot be compared" in sentences.warnings(timed)[0]


def test_one_recipe_run_in_several_ways_is_told_apart(fake: Callable[..., Result]) -> None:
    other = fake(teacher="bert-base", student="distilbert-6l", run="x")
    labels = [variant.label for variant in only([fake(), other]).variants]
    assert labels == ["distilbert (minilm-l6)", "distilbert (bert-base)"]
    changed = fake(run="y").model_copy(update={"recipe": {**fake().recipe, "precision": "bf16"}})
    assert [variant.label for variant in only([fake(), changed]).variants] == ["distilbert", "distilbert #2"]


def test_teachers_of_one_seed_trained_in_two_ways_have_names_of_their_own(fake: Callable[..., Result]) -> None:
    def run(epochs: float) -> Result:
        result = fake("int8", run=f"r{epochs}")
        models = [model.model_copy(update={"headline": model.headline + epochs}) for model in result.models]
        models[0] = models[0].model_copy(update={"scores": {"dev": {"accuracy": models[0].headline}}})
        recipe = {"name": "int8", "stages": [{"finetune": {"epochs": epochs}}]}
        return result.model_copy(update={"recipe": recipe, "models": tuple(models)})

    task = only([run(1.0), run(3.0)])
    expected = [f"int8 (finetune.epochs={epochs}), teacher fp32" for epochs in ("1.0", "3.0")]
    assert [row.label for row in task.baselines] == expected
    assert len({row.label for row in task.rows if not row.eager}) == 4


def test_runs_of_one_recipe_are_told_apart_by_what_was_set(fake: Callable[..., Result]) -> None:
    def run(name: str, stages: list[dict[str, Any]]) -> Result:
        return fake(run=name).model_copy(update={"recipe": {"name": "int8", "stages": stages}})

    def labels(*fields: dict[str, Any]) -> list[str]:
        stages = [[{"finetune": {"epochs": 3.0}}, {"distill": {"name": "prediction", **each}}] for each in fields]
        return [
            variant.label
            for variant in only([run(f"r{i}", recipe_stages) for i, recipe_stages in enumerate(stages)]).variants
        ]

    assert labels({"epochs": 1}, {"epochs": 2}) == ["int8 (prediction.epochs=1)", "int8 (prediction.epochs=2)"]
    assert labels({"a": True, "b": "x"}, {"a": False}) == [
        "int8 (prediction.a=true, prediction.b=x)",
        "int8 (prediction.a=false)",
    ]
    assert labels({"losses": ["x" * 80]}, {"losses": []}) == ["int8", "int8 #2"]
    without = [run("a", [{"augment": {"copies": 20}}, {"export": {}}]), run("b", [{"export": {}}])]
    assert [variant.label for variant in only(without).variants] == ["int8", "int8 (without augment)"]


def test_seeds_have_no_interval_of_their_middle() -> None:
    times: dict[str, Any] = {"batch": 1, "length": 32, "examples_per_second": 500, "speedup": 1, "runs": 30}
    seeds = [Latency(p50=p50, p50_interval=(p50 - 1, p50 + 1), **times) for p50 in (2, 6)]
    latency = median_latency(seeds)
    assert latency is not None
    assert (latency.p50, latency.p50_interval, latency.runs, latency.starts) == (4, None, 30, 1)


def test_cpu_time_has_a_middle_where_every_seed_has_one() -> None:
    times: dict[str, Any] = {"batch": 1, "length": 32, "p90": 3, "p99": 4, "examples_per_second": 500, "speedup": 1}
    times["runs"] = 30
    seeds = [Latency(p50=p50, cpu_p50=p50 / 2, cpu_speedup=1, **times) for p50 in (1, 2, 9)]
    middle_of_all = median_latency(seeds)
    assert middle_of_all is not None
    assert (middle_of_all.p50, middle_of_all.cpu_p50) == (2, 1)
    older = seeds[0].model_copy(update={"cpu_p50": None, "cpu_speedup": None})
    with_an_older = median_latency([older, *seeds[1:]])
    assert with_an_older is not None
    assert (with_an_older.p50, with_an_older.cpu_p50, with_an_older.cpu_speedup) == (2, None, None)
