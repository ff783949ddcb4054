"""Output of `plan` for students of families other than BERT, and what it refuses, with a remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from family_teachers import teacher_of, tokenizer_of
from plain_teachers import plain_teacher

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names
TASK = ("--task", "toy-sentiment", "--set", "finetune.max_length=16")


@pytest.fixture
def teachers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.chdir(tmp_path)
    return lambda family, **more: teacher_of(family, tmp_path / family, **more)


def document(cli: Cli, *words: str) -> dict[str, Any]:
    code, out, error = cli("plan", *words, *TASK, "--json")
    assert code == 0, error
    (plan,) = json.loads(out)
    return plan


def test_what_the_table_of_words_costs_is_said(cli: Cli, teachers: Callable[..., Path]) -> None:
    few = max(tokenizer_of("xlm-roberta").get_vocab().values()) + 1
    teachers("xlm-roberta", more_words=20_000 - few)
    words = ("distilbert", "--teacher", "./xlm-roberta")
    student = document(cli, *words)["models"]["student"]
    assert student["word_parameters"] == 20_000 * 32
    share = round(100 * student["word_parameters"] / student["parameters"])
    shown = " ".join(cli("plan", *words, *TASK).out.split())
    assert "architecture parameters FLOPs/token word table" in shown
    assert f"0.6M, 2.56 MB ({share}%)" in shown


def test_what_the_student_cannot_keep_is_a_note_each(cli: Cli, teachers: Callable[..., Path], tmp_path: Path) -> None:
    teachers("electra")
    (tmp_path / "plain.yaml").write_text("{name: plain, title: A plain BERT, architecture: bert, layers: 2}")
    plan = document(cli, "distilbert", "--teacher", "./electra", "--student", "plain.yaml")
    notes = [note for note in plan["notes"] if note.startswith("student ")]
    assert notes == [
        "student plain: embeddings 16 wide behind a matrix become tables 32 wide that approximate them; losses on embeddings and "
        "hidden states make up for the rest",
        "student plain: the classifier's first layer is the teacher's with tanh in place of gelu",
    ]
    assert plan["models"]["student"]["architecture"].startswith("bert 2 x 32")
    own = document(cli, "distilbert", "--teacher", "./electra")
    assert not [note for note in own["notes"] if note.startswith("student ")]
    assert own["models"]["student"]["architecture"].startswith("electra 1 x 32")


@pytest.mark.parametrize(
    ("family", "student", "message"),
    [
        (
            "roberta",
            "{name: s, title: S, architecture: distilbert, layers: 2}",
            "student s is a DistilBERT, which starts from bert or distilbert; the teacher is roberta, whose students are RoBERTa, "
            "BERT, ALBERT: choose another with --student, or leave `architecture` out of the card",
        ),
        (
            "albert",
            "{name: s, title: S, architecture: albert, layers: 2, init: convert, albert: {embedding: 8}}",
            "student s is converted to ALBERT's form, which the teacher already has; choose one that repeats its layers less often, or "
            "a card of fewer layers without `architecture`, `init` and `albert`; this teacher can have --student tiny-2l or distil-1l",
        ),
        (
            "electra",
            "{name: s, title: S, layers: 2, hidden: 16, init: project}",
            "student s: init: expected one of `copy`, `prune`, `random` for a student `electra`; found `project`",
        ),
        (
            "bert",
            "{name: s, title: S, architecture: {bert: albert}, layers: 2}",
            "student s: an ALBERT of a bert needs `init: convert` or `init: random`, and `albert`",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(
    cli: Cli, teachers: Callable[..., Path], tmp_path: Path, family: str, student: str, message: str
) -> None:
    teachers(family)
    (tmp_path / "s.yaml").write_text(student)
    code, _, error = cli("plan", "distilbert", "--teacher", f"./{family}", "--student", "s.yaml", *TASK)
    assert code == 2
    assert message in " ".join(error.split())


@pytest.mark.parametrize(
    ("recipe", "family", "layers", "cards"),
    [
        ("tinybert-small", "roberta", 6, "distil-3l or tiny-3l or tiny-2l"),
        ("tinybert-small", "electra", 5, "distil-3l or tiny-2l or distil-1l"),
        ("albert", "bert", 6, "albert-4l"),
        ("albert", "albert", 6, "distil-3l or tiny-3l or tiny-2l"),
        ("minilm", "bert", 12, "distilbert-6l or distil-3l or tiny-3l"),
    ],
)
def test_a_default_that_does_not_fit_names_cards_that_do(
    cli: Cli, teachers: Callable[..., Path], tmp_path: Path, recipe: str, family: str, layers: int, cards: str
) -> None:
    path = teachers(family) / "config.json"
    wide = {"num_hidden_layers": layers, **({"embedding_size": 128} if family == "albert" else {})}
    path.write_text(json.dumps({**json.loads(path.read_text()), **wide}))
    code, _, error = cli("plan", recipe, "--teacher", f"./{family}", *TASK)
    assert code == 2
    assert " ".join(error.split()).endswith(f"; this teacher can have --student {cards}")


@pytest.mark.parametrize("layers", [4, 5])
@pytest.mark.parametrize(
    ("recipe", "family", "message"),
    [
        (
            "albert",
            "modernbert",
            "recipe albert: its student is of the family ALBERT, which cannot start from a ModernBERT; students of that are "
            "ModernBERT: choose another recipe, such as distilbert; or a pre-trained student learns from its logits",
        ),
        (
            "minilm",
            "deberta-v2",
            "recipe minilm, stage general: relation_kl: the attention of a deberta-v2 cannot be read",
        ),
        ("albert", "xlnet", "recipe albert: no student can start from the weights of a teacher that is xlnet"),
    ],
)
def test_the_family_is_told_before_the_depth(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str, family: str, message: str, layers: int
) -> None:
    """And it suggests no student that this teacher or the recipe would refuse."""
    monkeypatch.chdir(tmp_path)
    path = (teacher_of if family == "modernbert" else plain_teacher)(family, tmp_path / family) / "config.json"
    config = json.loads(path.read_text())
    kinds = [config["layer_types"][0]] * layers if "layer_types" in config else None
    config |= {"n_layer" if family == "xlnet" else "num_hidden_layers": layers} | (
        {"layer_types": kinds} if kinds else {}
    )
    path.write_text(json.dumps(config))
    code, _, error = cli("plan", recipe, "--teacher", f"./{family}", *TASK)
    assert code == 2
    assert message in " ".join(error.split())
    assert "this teacher can have" not in error and "this teacher has" not in error


def test_layers_that_are_several_in_one_have_no_student(
    cli: Cli, teachers: Callable[..., Path], tmp_path: Path
) -> None:
    path = teachers("albert") / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "inner_group_num": 2}))
    code, _, error = cli("plan", "distilbert", "--teacher", "./albert", *TASK)
    assert code == 2
    assert "teacher albert: inner_group_num is 2: each of its layers consists of several" in " ".join(error.split())
    teachers("bert")
    code, _, error = cli("plan", "logits", "--teacher", "./albert", "--student", "./bert", *TASK)
    assert (code, "inner_group_num is 2" in error) == (2, True)


def test_the_cards_say_whose_family_a_student_has(cli: Cli) -> None:
    cards = {card["student"]: card["architecture"] for card in json.loads(cli("list", "students", "--json").out)}
    assert cards["distilbert-6l"] == "distilbert of a bert, else as the teacher"
    assert cards["tinybert-6l-768"] == "as the teacher"
    assert cards["tinybert-4l-312"] == "bert"


def test_a_shallow_teacher_s_student_is_copied_layers_and_the_plan_says_so(
    cli: Cli, teachers: Callable[..., Path]
) -> None:
    """If the recipe uses a pre-trained one for deeper teachers, and the command names none."""
    teachers("bert")
    words = ("logits", "--teacher", "./bert")
    copied_note = (
        "student distil-1l: for a teacher of 4 layers it starts from copied layers, not from a pre-trained encoder; "
        "give one with --student DIR or --student CARD, such as minilm-l6"
    )
    assert document(cli, *words)["notes"].count(copied_note) == 1
    for others in ((*words, "--student", "distil-1l"), ("distilbert", *words[1:])):
        assert not any("pre-trained encoder" in note for note in document(cli, *others)["notes"])
