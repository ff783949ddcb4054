"""Plans of recipes with pruning, and what is refused before anything runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from prune_runs import FILES, planned, request

from compress.cli.plans import plan_documents, print_plans
from compress.errors import CompressError
from compress.pipeline import plan_all, run_all
from compress.pipeline.plan import Node
from compress.pipeline.stages.prune import budget as prune_budget
from compress.spec.stages import Prune

EMBEDDING = """
name: toy
kind: embedding
text: [sentence1, sentence2]
label: score
metrics: [spearman]
max_length: 16
synthetic: {generator: similarity, train: 40, dev: 8}
"""


def test_a_pruned_teacher_is_a_model_beside_the_baseline(world: Path) -> None:
    plan = planned(world, "alone")
    assert plan.models == ("teacher-fp32", "teacher-pruned-fp32", "teacher-pruned-int8")
    assert (plan.checkpoint("teacher"), plan.checkpoint("teacher-pruned")) == ("teacher", "teacher-pruned")


def test_a_pruned_student_takes_the_place_of_the_student(world: Path) -> None:
    plan = planned(world, "small", student="one")
    assert plan.models == ("teacher-fp32", "student-fp32", "student-int8")
    nodes = {node.id: node for node in plan.nodes}
    assert nodes["student-pruned"].inputs == {"model": "student"}
    assert nodes["student-qat"].inputs == {"model": "student-pruned"}


def test_the_plan_says_that_the_run_chooses_the_widths(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for recipe, student, name in (("alone", None, "teacher-pruned"), ("small", "one", "student-pruned")):
        more = {} if student is None else {"student": student}
        (document,) = plan_documents([planned(world, recipe, **more)], world / "runs")
        pruned = document["models"][name]
        assert pruned["architecture"].endswith("x 32, sizes chosen by the run")
        assert (pruned["parameters"], pruned["flops_per_token"]) == (None, None)
    (document,) = plan_documents([planned(world, "recovered", "prune.latency=0.5")], world / "runs")
    assert list(document["models"]) == ["teacher", "teacher-pruned"]
    print_plans([document])
    assert "latency 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [
        ((), "flops 0.5, examples 24\n"),
        (("prune.score=fisher", "prune.repair=least_squares"), "flops 0.5, examples 24\n"),
        (("prune.score=obs",), "flops 0.5, examples 24, score obs\n"),
        (("prune.score=obs", "prune.repair=false"), "flops 0.5, examples 24, score obs, repair false\n"),
    ],
)
def test_the_plan_shows_how_it_prunes_where_that_is_not_the_default(
    world: Path, capsys: pytest.CaptureFixture[str], overrides: tuple[str, ...], shown: str
) -> None:
    print_plans(plan_documents([planned(world, "alone", *overrides)], world / "runs"))
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line.rstrip() for line in lines if line.startswith("prune "))
    assert f"{line}\n".endswith(f"  {shown}")


def test_the_key_has_what_the_pruning_depends_on(world: Path) -> None:
    def key(*overrides: str) -> str:
        return next(node.key for node in planned(world, "alone", *overrides).nodes if node.kind.name == "prune")

    settings = ["flops=0.6", "examples=20", "score=obs", "repair=false"]
    assert len({key(), *(key(f"prune.{each}") for each in settings)}) == 5
    assert key("quantize.method=dynamic") == key("prune.score=fisher") == key()


def test_encoders_whose_labels_train_nothing_are_judged_by_obs(world: Path) -> None:
    (world / "vectors.yaml").write_text(EMBEDDING)
    (plan,) = plan_all(request(world, "alone", task="vectors"))
    (node,) = (node for node in plan.nodes if node.kind.name == "prune")
    assert cast("Node[Prune]", node).spec.score == "obs"


@pytest.mark.parametrize(
    ("recipe", "overrides", "more", "message"),
    [
        ("alone", ["prune.flops=0.005"], {}, r"stage prune: flops: expected at least 0\.\d+, which one head in one layer"),
        ("alone", ["prune.flops=1"], {}, r"--set prune.flops: expected a number above 0 and below 1 or a list, found the number 1$"),
        ("alone", ["prune.flops=0"], {}, r"prune.flops: expected a number above 0 and below 1 or a list, found the number 0$"),
        ("alone", ["prune.flops=[0.5, 0]"], {}, r"prune.flops\[1\]: expected a number above 0 and below 1, found the number 0$"),
        ("alone", ["prune.examples=0"], {}, r"prune.examples"),
        ("alone", ["prune.score=obsc"], {}, r"prune.score: expected .*`fisher`, `obs`.* found the text 'obsc'; did you mean `obs`"),
        ("alone", ["prune.repair=true"], {}, r"prune.repair: expected one of `least_squares`, `false`, found `true`"),
        ("alone", ["prune.repair=least_square"], {}, r"prune.repair: expected .*; did you mean `least_squares`"),
        ("small", [], {"student": "shared"}, r"layers of an ALBERT cannot differ .* --set prune.enabled=false"),
        ("alone", ["prune.score=fisher"], {"task": "vectors"},
         r"stage prune: score: fisher uses the loss on the task's labels, .* give --set prune.score=obs"),
        ("alone", ["prune.flops=[0.5,0.75]"], {}, r"prune.flops: expected decreasing numbers"),
        ("alone", ["prune.flops=0.5", "prune.latency=0.5"], {}, r"^--set prune.\w+: expected one budget, found flops and latency; "),
        ("small", ["prune.size_mb=2"], {"student": "one"}, r"^--set prune.size_mb: expected one budget, found flops and size_mb"),
        ("alone", ["stages[1].prune={flops: 0.5, size_mb: 2}"], {}, r"^--set stages\[1\].prune.\w+: expected one budget, found flops"),
        ("alone", ["prune.size_mb=0.001"], {}, r"stage prune: size_mb: expected at least 0\.\d+, which one head in one layer"),
        ("alone", ["prune.size_mb=50"], {}, r"stage prune: size_mb: expected less than the model has, about 0\.0\d+; found 50"),
        ("recovered", ["distill.losses=[{name: attention_mse}]"], {},
         r"stage distill.*: attention_mse: compares heads.*leave the loss out"),
        ("recovered", ["distill.losses=[{name: relation_kl}]"], {}, r"stage distill.*: relation_kl: compares heads"),
        ("recovered", ["prune.enabled=false"], {},
         r"stage distill.*: trains the model that a `prune` stage before it makes, .* --set distill.*\.enabled=false$"),
        ("small", ["distill.enabled=false"], {"student": "one"}, r"prune: every distill stage is switched off"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_before_anything_runs(
    world: Path, recipe: str, overrides: list[str], more: dict[str, str], message: str
) -> None:
    (world / "vectors.yaml").write_text(EMBEDDING)
    with pytest.raises(CompressError, match=message):
        run_all(request(world, recipe, *overrides, **more))
    assert not (world / "runs").exists()


def test_sizes_fall_from_stage_to_stage(world: Path) -> None:
    text = (
        FILES["gradual"]
        .replace("gradual", "sizes")
        .replace("flops: 0.7", "size_mb: 0.05")
        .replace("flops: 0.6", "size_mb: 0.045")
    )
    (world / "sizes.yaml").write_text(text)
    message = r"stage prune-more: size_mb: expected less than the 0\.05 of stage prune before it; found 0\.05$"
    with pytest.raises(CompressError, match=message):
        run_all(request(world, "sizes", "prune-more.size_mb=0.05"))


def test_shares_are_of_what_the_stage_before_leaves(world: Path) -> None:
    """One head is a larger share of a smaller model."""
    least_shares: dict[tuple[str, ...], float] = {}
    for before in ("prune.flops=0.8",), ("prune.flops=[0.8,0.4]",), ("prune.latency=0.5", "prune.flops=null"):
        with pytest.raises(CompressError, match=r"stage prune-more: flops: expected at least") as caught:
            run_all(request(world, "gradual", *before, "prune-more.flops=0.001"))
        match = re.search(r"at least (0\.\d+)( of what is left by stage prune)?, which one head", str(caught.value))
        assert match and bool(match[2]) == (before[0] != "prune.latency=0.5")
        least_shares[before] = float(match[1])
    of_most, of_less, of_all = least_shares.values()
    assert of_less == pytest.approx(2 * of_most, abs=2e-3) and of_most == pytest.approx(of_all / 0.8, abs=2e-3)
    for share in (of_all / 0.5 + 2e-3, 0.75):  # the latter leaves 0.375
        plan = planned(world, "gradual", "prune.flops=0.5", f"prune-more.flops={share}")
        (node,) = [node for node in plan.nodes if node.stage == "prune-more"]
        prune_budget.check(plan, cast("Node[Prune]", node))


def test_words_of_4_bits_allow_a_smaller_file(world: Path) -> None:
    least = {}
    for bits in (8, 4):
        plan = planned(world, "alone", f"quantize.word_bits={bits}")
        sizes = replace(plan.sizes["teacher"], vocabulary=30_522)
        least[bits] = prune_budget.least_mb(plan, sizes)
    each = sizes.embedding
    assert each == 32
    saved = 30_522 * (each + 1 - (each / 2 + 1)) / 1e6  # one byte for the scale of a row, or of its only block
    assert least[8] - least[4] == pytest.approx(saved)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("[finetune, prune, distill, prune, export]", "give each of several stages of a kind a `name` of its own"),
        ("[finetune, vocabulary, distill, export]", "in the order"),
        ("[finetune, prune, vocabulary, distill, export]", "expected each at most once"),
        ("[finetune, distill, prune, export]", "`student` and a `distill` stage belong together"),
    ],
)
def test_orders_that_make_no_sense_are_refused(world: Path, stages: str, message: str) -> None:
    (world / "odd.yaml").write_text(f"name: odd\ntitle: Odd\nstages: {stages}\n")
    with pytest.raises(CompressError, match=message):
        planned(world, "odd")


def test_switched_off_it_leaves_nothing_behind(world: Path) -> None:
    assert planned(world, "alone", "prune.enabled=false").models == ("teacher-fp32", "teacher-int8")
