"""How plans of sentence encoders differ: the teacher is used as it is, and losses compare vectors, not classes."""

from __future__ import annotations

from typing import TypeVar

from ...errors import CompressError, with_article
from ...losses import LOSSES
from ...losses.loss import LossSpec
from ...losses.similarity_mse import SimilarityMse
from ...losses.soft_target import SoftTarget
from ...models.families import FAMILIES
from ...models.sentence_encoders.folders import POOLING, vector_notes
from ...models.sentence_encoders.vector_layers import LAST, MIX, vector_words
from ...spec.stages import Losses
from .draft import Draft
from .fields import check_kind
from .teachers import TeacherSource

L = TypeVar("L", bound=Losses)
_OF_ALL_LAYERS = ("pretrain", "general", "masked_lm")  # stages


def check_mix(draft: Draft) -> None:
    """Check a finished draft whose student's card asks for a mix of layers, and note that the student learns one. CompressError: the task
    is not on vectors, the family's layers cannot be taken apart, or no loss is on the vectors."""
    card = draft.student
    if card is None or card.vector_layers != MIX:
        return
    where = f"student {card.name}: vector_layers: found {MIX}"
    family = FAMILIES[draft.sizes["student"].architecture]
    if draft.learns_labels:
        kind = with_article(draft.task.spec.kind)
        raise CompressError(f"{where}, which is for vectors, and {draft.task.spec.name} is {kind} task; leave it out")
    if not family.fast_graph:
        raise CompressError(f"{where}, and the layers of a {family.title} cannot be taken apart here; leave it out")
    trained = [node.spec for node in draft.nodes if node.kind.name == "distill" and isinstance(node.spec, Losses)]
    if not any(LOSSES[loss.name].reads == "logits" and loss.weight > 0 for spec in trained for loss in spec.losses):
        raise CompressError(
            f"{where}, and no stage has a loss on its vectors, so nothing would teach it the mix; add `soft_target` to a distill stage, or "
            "leave it out"
        )
    draft.notes.append(f"student {card.name}: its vectors are a learned mix of the states of its embeddings and layers")


def pooling_notes(draft: Draft) -> list[str]:
    """Return notes on each checkpoint that does not specify its pooling, and on how sentence-transformers treats the teacher differently.
    CompressError: a checkpoint whose vectors cannot be made here."""
    _check_layers(draft)
    if draft.learns_labels:
        return []
    sources = {"teacher": draft.teacher} | ({} if draft.pretrained is None else {"student": draft.pretrained})
    lines = []
    for role, source in sources.items():
        is_specified, notes = source.pooling[1], []
        if source.folder is None:
            continue
        if not is_specified:
            notes.append(
                f"its folder does not specify the pooling ({POOLING}): vectors are the mean of the tokens' states"
            )
        if role == "teacher":
            notes += [*_layer_notes(source), *vector_notes(source.folder, source.tokenizer, draft.task.spec.max_length)]
        lines += [f"{role} {source.card.name}: {note}" for note in notes]
    return lines


def _layer_notes(source: TeacherSource) -> list[str]:
    layers, several = source.card.layers, vector_words(source.config)
    if isinstance(layers, int):
        return [
            f"its vectors are those of layer {layers}; later layers are cut off, which leaves an encoder of "
            f"{layers} layers"
        ]
    return [] if several is None else [f"its vectors are made of {several}"]


def _check_layers(draft: Draft) -> None:
    """Raise `CompressError` if layers are chosen of a teacher that makes no vectors, or that a stage trains with all its layers; or of a
    student's checkpoint, all of whose layers are trained."""
    if draft.pretrained is not None and draft.pretrained.card.layers != LAST:
        card = draft.pretrained.card
        raise CompressError(
            f"student {card.name}: layers: found {card.layers}, which is for teachers; leave it out, or make a student of "
            "its first layers by a card with `init: copy`"
        )
    chosen = [source for source in draft.teachers.values() if source.card.layers != LAST]
    if not chosen:
        return
    where = f"teacher {chosen[0].card.name}: layers: found {chosen[0].card.layers}"
    if draft.learns_labels:
        raise CompressError(
            f"{where}, which is for vectors, and {draft.task.spec.name} is {with_article(draft.task.spec.kind)} task; leave it out"
        )
    if reading := [stage.kind for stage in draft.recipe.stages if stage.kind in _OF_ALL_LAYERS and stage.is_enabled]:
        raise CompressError(
            f"{where}, and the stage `{reading[0]}` trains on the teacher with all its layers; leave one of the two out"
        )


def vector_losses(draft: Draft, spec: L, stage: str, *, student: str = "student", against: str = "teacher") -> L:
    """Return the losses that a sentence encoder can learn by, with a note on what changes; for any other task, return them unchanged.

    No label says which vector is right, so a loss on labels is left out; if it is the only one, `soft_target` replaces it. Vectors of
    another width than the teacher's have no cosine with the teacher's: `similarity_mse` replaces the losses on them.
    """
    check_kind(draft, spec, stage)
    if draft.learns_labels:
        return spec
    widths = draft.sizes[student].hidden, draft.sizes[against].hidden
    kept = [loss for loss in spec.losses if not _on_labels(loss)]
    named = [loss.name for loss in spec.losses if _on_labels(loss) and loss.weight > 0]
    if named:
        other = (
            ""
            if any(loss.weight > 0 for loss in kept)
            else "; the student learns the teacher's vectors instead (soft_target)"
        )
        kept = kept if not other else [loss for loss in kept if loss.name != "soft_target"] + [SoftTarget()]
        draft.notes.append(f"{stage}: {', '.join(named)} is left out: no label says which vector is right{other}")
    if widths[0] != widths[1]:
        kept = _of_any_width(draft, kept, stage, widths)
    return spec.model_copy(update={"losses": tuple(kept)})


def _on_labels(loss: LossSpec) -> bool:
    return LOSSES[loss.name].reads == "logits" and not LOSSES[loss.name].needs_teacher


def _of_any_width(draft: Draft, losses: list[LossSpec], stage: str, widths: tuple[int, int]) -> list[LossSpec]:
    on_vectors = [loss for loss in losses if LOSSES[loss.name].reads == "logits" and loss.weight > 0]
    named = [loss.name for loss in on_vectors if loss.name != "similarity_mse"]
    if not named:
        return losses
    draft.notes.append(
        f"{stage}: similarity_mse instead of {', '.join(named)}: vectors of {widths[0]} and of {widths[1]} "
        "numbers have no cosine; the cosines between texts are compared, the only loss on vectors of "
        "different widths"
    )
    weight = sum(loss.weight for loss in on_vectors)
    return [loss for loss in losses if loss not in on_vectors] + [SimilarityMse(weight=weight)]
