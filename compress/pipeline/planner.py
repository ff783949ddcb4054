"""Recipe -> plan: the stages of a run with their keys, all known before anything is computed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import CompressError
from ..models.cards import StudentCard
from ..models.checkpoints.folders import other_head
from ..models.dimensions import Dimensions
from ..models.heads import HEADS
from ..models.students import PRETRAINED, layer_norm_epsilon, not_kept, student_dimensions
from ..runtime.kinds import output_names
from ..spec.recipe import Recipe, Stage
from ..spec.stages.finetune import lists
from ..tasks import BUILTIN_TASKS, is_at_hand
from .max_lengths import check_lengths
from .plan import Draft, Plan
from .plan.sources import TaskSource, TextSource
from .plan.students import check_family, copied_note, fitting_students, resolve_student
from .plan.teachers import TeacherSource, by_model
from .plan.vectors import check_mix, pooling_notes
from .stages import finetune, pretrain
from .stages.adopt import add_adopted
from .stages.ensemble import check_differs, check_several
from .stages.export import add_export, with_graph
from .stages.registry import STAGES

OTHER_TOKENIZER = (
    "student and teacher cut texts into different tokens: the student learns only from the teacher's "
    "logits, and the teacher reads every text with its own tokenizer"
)
_OF_THE_TEACHER = ("pretrain", "finetune")


def make_plan(
    recipe: Recipe,
    task: TaskSource,
    teacher: TeacherSource,
    *,
    student: str | None,
    corpus: TextSource | None = None,
    seed: int,
    base_seed: int | None = None,
    precision: str,
    refit: bool,
    others: Sequence[TeacherSource] = (),
) -> Plan:
    """Plan every stage with its key. `refit` fine-tunes a teacher that already has a head; `base_seed` is the seed of the stages before the
    task's distillation (default: `seed`). The student learns from the mean of the answers of `teacher` and `others`; in all else the first
    is the teacher.

    Raises `CompressError` when the parts do not fit each other.
    """
    classes = _classes(task)
    sizes = {model: source.dimensions(classes, task.spec.kind) for model, source in by_model(teacher, others).items()}
    card, pretrained = _student(recipe, student, teacher, sizes["teacher"])
    if pretrained is not None:
        sizes["student"] = pretrained.dimensions(classes, task.spec.kind)
    elif card is not None:
        sizes["student"] = _student_sizes(
            recipe, card, sizes["teacher"], texts=2 if task.spec.pairs else 1, word=student
        )
    draft = Draft(
        recipe=recipe,
        task=task,
        teacher=teacher,
        others=tuple(others),
        student=card,
        pretrained=pretrained,
        corpus=corpus,
        seed=seed,
        base_seed=seed if base_seed is None else base_seed,
        precision=precision,
        sizes=sizes,
        refit=refit,
    )
    draft.notes.extend(_start_notes(draft, is_recipes_student=student is None))
    _plan_teachers(draft)
    _plan_stages(draft)
    draft.notes.extend(_misspelt_tasks(recipe, task.spec.name))
    plan = replace(draft.plan(), recipe=with_graph(recipe, draft.nodes))
    _check_texts(plan)
    return plan


def note_equal_seeds(plans: list[Plan]) -> list[Plan]:
    """Add a note to plans that differ in nothing but a seed which no stage uses."""
    alike: dict[tuple[str, ...], list[Plan]] = {}
    for plan in plans:
        alike.setdefault((plan.recipe.name, plan.task.spec.name, *(node.key for node in plan.nodes)), []).append(plan)
    notes = {
        plan.name: f"{plan.recipe.name} on {plan.task.spec.name}: seeds {', '.join(str(each.seed) for each in group)} "
        "make the same models: nothing is drawn at random, so these are not repetitions; give one seed"
        for group in alike.values()
        for plan in group
        if len(group) > 1
    }
    return [replace(plan, notes=(*plan.notes, notes[plan.name])) if plan.name in notes else plan for plan in plans]


def _plan_teachers(draft: Draft) -> None:
    """Plan the teacher first: pre-trained and fine-tuned here, or used as it is. Its fp32 ONNX is every run's baseline. Then plan the other
    teachers."""
    if draft.others:
        check_several(draft)
    written = {stage.kind: stage for stage in draft.recipe.stages}
    if "pretrain" in written and written["pretrain"].is_enabled:
        pretrain.plan(draft, written["pretrain"])
    _plan_teacher(draft, "teacher")
    draft.advance("teacher", "teacher")
    add_export(draft, written["export"].spec)
    for model in list(draft.teachers)[1:]:
        _plan_teacher(draft, model)
        check_differs(draft, model)


def _plan_stages(draft: Draft) -> None:
    """Plan the stages after the teacher's, in the order of the recipe."""
    for stage in draft.recipe.stages:
        add = STAGES[stage.kind].plan
        if add is not None and stage.kind not in _OF_THE_TEACHER and stage.is_enabled:
            add(draft, stage)
    check_mix(draft)


def _plan_teacher(draft: Draft, model: str) -> None:
    """Fine-tune the teacher, or use it as it is."""
    teacher = draft.teachers[model]
    stage = next((stage for stage in draft.recipe.stages if stage.kind == "finetune"), None)
    if draft.adopts(teacher):
        _check_untrained(draft, stage)
        add_adopted(draft, model)
    elif stage is not None:
        _check_head(draft, teacher)
        finetune.plan(draft, stage, model)
    else:
        raise draft.fails(
            "finetune",
            f"is not in the recipe, and teacher {teacher.card.name} is not fine-tuned: add `- finetune` to its stages, "
            "or give a fine-tuned checkpoint with --teacher DIR",
        )


def _check_untrained(draft: Draft, stage: Stage | None) -> None:
    """Raise `CompressError` for settings that only apply to a training of the teacher, if the task's labels train none."""
    if draft.learns_labels:
        return
    kind = draft.task.spec.kind
    if draft.refit:
        raise CompressError(
            f"--refit: no teacher is trained on the labels of {kind} tasks, so it is used as it is; leave it out"
        )
    if stage is not None and (named := lists(stage.spec.for_task(draft.task.spec.name))):
        raise draft.fails(
            stage.id,
            f"{named[0]}: found a list to choose from; no teacher is trained on the labels of {kind} tasks: leave "
            "it out",
        )


def _check_head(draft: Draft, teacher: TeacherSource) -> None:
    """Refuse to discard a head that a checkpoint learnt for another kind of task, unless `refit` is set."""
    other = other_head(teacher.config, draft.task.spec.kind) if teacher.folder is not None else None
    if other is not None and not draft.refit:
        raise CompressError(
            f"teacher {teacher.card.name}: {teacher.folder} is a {other}, with a head for another kind of task "
            f"than {draft.task.spec.kind}; give --refit to fine-tune its encoder on {draft.task.spec.name} with a "
            "new head"
        )


def _misspelt_tasks(recipe: Recipe, task: str) -> Iterator[str]:
    """Yield a note for each name in `per_task` that is nearly this run's task or a built-in one: `per_task` may name tasks of other runs,
    but a near match is probably a typo."""
    known = [*BUILTIN_TASKS, task]
    for stage in recipe.stages:
        for name in getattr(stage.spec, "per_task", {}):
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.75)
            if name not in known and near:
                yield f"{stage.id}: per_task gives `{name}` settings of its own; did you mean {' or '.join(f'`{word}`' for word in near)}?"


def _classes(task: TaskSource) -> int:
    """Return the number of outputs of a model's head for the task, 0 without a head; reads the data only if the labels are not
    known otherwise."""
    if HEADS[task.spec.kind].bare:
        return 0
    known = task.spec.known_labels
    return len(output_names(task.spec.kind, task.data.labels if known is None else known))


def _check_texts(plan: Plan) -> None:
    """Check lengths of texts. If one is wrong, what is wrong with data at hand, such as a column's name, is reported first."""
    try:
        check_lengths(plan)
    except CompressError:
        if is_at_hand(plan.task.spec, plan.task.folder, plan.task.data_dir):
            _ = plan.task.data
        raise


def _start_notes(draft: Draft, *, is_recipes_student: bool) -> Iterator[str]:
    """Yield notes on the teachers and on how the student starts. `is_recipes_student`: the user has named no other."""
    for source in draft.teachers.values():
        yield from source.notes
    if draft.student is not None and is_recipes_student:
        yield from copied_note(draft.recipe, draft.student, draft.teacher, draft.sizes["teacher"].layers)
    if draft.pretrained is not None:
        yield from draft.pretrained.notes
        if not draft.shares_tokenizer:
            yield OTHER_TOKENIZER
    elif draft.student is not None:
        yield from not_kept(draft.student, draft.sizes, epsilon=layer_norm_epsilon(draft.teacher.config))
    yield from pooling_notes(draft)


def _student_sizes(
    recipe: Recipe, card: StudentCard, teacher: Dimensions, *, texts: int, word: str | None
) -> Dimensions:
    """`word`: the value of --student, with which a message then begins."""
    try:
        return student_dimensions(card, teacher, texts=texts)
    except CompressError as error:
        option = "" if word is None else f"--student {word}: "
        raise CompressError(
            f"{option}{error}{fitting_students(recipe, teacher, layers=card.layers, init=card.init)}"
        ) from None


def _student(
    recipe: Recipe, override: str | None, teacher: TeacherSource, sizes: Dimensions
) -> tuple[StudentCard | None, TeacherSource | None]:
    """Return the card for this teacher, and the student's own checkpoint if it has one."""
    choice = recipe.student
    if choice is None:
        if override is not None:
            raise CompressError(f"recipe {recipe.name} makes no student, and --student names {override}; leave one out")
        return None, None
    if override is None:
        check_family(recipe, sizes)
    if override is None and not isinstance(choice, str) and sizes.layers not in choice:
        depths = ", ".join(map(str, sorted(choice)))
        raise CompressError(
            f"recipe {recipe.name}: student: has cards for teachers of {depths} layers; this teacher has "
            f"{sizes.layers}; name one with --student{fitting_students(recipe, sizes, layers=sizes.layers / 2) or f'; or {PRETRAINED}'}"
        )
    chosen = choice if isinstance(choice, str) else choice.get(sizes.layers, "")
    card, pretrained = resolve_student(override or chosen)
    if (inner := teacher.config.get("inner_group_num", 1)) != 1:
        raise CompressError(
            f"teacher {teacher.card.name}: inner_group_num is {inner}: each of its layers consists of several, "
            "which no student here supports; recipe int8 does"
        )
    if pretrained is not None:
        return card, pretrained
    return card.of(sizes.architecture), None
