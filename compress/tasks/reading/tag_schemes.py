"""Schemes of entity tags: IOB1, IOB2, BIOES and BILOU, all read as IOB2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...metrics.tags import OUTSIDE
from ...runtime.kinds.tagging import MARKED

_BEGIN, _LAST = "BSU", "ESLU"  # marks of an entity's first word; of its last word


def are_tags_of_entities(tags: Iterable[str]) -> bool:
    """Whether some tags have a mark and a type, such as B-PER, and either all do or one is O; other tags, if any, are then mistakes."""
    different = set(tags)
    marked = set(filter(MARKED.fullmatch, different))
    return bool(marked) and (OUTSIDE in different or marked == different)


def is_tag(tag: str) -> bool:
    """Whether this is an entity tag."""
    return tag == OUTSIDE or MARKED.fullmatch(tag) is not None


def types_of(tags: Iterable[str]) -> set[str]:
    return {match[2] for match in map(MARKED.fullmatch, tags) if match}


def to_iob2(texts: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[str]]:
    """Return the tags of each text in IOB2, and a note if they were not. As in conlleval and seqeval, an entity begins at any tag whose
    type differs from the previous word's."""
    converted, begun, marks = [], 0, set()
    for tags in texts:
        new, before = [], ""
        for mark, kind in map(_split_tag, tags):
            begins = mark in _BEGIN or kind != before
            begun += begins and mark not in (*_BEGIN, "")
            new.append(f"{'B' if begins else 'I'}-{kind}" if mark else OUTSIDE)
            before = "" if mark in (*_LAST, "") else kind
            marks.add(mark)
        converted.append(new)
    if marks & set(_LAST):
        return converted, [f"tags are {'BILOU' if marks & set('LU') else 'BIOES'}, read as IOB2"]
    return converted, [f"{begun:,} entities begin with I-, as in IOB1; it is read as B-"] if begun else []


def _split_tag(tag: str) -> tuple[str, str]:
    match = MARKED.fullmatch(tag)
    return (match[1], match[2]) if match else ("", "")
