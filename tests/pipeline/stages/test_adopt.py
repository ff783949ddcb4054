"""A user's fine-tuned teacher: its classes are reordered to the task's, or it is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification

from compress.errors import CheckFailed, CompressError
from compress.models.checkpoints.folders import save_checkpoint
from compress.pipeline.plan import Context, Listener
from compress.pipeline.plan.sources import TaskSource
from compress.pipeline.plan.teachers import TeacherSource, resolve_teacher
from compress.pipeline.stages.adopt import adopt_teacher, constant_score, label_notes, label_order
from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import Split, TrainingData

TASK = ("entailment", "neutral", "contradiction")
MNLI = ("contradiction", "entailment", "neutral")  # the order in many checkpoints on the hub
TEXTS = {"entailment": "good film", "neutral": "bad film", "contradiction": "the film"}
DATA = Synthetic(generator="sentiment")  # the data source of a spec; not read here


def split(counts: dict[str, int]) -> Split:
    names = [name for name, count in counts.items() for _ in range(count)]
    return Split(([TEXTS[name] for name in names],), np.array([TASK.index(name) for name in names], dtype=np.int64))


def context_of(spec: TaskSpec, data: TrainingData) -> Context:
    source = TaskSource(spec, None, None)
    source.data = data  # as if the data had been read
    return Context(source, precision="fp32", threads=1, listener=Listener())


@pytest.fixture
def context() -> Context:
    spec = TaskSpec(
        name="nli", text=("a",), label="l", labels=TASK, metrics=("accuracy",), max_length=8, synthetic=DATA
    )
    train, tuning = (split({"entailment": n, "neutral": n // 2, "contradiction": n // 2}) for n in (20, 10))
    return context_of(spec, TrainingData(spec, TASK, train, tuning, "files", (), "f"))


def head(model: Any) -> torch.nn.Linear:
    return getattr(model.classifier, "out_proj", model.classifier)


def answers(model: Any, tokenizer: Tokenizer) -> torch.Tensor:
    """Return the logits [text, class] of the texts in the task's order."""
    ids = torch.tensor([tokenizer.encode(TEXTS[name]).ids for name in TASK])
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits


@pytest.fixture
def checkpoint(
    tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path
) -> Callable[..., TeacherSource]:
    """Return a function that writes a `family` model that is always right, with its head's rows in the order `rows`, named
    `names`."""

    def make(rows: tuple[str, ...], names: tuple[str, ...] | None = None, family: str = "bert") -> TeacherSource:
        model: Any = AutoModelForSequenceClassification.from_pretrained(
            tiny_checkpoint(family), num_labels=len(rows), ignore_mismatched_sizes=True
        ).eval()
        seen: list[torch.Tensor] = []
        hook = head(model).register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        answers(model, toy_tokenizer)
        hook.remove()
        right = torch.tensor([[float(row == name) for row in rows] for name in TASK])
        with torch.no_grad():  # maps the head's inputs for the three texts to the right answers
            head(model).weight.copy_((torch.linalg.pinv(seen[0].double()) @ right.double()).T)
            head(model).bias.zero_()
        model.config.id2label = dict(enumerate(names or rows))
        model.config.label2id = {name: index for index, name in enumerate(names or rows)}
        save_checkpoint(model, toy_tokenizer, tmp_path / "teacher")
        return resolve_teacher(str(tmp_path / "teacher"))

    return make


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"])
def test_classes_are_put_in_the_tasks_order(
    checkpoint: Callable[..., TeacherSource], context: Context, toy_tokenizer: Tokenizer, tmp_path: Path, family: str
):
    teacher = checkpoint(MNLI, family=family)
    info = adopt_teacher(teacher, context, tmp_path / "out")
    assert info == {"tuning_score": 100.0, "label_order": [1, 2, 0]}
    original, adopted = (
        AutoModelForSequenceClassification.from_pretrained(folder).eval()
        for folder in (teacher.folder or "", tmp_path / "out")
    )
    assert adopted.config.id2label == dict(enumerate(TASK))
    assert adopted.config.label2id == {name: index for index, name in enumerate(TASK)}
    logits = answers(adopted, toy_tokenizer)
    torch.testing.assert_close(logits, answers(original, toy_tokenizer)[:, [1, 2, 0]], rtol=0, atol=1e-6)  # fp32
    torch.testing.assert_close(logits, torch.eye(3), rtol=0, atol=1e-3)  # the head was solved for this
    assert len(context.notices) == 1
    assert context.notices[0].endswith(f"classes reordered from {list(MNLI)} to the task's {list(TASK)}")
    assert label_notes(teacher, context.task.data) == context.notices


def test_a_teacher_whose_outputs_are_not_finite_is_named(
    checkpoint: Callable[..., TeacherSource], context: Context, toy_tokenizer: Tokenizer, tmp_path: Path
):
    teacher = checkpoint(TASK)
    model = AutoModelForSequenceClassification.from_pretrained(teacher.folder or "")
    with torch.no_grad():
        head(model).bias[1] = float("nan")
    save_checkpoint(model, toy_tokenizer, tmp_path / "damaged")
    damaged = resolve_teacher(str(tmp_path / "damaged"))
    with pytest.raises(CheckFailed, match=rf"^{damaged.folder}: .* not finite: its weights are damaged"):
        adopt_teacher(damaged, context, tmp_path / "out")


def test_a_teacher_in_the_right_order_is_taken_as_it_is(
    checkpoint: Callable[..., TeacherSource], context: Context, tmp_path: Path
):
    for names, order in (
        (("Entailment", "NEUTRAL", "contradiction"), [0, 1, 2]),
        (("LABEL_0", "LABEL_1", "LABEL_2"), None),
    ):
        info = adopt_teacher(checkpoint(TASK, names), context, tmp_path / "out")
        assert info == {"tuning_score": 100.0, "label_order": order}
        assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"]["2"] == "contradiction"
    (notice,) = context.notices  # of the names that say nothing
    assert notice.endswith(f"['LABEL_0', 'LABEL_1', 'LABEL_2'] are taken for {list(TASK)}, in this order")


def test_names_that_say_nothing_over_another_order_are_refused_with_the_way_out(
    checkpoint: Callable[..., TeacherSource], context: Context, tmp_path: Path
):
    teacher = checkpoint(MNLI, ("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(CheckFailed) as caught:
        adopt_teacher(teacher, context, tmp_path / "out")
    message = str(caught.value)
    assert message.startswith(
        f"{teacher.folder}: said to be fine-tuned, it scores 0.0 on the tuning split of nli, where always"
    )
    hint = f"; with its labels in the order {list(MNLI)} it scores 100.0: set id2label in config.json"
    assert message.endswith(f"answering the majority class scores 50.0{hint}")
    assert not (tmp_path / "out").exists()
    path = (teacher.folder or Path()) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "id2label": dict(enumerate(MNLI))}))
    fixed = resolve_teacher(str(teacher.folder))
    assert adopt_teacher(fixed, context, tmp_path / "out")["tuning_score"] == 100.0


def untrained(teacher: TeacherSource) -> None:
    model: Any = AutoModelForSequenceClassification.from_pretrained(teacher.folder or "")
    with torch.no_grad():
        model.classifier.weight.zero_()
    model.save_pretrained(teacher.folder)


def test_a_head_that_was_never_trained_is_refused(
    checkpoint: Callable[..., TeacherSource], context: Context, tmp_path: Path
):
    teacher = checkpoint(TASK)
    untrained(teacher)
    with pytest.raises(
        CheckFailed, match=r"scores 50\.0 on the tuning split of nli, .* scores 50\.0; --refit fine-tunes it again$"
    ):
        adopt_teacher(teacher, context, tmp_path / "out")


def test_a_teacher_that_is_always_right_is_taken_where_one_answer_always_is(
    checkpoint: Callable[..., TeacherSource], context: Context, tmp_path: Path
):
    data = context.task.data
    context.task.data = replace(data, tuning=split({"entailment": 10}))
    assert constant_score(context.task.data) == 100.0
    assert adopt_teacher(checkpoint(TASK), context, tmp_path / "out")["tuning_score"] == 100.0
    assert any("as does a constant answer, so nothing shows that it has learnt" in line for line in context.notices)


def test_regression_is_compared_with_a_constant(
    checkpoint: Callable[..., TeacherSource], toy_tokenizer: Tokenizer, tmp_path: Path
):
    spec = TaskSpec(
        name="sim", kind="regression", text=("a",), label="s", metrics=("pearson",), max_length=8, synthetic=DATA
    )
    texts = [text for text in TEXTS.values() for _ in range(2)]
    tuning = Split((texts,), np.array([5, 5, 2, 2, 0, 0], dtype=np.float32))
    context = context_of(spec, TrainingData(spec, (), tuning, tuning, "files", (), "f"))
    teacher = checkpoint(("entailment",), ("LABEL_0",))  # 1 for the best text, 0 for the other two
    info = adopt_teacher(teacher, context, tmp_path / "out")
    assert info == {
        "tuning_score": pytest.approx(100 * np.corrcoef([1, 0, 0], [5, 2, 0])[0, 1], abs=0.01),
        "label_order": None,
    }
    assert json.loads((tmp_path / "out" / "config.json").read_text())["id2label"] == {"0": "score"}
    untrained(teacher)
    teacher = replace(teacher)  # as if resolved again
    hint = r"where a constant scores 0\.0; --refit fine-tunes it again$"
    with pytest.raises(CheckFailed, match=rf"scores 0\.0 on the tuning split of sim, {hint}"):
        adopt_teacher(teacher, context, tmp_path / "out")
    context.task.data = replace(context.task.data, tuning=tuning.select(np.array([0])))  # nothing to correlate
    single = context_of(spec, context.task.data)
    assert adopt_teacher(teacher, single, tmp_path / "single") == {"tuning_score": 0.0, "label_order": None}


@pytest.mark.parametrize(
    ("checkpoint_labels", "task", "order"),
    [
        (MNLI, TASK, (1, 2, 0)),
        (("Not-Entailment", " ENTAILMENT"), ("entailment", "not_entailment"), (1, 0)),
        (("LABEL_0", "label_1"), ("no", "yes"), None),
        (("negative", "positive"), ("0", "1"), None),
        (("LABEL_1", "LABEL_0"), ("LABEL_0", "LABEL_1"), (1, 0)),
        (("e\u0301t\xe9", "No"), ("no", "\xe9t\xe9"), (1, 0)),
        (("anything",), (), None),
    ],
)
def test_label_order(checkpoint_labels: tuple[str, ...], task: tuple[str, ...], order: tuple[int, ...] | None):
    kind = "classification" if task else "regression"
    assert label_order(checkpoint_labels, task, kind=kind, where="f") == order


@pytest.mark.parametrize(
    ("checkpoint_labels", "task", "message"),
    [
        (
            ("no", "yes"),
            TASK,
            "the checkpoint has 2 labels ['no', 'yes'] and the classification task 3: ['entailment',",
        ),
        (("no", "yes"), (), "the checkpoint has 2 labels ['no', 'yes'] and the regression task 1: ['score']"),
        (
            ("LABEL_0", "LABEL_1"),
            TASK,
            "the checkpoint has 2 labels ['LABEL_0', 'LABEL_1'] and the classification task 3",
        ),
        (("no", "yes"), ("1", "2"), "the checkpoint's labels ['no', 'yes'] are not the task's ['1', '2']"),
        (("no", "yes"), ("bad", "good"), "the checkpoint's labels ['no', 'yes'] are not the task's ['bad', 'good']"),
        (("no", "No"), ("no", "yes"), "the checkpoint's labels ['no', 'No'] are not the task's ['no', 'yes']"),
    ],
)
def test_labels_that_disagree(checkpoint_labels: tuple[str, ...], task: tuple[str, ...], message: str):
    with pytest.raises(CompressError) as caught:
        label_order(checkpoint_labels, task, kind="classification" if task else "regression", where="here")
    assert str(caught.value).startswith(f"here: {message}")


@pytest.mark.parametrize(
    ("checkpoint_labels", "task", "advice"),
    [
        (
            ("bill", "refund"),
            ("N/A", "bill", "refund"),
            "; only the task has 'N/A': correct its rows of train if these are mistakes;",
        ),
        (
            ("a", "bill", "refund"),
            ("a", "bill", "refuns"),
            "; only the task has 'refuns': .*; only the checkpoint has 'refund': if train lacks",
        ),
        (
            ("a", "b", "c"),
            ("a", "b"),
            "; only the checkpoint has 'c': if train lacks them, list all as `labels` in a task file;",
        ),
        (
            ("\xe9", "b"),
            ("b", "e\u0301", "\xe9"),
            r"; the task has 'e\\u0301', '\\xe9', which are one label to the checkpoint: write them alike;",
        ),
    ],
)
def test_labels_that_disagree_in_part_are_named(checkpoint_labels: tuple[str, ...], task: tuple[str, ...], advice: str):
    with pytest.raises(CompressError, match=f"{advice}.* --refit trains a new head$"):
        label_order(checkpoint_labels, task, kind="classification", where="here")


def test_tags_of_another_scheme_are_named():
    tags = ("O", "B-PER", "I-PER", "E-PER", "S-PER")
    for types in (["PER"], ["PER", "LOC"]):  # fewer labels, and as many
        task = ("O", *(f"{mark}-{name}" for name in types for mark in "BI"))
        with pytest.raises(CompressError, match=r"are BIOES or BILOU, and tags are read as IOB2: .*; --refit"):
            label_order(tags, task, kind="tagging", where="here")
    with pytest.raises(CompressError, match=r"\['O', 'B-PER', 'I-PER'\]; --refit"):
        label_order(("O", "PER"), ("O", "B-PER", "I-PER"), kind="tagging", where="here")


def test_the_majority_is_that_of_train_scored_on_tuning(context: Context):
    data = context.task.data
    assert constant_score(data) == 50.0
    other = TrainingData(data.spec, TASK, split({"neutral": 3, "entailment": 2}), data.tuning, "files", (), "f")
    assert constant_score(other) == 25.0
