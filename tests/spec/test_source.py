"""Documents of recipes, cards and tasks: what is read, and each mistake in plain words at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from document_mistakes import HEAD, mistakes

from compress.errors import CompressError
from compress.losses import LOSSES
from compress.losses.soft_target import SoftTarget
from compress.models.cards import StudentCard, TeacherCard
from compress.spec.document import parse
from compress.spec.recipe import Recipe
from compress.spec.source import load, validate
from compress.spec.task import TaskSpec


def test_a_recipe_is_read_with_lists_whole_numbers_and_number_keys():
    text = HEAD + (
        "student: {12: a, 6: b}\nstages:\n  - finetune\n  - distill: {epochs: 3, losses: [{name: soft_target, weight: 5}]}\n"
        "  - export:\n  - quantize: {exclude: [a, b]}\n"
    )
    recipe = validate(parse(text, "mine.yaml"), Recipe)
    assert recipe.student == {12: "a", 6: "b"}
    assert [stage.kind for stage in recipe.stages] == ["finetune", "distill", "export", "quantize"]
    assert recipe.stages[1].spec.losses == (SoftTarget(weight=5.0),)
    assert recipe.stages[3].spec.exclude == ("a", "b")


def test_the_messages_of_the_design_to_the_letter():
    text = HEAD + (
        "student: a\n"  # line 3
        "stages:\n"
        "- finetune\n"
        "- distill:\n"
        "    learning_rate: 1e-4\n"  # line 7
        "    losses:\n"
        "    - {name: soft_target, temprature: 2}\n"  # line 9
        "- export\n"
    )
    assert mistakes(text) == [
        "mine.yaml:7: stages[1].distill.learning_rate: expected a number, found the text '1e-4' (YAML needs a dot: 1.0e-4)",
        "mine.yaml:9: stages[1].distill.losses[0].temprature: unknown key; did you mean `temperature`?",
    ]


ONE_MISTAKE = [
    (
        "precision: f32",
        Recipe,
        "3: precision: expected one of `auto`, `fp32`, `bf16`, found the text 'f32'; did you mean `fp32`?",
    ),
    ("student: 3", Recipe, '3: student: expected text or a mapping, found the number 3 (quote it: "3")'),
    ("student: [a]", Recipe, "3: student: expected text or a mapping, found a list"),
    (
        "student: {}",
        Recipe,
        "3: student: expected a student card, or one per number of teacher layers, found an empty mapping",
    ),
    ("student: {x: a}", Recipe, "3: student.x: expected a whole number from 1 as the key, found `x`"),
    ("student: {0: a}", Recipe, "3: student[0]: expected a whole number from 1 as the key, found `0`"),
    ("student: {6: 3}", Recipe, '3: student[6]: expected text, found the number 3 (quote it: "3")'),
    ("paper: 1910.01108", Recipe, '3: paper: expected text, found the number 1910.01108 (quote it: "1910.01108")'),
    ("description: no", Recipe, '3: description: expected text, found `false` (quote it: "no")'),
    (
        "description: 2020-01-02",
        Recipe,
        '3: description: expected text, found the date 2020-01-02 (quote it: "2020-01-02")',
    ),
    ("precsion: auto", Recipe, "3: precsion: unknown key; did you mean `precision`?"),
]


@pytest.mark.parametrize(("line", "model", "expected"), ONE_MISTAKE)
def test_each_mistake_is_told_in_plain_words(line, model, expected):
    assert mistakes(f"{HEAD}{line}\nstages: [finetune, export]\n", model) == [f"mine.yaml:{expected}"]


KINDS = "pretrain, finetune, masked_lm, general, augment, distill, prune, vocabulary, relu, quantize_aware, export, quantize"
NAMED_LOSSES = ", ".join(f"`{name}`" for name in LOSSES)
STAGES = [
    ("finetune", "3: stages: expected a list, found the text 'finetune'"),
    ("[]", "3: stages: expected at least 1 in the list, found none"),
    ("[finetun]", "3: stages[0].finetun: unknown key; did you mean `finetune`?"),
    ("[{finetun: {}}]", "3: stages[0].finetun: unknown key; did you mean `finetune`?"),
    ("[7]", "3: stages[0]: expected a mapping, found the number 7"),
    ("[{}]", f"3: stages[0]: expected one stage, one of {KINDS}"),
    ("[{export: , quantize: }]", f"3: stages[0]: expected one stage, one of {KINDS}"),
    ("[{export: 3}]", "3: stages[0].export: expected a mapping, found the number 3"),
    (
        "[{export: {opset: 5}}]",
        "3: stages[0].export.opset: expected a number at least 18 and at most 23, found the number 5",
    ),
    (
        "[{export: {opset: 19}}]",
        "3: stages[0].export.opset: the fast graph needs 20 or more, found 19; or export with graph: plain",
    ),
    ("[{export: {opset: 20.5}}]", "3: stages[0].export.opset: expected a whole number, found the number 20.5"),
    ("[{finetune: {epochs: 0}}]", "3: stages[0].finetune.epochs: expected a number above 0, found the number 0"),
    (
        "[{finetune: {warmup: 1}}]",
        "3: stages[0].finetune.warmup: expected a number at least 0 and below 1, found the number 1",
    ),
    ("[{finetune: {epochs: .nan}}]", "3: stages[0].finetune.epochs: expected a finite number, found the number nan"),
    ("[{finetune: {max_steps: true}}]", "3: stages[0].finetune.max_steps: expected a whole number, found `true`"),
    (
        "[{finetune: {max_steps: '3'}}]",
        "3: stages[0].finetune.max_steps: expected a whole number, found the text '3' (remove the quotes: 3)",
    ),
    ("[{finetune: {epochs: }}]", "3: stages[0].finetune.epochs: expected a number, found nothing"),
    (
        "[{quantize: {per_channel: 1}}]",
        "3: stages[0].quantize.per_channel: expected `true` or `false`, found the number 1",
    ),
    ("[{quantize: {exclude: a}}]", "3: stages[0].quantize.exclude: expected a list, found the text 'a'"),
    (
        "[{distill: {losses: [{name: soft_targe}]}}]",
        "3: stages[0].distill.losses[0]: unknown name `soft_targe`; did you mean `soft_target`?",
    ),
    (
        "[{distill: {losses: [{weight: 1}]}}]",
        f"3: stages[0].distill.losses[0]: `name` is missing; expected one of {NAMED_LOSSES}",
    ),
    (
        "[{distill: {losses: [soft_target]}}]",
        "3: stages[0].distill.losses[0]: expected a mapping, found the text 'soft_target'",
    ),
    (
        "[{finetune: {per_task: {rte: {epoch: 3}}}}]",
        "3: stages[0].finetune.per_task.rte.epoch: unknown key; did you mean `epochs`?",
    ),
    (
        "[{finetune: {per_task: {rte: {epochs: 1e1}}}}]",
        "3: stages[0].finetune.per_task.rte.epochs: expected a number, found the text '1e1' (YAML needs a dot: 1.0e1)",
    ),
    (
        "[{distill: {per_task: {rte: {losses: [{name: hard_label, wieght: 2}]}}}}]",
        "3: stages[0].distill.per_task.rte.losses[0].wieght: unknown key; did you mean `weight`?",
    ),
]


@pytest.mark.parametrize(("stages", "expected"), STAGES)
def test_mistakes_in_stages(stages, expected):
    assert mistakes(f"{HEAD}stages: {stages}\n") == [f"mine.yaml:{expected}"]


def test_unions_in_cards_name_no_internal_types():
    head = "name: ab\ntitle: x\narchitecture: distilbert\nlayers: 2\n"
    assert mistakes(f"{head}copy_layers: evry_other", StudentCard) == [
        "mine.yaml:5: copy_layers: expected one of `every_other`, `first`, `last` or a list, "
        "found the text 'evry_other'; did you mean `every_other`?"
    ]
    assert mistakes(f"{head}copy_layers: [0, -1, x]", StudentCard) == [
        "mine.yaml:5: copy_layers[1]: expected a number at least 0, found the number -1",
        "mine.yaml:5: copy_layers[2]: expected a whole number, found the text 'x'",
    ]
    assert mistakes(f"{head}copy_layers: []", StudentCard) == [
        "mine.yaml:5: copy_layers: expected at least 1 in the list, found none"
    ]


def test_rules_across_fields_are_placed_at_their_mapping():
    head = "name: ab\ntitle: x\nlicence: y\n"
    assert mistakes(f"{head}checkpoint:\n  hub: x\n", TeacherCard) == [
        "mine.yaml:4: checkpoint: a hub checkpoint needs a pinned `revision`"
    ]
    assert mistakes(f"{HEAD}stages: [export, finetune]") == [
        f"mine.yaml:1: stages are export, finetune; expected each at most once, except distill and prune, in the order {KINDS}"
    ]
    assert mistakes("name: A B\ntitle: x", StudentCard)[0] == (
        "mine.yaml:1: name: expected a name of lower-case letters, digits, `.`, `_` and `-`, found the text 'A B'"
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("", "", "7: stages[3].prune: `prune` is also the name of stages[1]; give each of several stages of a kind a `name` of"),
        ("name: a", "name: a", "7: stages[3].prune.name: `a` is also the name of stages[1]; give each"),
        ("", "name: export", "7: stages[3].prune.name: `export` is a kind of stage; give this one a `name` of its own"),
    ],
)  # fmt: skip
def test_a_name_that_stands_twice_is_told_at_the_second(first, second, expected):
    stages = [
        "finetune",
        f"prune: {{{first}}}",
        "distill: {losses: [{name: soft_target}]}",
        f"prune: {{{second}}}",
        "export",
    ]
    lines = "".join(f"  - {stage}\n" for stage in stages)
    (problem,) = mistakes(f"name: mine\ntitle: Mine\nstages:\n{lines}")
    assert problem.startswith(f"mine.yaml:{expected}")


def test_a_task_reports_everything_at_once_in_the_order_of_the_file():
    problems = mistakes(
        "name: ab\nkind: clasification\ntext: [a, b, c, d]\nlabel: 1\nlabels: [no, yes]\nmetrics: [acc]\nfiles: {train: 3, dev: {a: 4}}",
        TaskSpec,
    )
    assert [line.split(": ")[1] for line in problems] == [
        "kind", "text", "label", "labels[0]", "labels[1]", "metrics[0]", "files.train", "files.dev.a",
    ]  # fmt: skip
    assert problems[1] == "mine.yaml:3: text: expected at most 3 in the list, found 4"


@pytest.mark.parametrize(
    ("text", "description"),
    [("", "nothing"), ("# only a comment", "nothing"), ("- a", "a list"), ("x", "the text 'x'")],
)
def test_a_document_that_is_no_mapping(text, description):
    assert mistakes(text) == [f"mine.yaml:1: expected a mapping, found {description}"]


def test_missing_fields_are_placed_at_the_mapping_that_lacks_them():
    assert mistakes("\n\nname: mine\nstages:\n- finetune\n- export\n") == [
        "mine.yaml:3: title: missing; expected a value"
    ]


def test_load_names_the_file_as_given_and_what_is_wrong_with_it(tmp_path: Path):
    file = tmp_path / "x.yaml"
    cases = [(b"name: \xff", "expected UTF-8 text, found byte 0xff"), (b"a" * (1 << 21), "larger than 1 MiB")]
    for content, problem in cases:
        file.write_bytes(content)
        with pytest.raises(CompressError) as caught:
            load(file, Recipe)
        assert str(caught.value).startswith(f"{file}: {problem}")
    for path, problem in ((tmp_path, "Is a directory"), (tmp_path / "no.yaml", "No such file")):
        with pytest.raises(CompressError, match=f"cannot be read: {problem}"):
            load(path, Recipe)


def test_a_file_below_the_working_directory_is_shown_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text("name: mine\n")
    with pytest.raises(CompressError) as caught:
        load(tmp_path / "recipes" / "mine.yaml", Recipe)
    assert str(caught.value).startswith("recipes/mine.yaml:1: title: missing")
