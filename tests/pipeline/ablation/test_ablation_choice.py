"""Choose rows of an ablation by label, with other students, and the command that repeats them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.ablation.rows import choose, chosen_rows, rows
from compress.pipeline.ablation.run import command_line, trained_student


def test_rows_are_chosen_by_label_beside_the_full_one() -> None:
    all_rows = rows("tinybert", corpus=True)
    assert [row.label for row in choose(all_rows, ["map top", "without general"])] == [
        "full",
        "without general",
        "map top",
    ]
    assert choose(all_rows, []) == all_rows
    with pytest.raises(
        CompressError, match=r"no row `map middle`; this recipe has: full, without general, .*map bottom"
    ):
        choose(all_rows, ["map middle"])


def test_the_command_makes_the_same_rows_again(tmp_path: Path) -> None:
    plain = Request(recipes=(), tasks=("sst2",))
    assert command_line("tinybert", plain, ()) == "compress ablate tinybert --task sst2"
    request = Request(
        recipes=(),
        tasks=("sst2", "mrpc"),
        teacher="minilm-l6",
        seeds=(2, 3, 4),
        base_seed=0,
        data_dir=Path("glue"),
        corpus=("a.txt", "b c"),
        overrides=("augment.copies=1",),
        refit=True,
    )
    assert command_line("tinybert", request, ("map top",)) == (
        "compress ablate tinybert --task sst2 --task mrpc --teacher minilm-l6 --seeds 3 --seed 2 --base-seed 0 "
        "--data-dir glue --corpus a.txt --corpus 'b c' --set augment.copies=1 --rows 'map top' --refit"
    )


def test_a_row_is_the_recipe_with_another_student() -> None:
    labels = ("student albert-6x384-mean", "without intermediate", "student albert-6x384-mean")
    full, without, other = choose(rows("albert", corpus=False), labels)
    assert (full.label, without.label, other.label) == ("full", "without intermediate", labels[0])
    assert (full.student, other.student) == (None, "albert-6x384-mean")
    assert other.recipe.stages == full.recipe.stages
    assert (other.recipe.name, other.recipe.title) == (
        "albert-student-albert-6x384-mean",
        "ALBERT: student albert-6x384-mean",
    )


def test_another_student_is_another_on_a_regression_task(tmp_path: Path) -> None:
    """There, plans are compared by their stages' settings and not by their keys."""
    for name in ("train", "dev"):
        lines = "\n".join(f"the {name} film {number},{number / 7}" for number in range(40))
        (tmp_path / f"{name}.csv").write_text(f"text,label\n{lines}\n")
    (tmp_path / "scores.yaml").write_text(
        "name: scores\ntext: [text]\nlabel: label\nkind: regression\nmetrics: [pearson]\nmax_length: 16\n"
        "files: {train: train.csv, dev: dev.csv}\n"
    )

    def learnt(layers: int) -> list[Any]:
        card = tmp_path / f"own{layers}.yaml"
        card.write_text(f"name: own{layers}\ntitle: Own\narchitecture: bert\nlayers: {layers}\ncopy_layers: first\n")
        full = rows("distilbert", corpus=False)[0].recipe
        request = Request((full,), (str(tmp_path / "scores.yaml"),), teacher="bert-mini", student=str(card))
        (plan,) = plan_all(request)
        return trained_student(plan)

    assert learnt(2) == learnt(2)
    assert learnt(2) != learnt(3)


def test_another_student_needs_no_part_that_could_be_left_out() -> None:
    with pytest.raises(CompressError, match="there is nothing to leave out"):
        rows("tinybert-general", corpus=False)
    student_rows = chosen_rows("tinybert-general", (), ["student tiny-2l"], corpus=False)
    assert [(row.label, row.student) for row in student_rows] == [("full", None), ("student tiny-2l", "tiny-2l")]
