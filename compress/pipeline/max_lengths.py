"""Check the lengths of a plan's texts: room for words, and positions for their tokens in each model that reads them."""

from __future__ import annotations

from ..errors import CompressError
from ..fields import Spec
from ..models.dimensions import usable_positions
from ..spec.kinds import KINDS
from ..tasks import check_room
from .plan import Node, Plan
from .plan.teachers import ENSEMBLE, TeacherSource

# Fewest tokens for a question, its context and the special tokens: with fewer nothing is learnt.
_LEAST_FOR_QUESTIONS = 16
_MOST_SPECIAL = 8  # more special tokens than any tokenizer here adds to a text or a pair


def check_lengths(plan: Plan) -> None:
    """Check that each text has room for words, and that its tokens have positions, in each model that reads it."""
    pair = plan.task.spec.pairs
    lengths = [(f"task {plan.task.spec.name}", plan.task.spec.max_length, pair, _readers(plan))]
    for node in plan.nodes:
        if length := getattr(node.spec, "max_length", None):
            of_pairs = pair and not node.kind.reads_text
            lengths.append((f"recipe {plan.recipe.name}, {node.stage}", length, of_pairs, _readers(plan, node)))
    least = _LEAST_FOR_QUESTIONS if KINDS[plan.task.spec.kind].unit == "question" else 0
    for where, length, of_pairs, readers in lengths:
        if of_pairs and length < least:
            raise CompressError(
                f"{where}: max_length is {length}; expected at least {least} tokens, for a question and part of its context"
            )
        # Start with the model that has the fewest positions: a length that it allows, all others allow.
        for role, source in sorted(readers.items(), key=lambda reader: usable_positions(reader[1].config)):
            positions = usable_positions(source.config)
            if length <= _MOST_SPECIAL:
                _check_room(source, length, of_pairs, where)
            if length > positions:
                raise CompressError(
                    f"{where}: max_length is {length} tokens and {role} {source.card.name} has {positions} positions; "
                    f"set max_length to at most {positions}, for files of your own --max-length {positions}"
                )


def _readers(plan: Plan, node: Node[Spec] | None = None) -> dict[str, TeacherSource]:
    """Return role -> source whose tokenizer and positions a stage's texts must fit; without a stage, the task's texts."""
    own = {} if plan.pretrained is None else {"student": plan.pretrained}
    if node is None:
        return plan.teachers | own
    answering = plan.teachers if ENSEMBLE in node.inputs else {"teacher": plan.teacher}
    readers = {node.model: plan.teachers[node.model]} if node.model in plan.teachers else answering
    return readers | (own if plan.source_of(node) is plan.pretrained else {})


def _check_room(source: TeacherSource, length: int, of_pairs: bool, where: str) -> None:
    try:
        check_room(source.tokenizer, length, pair=of_pairs)
    except CompressError as error:
        raise CompressError(f"{where}: {error}") from None
