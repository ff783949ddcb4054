"""Sentence pairs with three labels, decided exactly by word hierarchies and quantifiers.

"A poodle sprints in the park" entails "a dog runs"; under "no" the direction is reversed: "no dog runs" entails "no poodle sprints in the
park".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .draw import Draw

NOUNS = {"dog": "poodle terrier", "bird": "robin sparrow", "musician": "drummer singer", "child": "boy girl"}
VERBS = {"runs": "sprints jogs", "talks": "whispers shouts", "rests": "sleeps dozes"}
PLACES = ("in the park", "near the river", "on the beach")
GENERAL = {word: noun for table in (NOUNS, VERBS) for noun, words in table.items() for word in words.split()}
_OPENINGS = """
    |well ,|so ,|in fact ,|of course ,|they say that|we know that|it is true that|today|right now|as usual|this time|
    once again|for now|as we see ,|i think that|it seems that|at last
"""
OPENINGS = [opening.strip() for opening in _OPENINGS.split("|")]
QUANTIFIERS = {"some": ("a", "some"), "no": ("no", "not one")}


@dataclass(frozen=True)
class Fact:
    """Something, or nothing, of kind `noun` does `verb` (at `place`, unless empty)."""

    quantifier: str
    noun: str
    verb: str
    place: str


def entailment(draw: Draw) -> tuple[str, str, str]:
    """Return (premise, hypothesis, label), the three labels equally likely."""
    wanted = draw.one(("entailment", "neutral", "contradiction"))
    while True:
        premise = _draw_fact(draw)
        hypothesis = _variation(draw, premise)
        label = relation(premise, hypothesis)
        if label == wanted:
            return _draw_text(draw, premise), _draw_text(draw, hypothesis), label


def relation(premise: Fact, hypothesis: Fact) -> str:
    """Return the label of `hypothesis` given `premise`."""
    if premise.quantifier == hypothesis.quantifier:
        narrow, wide = (premise, hypothesis) if premise.quantifier == "some" else (hypothesis, premise)
        return "entailment" if _is_contained(narrow, wide) else "neutral"
    something, nothing = (premise, hypothesis) if premise.quantifier == "some" else (hypothesis, premise)
    return "contradiction" if _is_contained(something, nothing) else "neutral"


def _is_contained(narrow: Fact, wide: Fact) -> bool:
    """Whether every event described by `narrow` is also described by `wide`."""
    nouns = wide.noun in (narrow.noun, GENERAL.get(narrow.noun))
    verbs = wide.verb in (narrow.verb, GENERAL.get(narrow.verb))
    return nouns and verbs and wide.place in ("", narrow.place)


def _draw_fact(draw: Draw) -> Fact:
    noun = draw.one(list(NOUNS)) if draw.chance(0.3) else draw.one(_all_words(NOUNS))
    verb = draw.one(list(VERBS)) if draw.chance(0.4) else draw.one(_all_words(VERBS))
    quantifier = "no" if draw.chance(0.3) else "some"
    return Fact(quantifier, noun, verb, draw.one(PLACES) if draw.chance(0.6) else "")


def _variation(draw: Draw, fact: Fact) -> Fact:
    """Return the fact with one or two changes: wider, narrower or unrelated words, another quantifier or place."""
    for _ in range(1 + draw.below(2)):
        kind = draw.below(4)
        if kind == 0:
            fact = replace(fact, noun=_draw_related(draw, fact.noun, NOUNS))
        elif kind == 1:
            fact = replace(fact, verb=_draw_related(draw, fact.verb, VERBS))
        elif kind == 2:
            fact = replace(fact, place=draw.one(PLACES) if not fact.place or draw.chance(0.2) else "")
        else:
            fact = replace(fact, quantifier="no" if fact.quantifier == "some" else "some")
    return fact


def _draw_related(draw: Draw, word: str, table: dict[str, str]) -> str:
    if draw.chance(0.5):
        return draw.one(_all_words(table))
    return GENERAL[word] if word in GENERAL else draw.one(table[word].split())


def _all_words(table: dict[str, str]) -> list[str]:
    return [word for words in table.values() for word in words.split()]


def _draw_text(draw: Draw, fact: Fact) -> str:
    words = [draw.one(OPENINGS), draw.one(QUANTIFIERS[fact.quantifier]), fact.noun, fact.verb, fact.place]
    return " ".join(word for word in words if word) + " ."
