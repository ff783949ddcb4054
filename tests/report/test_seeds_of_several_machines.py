"""Seeds that were run on several machines share a row, if one machine at most timed them; which were run where is said first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from report_tables import only

from compress.report import markdown_table
from compress.report.page import tasks_of
from compress.report.sections import sentences
from compress.report.sections.details import environment
from compress.results import Result

from .test_namesake_teachers import origin
from .test_untimed import untimed

Make = Callable[..., Result]
HERE, THERE = "AMD EPYC 9R14", "Intel Xeon 8488C"


def there(result: Result, isa: tuple[str, ...] = ("avx2", "avx512_vnni", "amx_int8")) -> Result:
    return result.model_copy(
        update={"machine": result.machine.model_copy(update={"cpu": THERE, "isa": isa})},
    )


def seeds(results: list[Result]) -> dict[str, list[tuple[int, str]]]:
    """Return the seed and the CPU of each run, by the label of its row."""
    return {variant.label: [(run.seed, run.machine.cpu) for run in variant.runs] for variant in only(results).variants}


def said(results: list[Result]) -> str:
    """Return the line on machines of a written page, without the precision."""
    text = markdown_table(results)
    (line,) = [line for line in text.replace("\\", "").splitlines() if "different machines" in line]
    return line.replace(f"; trained in {results[0].settings['precision']}", "")


def test_untimed_seeds_of_another_machine_join_those_that_were_timed(fake: Make) -> None:
    runs = [there(untimed(fake(seed=2))), fake(), there(untimed(fake(seed=1)))]
    assert seeds(runs) == {"distilbert": [(0, HERE), (1, THERE), (2, THERE)]}
    task = only(runs)
    assert [row.label for row in task.baselines] == ["teacher fp32"]
    assert task.baseline.latency((1, 32)) == only([fake()]).baseline.latency((1, 32))
    assert len(task.baseline.models) == 3
    places = f"[A] {HERE}: seed 0 of SST-2. [B] {THERE}: seeds 1 and 2 of SST-2. All times are of [A]."
    assert places in said(runs)
    assert sentences.lede(runs) == sentences.lede([fake()])


def test_tasks_of_one_machine_are_named_before_seeds_of_several(fake: Make) -> None:
    runs = [fake(), fake(task="mrpc"), there(untimed(fake(seed=1)))]
    assert f"machines. [A] {HERE}: MRPC, seed 0 of SST-2." in said(runs)
    assert [variant.label for task in tasks_of(runs) for variant in task.variants] == ["distilbert", "distilbert"]


def test_seeds_that_two_machines_timed_stay_apart(fake: Make) -> None:
    runs = [fake(), there(fake(seed=1))]
    assert seeds(runs) == {"distilbert [A]": [(0, HERE)], "distilbert [B]": [(1, THERE)]}
    assert sentences.lede(runs) == ""


def test_a_seed_that_was_run_twice_parts_the_machines_with_all_their_seeds(fake: Make) -> None:
    runs = [fake(), untimed(fake(seed=1)), there(fake()), there(untimed(fake(seed=1)))]
    assert seeds(runs) == {"distilbert [A]": [(0, HERE), (1, HERE)], "distilbert [B]": [(0, THERE), (1, THERE)]}
    runs = [fake(), there(untimed(fake())), there(untimed(fake(seed=1)))]
    assert seeds(runs) == {"distilbert [A]": [(0, HERE)], "distilbert [B]": [(0, THERE), (1, THERE)]}


@pytest.mark.parametrize(
    ("isa", "shared"), [(("avx2", "avx_vnni"), True), (("avx2",), False), (("neon", "i8mm"), True)]
)
def test_int8_sums_that_may_clip_are_rows_of_their_own(fake: Make, isa: tuple[str, ...], shared: bool) -> None:
    runs = [untimed(fake()), there(untimed(fake(seed=1)), isa)]
    assert list(seeds(runs)) == (["distilbert"] if shared else ["distilbert [A]", "distilbert [B]"])


@pytest.mark.parametrize("order", [1, -1])
def test_a_row_of_two_machines_beside_one_of_one_has_both_letters(fake: Make, order: int) -> None:
    runs = [there(untimed(fake(seed=1))), fake(), fake("int8")][::order]
    assert set(seeds(runs)) == {"distilbert [A, B]", "int8 [A]"}
    assert f"[A] {HERE}: seed 0 of SST-2. [B] {THERE}: seed 1 of SST-2 (distilbert)." in said(runs)
    assert said(runs).endswith("All times are of [A].")
    assert dict(environment(runs))["Machine A"].startswith(HERE)


def test_recipes_that_different_machines_timed_have_teachers_of_their_own(fake: Make) -> None:
    runs = [fake(), there(untimed(fake(seed=1))), untimed(fake("int8")), there(fake("int8", seed=1))]
    assert list(seeds(runs)) == ["distilbert [A, B; timed on A]", "int8 [A, B; timed on B]"]
    assert [row.label for row in only(runs).baselines] == [f"{label}, teacher fp32" for label in seeds(runs)]


def test_seeds_that_are_swapped_are_named_by_their_recipes(fake: Make) -> None:
    runs = [untimed(fake()), there(untimed(fake(seed=1))), untimed(fake("int8", seed=1)), there(untimed(fake("int8")))]
    assert f"[A] {HERE}: seed 0 of SST-2 (distilbert), seed 1 of SST-2 (int8). [B]" in said(runs)


def test_letters_that_are_the_same_leave_the_files_to_tell_rows_apart(fake: Make) -> None:
    def of(digest: str, seed: int, *, moved: bool) -> Result:
        run = untimed(fake(seed=seed, origin=origin(digest)))
        return there(run) if moved else run

    runs = [of("a", 0, moved=False), of("a", 1, moved=True), of("b", 2, moved=True), of("b", 3, moved=False)]
    assert list(seeds(runs)) == ["distilbert (aaaaaaaa)", "distilbert (bbbbbbbb)"]
