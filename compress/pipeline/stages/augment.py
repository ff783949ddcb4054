"""augment: copies of the training examples with words replaced, for the distill stages that follow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from ...errors import CompressError
from ...files.paths import expand_home
from ...metrics import are_entities
from ...metrics.tags import OUTSIDE
from ...models.checkpoints.folders import load_encoder, load_tokenizer
from ...models.masked_lm import has_masked_lm_head, load_masked_lm
from ...spec.kinds import KINDS, KindName
from ...spec.recipe import Stage
from ...spec.stages import Augment
from ...store import hash_file
from ...tasks import TASK_KINDS
from ..plan import TRAINING, Draft, Job, Kind, Node, Plan
from ..plan.fields import for_task, named_file_hash
from ..plan.teachers import resolve_teacher
from .base_teacher import base_teacher, base_teacher_inputs, is_masked_lm, is_random_init
from .masked_lm import MASKED_LM_TEACHER

if TYPE_CHECKING:
    from ...augment import MaskedLmProposer, WordProposer

AUGMENTED = "augmented"  # the node, and the stages' input role for its examples


class AugmentInfo(TypedDict):
    """`examples`: the number of copies; `sources`: the number of examples that they were made from."""

    examples: int
    sources: int


def plan(draft: Draft, stage: Stage) -> None:
    spec = for_task(draft, (stage.spec,), Augment)
    source, inputs, outside = _candidates(draft, spec, stage.id)
    unused = {"masked_lm": None} if source == "embedding" else {}  # a resolved recipe names only what it uses
    spec = spec.model_copy(update={"source": source, **unused})
    described = spec.model_dump(mode="json", exclude={"per_task", "glove", "masked_lm"}) | {"seed": draft.base_seed}
    # Grouped kinds, whose groups are copied whole, have this in their keys; the keys of other kinds stay as they are.
    described |= {"groups": "whole"} if KINDS[draft.task.spec.kind].grouped else {}
    outside |= {"teacher": draft.teacher.identity, "data": draft.task.fingerprint}
    # a teacher of random weights: its trained embedding table
    inputs |= {"teacher": "teacher"} if is_random_init(draft) else base_teacher_inputs(draft)
    draft.add(AUGMENT, AUGMENTED, AUGMENTED, spec, described, inputs=inputs, outside=outside, seed=draft.base_seed)


def _candidates(draft: Draft, spec: Augment, stage: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return where the candidates for single-piece words come from: (source, inputs, hashes of outside files)."""
    outside = {"glove": named_file_hash(f"{stage}.glove", spec.glove)} if spec.glove else {}
    if spec.source == "embedding":
        return "embedding", {}, outside
    if spec.masked_lm is not None:
        try:
            other = resolve_teacher(spec.masked_lm)
        except CompressError as error:
            raise draft.fails(stage, f"masked_lm: {error}") from None
        if other.folder is None or not has_masked_lm_head(other.folder):
            raise draft.fails(stage, f"masked_lm: {spec.masked_lm} has no masked-LM head")
        return "masked_lm", {}, outside | {"masked_lm": other.identity}
    if draft.has(MASKED_LM_TEACHER):
        return "masked_lm", {"masked_lm": MASKED_LM_TEACHER}, outside
    if is_masked_lm(draft):
        return "masked_lm", {}, outside
    lacking = f"teacher {draft.teacher.card.name} has no masked-LM head"
    if spec.source == "masked_lm":
        raise draft.fails(
            stage, f"{lacking}: give plain text to train one on (--corpus PATH), or name a card with `masked_lm`"
        )
    draft.notes.append(f"{stage}: {lacking} and none was trained; all candidates are neighbours in the embedding table")
    return "embedding", {}, outside


def check(plan: Plan, node: Node[Augment]) -> None:
    """Check that the word vectors parse, and that the training texts have words to replace, which nothing before this stage needs."""
    from ...augment import has_replaceable_words

    if node.spec.glove is not None:
        _check_glove(expand_home(node.spec.glove), node.outside["glove"])
    kind, data = plan.task.spec.kind, plan.task.data
    if not has_replaceable_words(data.train, outside=_outside(data.labels), fixed=_fixed(kind)):
        raise CompressError(
            f"recipe {plan.recipe.name}, stage {node.stage}: no text of train has a word to replace: it would have two or more letters "
            "of a script with spaces between words, and be neither a function word nor in a labelled entity; leave the stage out with "
            f"--set {node.stage}.enabled=false"
        )


def _outside(labels: Sequence[str]) -> int | None:
    """Return the label of words outside entities, which alone may be replaced, if labels are of entities."""
    return labels.index(OUTSIDE) if are_entities(labels) else None


def _fixed(kind: KindName) -> int:
    """Return how many of an example's first texts stay as they are."""
    return 1 if KINDS[kind].grouped else 0


@cache
def _check_glove(path: Path, content: str) -> None:
    """Parse the file, once for all runs that read the same `content` (its hash)."""
    from ...augment import GloveProposer

    GloveProposer(path)


def run(job: Job[Augment]) -> AugmentInfo:
    """Write `augmented.jsonl`."""
    from ...augment import Proposers, augment, write_augmented

    spec, train, names, kind = job.spec, job.context.task.data.train, job.context.labels, job.context.kind
    copies = augment(
        train,
        tokenizer=job.plan.teacher.tokenizer,
        proposers=Proposers(_masked_lm(job), _other_proposer(job)),
        copies=spec.copies,
        probability=spec.replace_probability,
        candidates=spec.candidates,
        seed=job.node.seed,
        outside=_outside(names),
        fixed=_fixed(kind),
        copied=TASK_KINDS[kind].labels.copied,
        work=job.work,
        on_progress=partial(job.context.listener.progress, "words"),
    )
    write_augmented(copies, job.out)
    return {"examples": len(copies.split), "sources": len(train)}


def _masked_lm(job: Job[Augment]) -> MaskedLmProposer | None:
    from ...augment import MaskedLmProposer
    from ...training import make_accelerator

    spec, inputs = job.spec, job.inputs
    if spec.source != "masked_lm":
        return None
    if "masked_lm" in inputs:
        folder = inputs["masked_lm"].path
    else:
        folder = _planned_checkpoint(job, spec.masked_lm) if spec.masked_lm else base_teacher(job.plan.teacher, inputs)
    model = load_masked_lm(folder).to(make_accelerator("fp32").device)
    return MaskedLmProposer(model, load_tokenizer(folder))


def _planned_checkpoint(job: Job[Augment], word: str) -> Path:
    """Return the checkpoint that was planned; CompressError: a branch of the hub has moved since."""
    other = resolve_teacher(word)
    if other.folder is None or other.identity != job.node.outside["masked_lm"]:
        raise CompressError(f"augment.masked_lm: {word}: it changed since this command started; start it again")
    return other.folder


def _other_proposer(job: Job[Augment]) -> WordProposer:
    from ...augment import GloveProposer, NeighbourProposer

    if job.spec.glove is not None:
        path = expand_home(job.spec.glove)
        proposer = GloveProposer(path)
        if hash_file(path) != job.node.outside["glove"]:
            raise CompressError(f"augment.glove: {path}: it changed since this command started; start it again")
        return proposer
    folder = job.inputs["teacher"].path if "teacher" in job.inputs else base_teacher(job.plan.teacher, job.inputs)
    table = load_encoder(folder).get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    return NeighbourProposer(table, job.plan.teacher.tokenizer)


AUGMENT = Kind("augment", 2, Augment, run=run, plan=plan, check=check, libraries=TRAINING)
