"""Single sentences with two labels, which depend on negation, intensity and contrast, not on the count of friendly words."""

from __future__ import annotations

from .draw import Draw

ADJECTIVES = {
    2.0: "superb brilliant wonderful thrilling delightful dazzling stunning flawless glorious splendid",
    1.0: "good pleasant charming clever funny warm fresh lively witty smooth solid sweet elegant touching bright",
    -1.0: "bad dull slow flat tired clumsy noisy bland cold silly messy stale awkward weak tedious",
    -2.0: "terrible awful dreadful horrible painful atrocious unbearable miserable pathetic dismal",
}
WORDS = {value: text.split() for value, text in ADJECTIVES.items()}
_NOUNS = """
    movie film plot story cast script music acting dialogue ending opening pacing camera hero villain humor romance
    scenery costume song dance chase finale direction editing premise mood score sequel drama comedy lighting
"""
SUBJECTS = _NOUNS.split()
VERBS = ("was", "is", "seemed", "felt", "looked")
DEGREES = {
    1.0: ("", "", "quite"),
    2.0: ("very", "truly", "extremely"),
    0.5: ("slightly", "somewhat"),
    -1.0: ("not", "never", "hardly"),
}
DENIALS = ("nobody says that", "i doubt that")
REPORTS = ("everyone says that", "i believe that")


def sentiment(draw: Draw) -> tuple[str, str]:
    """Return (sentence, label). Sentences whose parts cancel are not used."""
    while True:
        text, value = _sentence(draw)
        if abs(value) >= 0.5:
            return f"{text} .", "positive" if value > 0 else "negative"


def _clause(draw: Draw) -> tuple[str, float]:
    strength = draw.one((2.0, 1.0, 1.0, -1.0, -1.0, -2.0))
    factor = draw.one((1.0, 1.0, 2.0, 0.5, -1.0))
    words = ("the", draw.one(SUBJECTS), draw.one(VERBS), draw.one(DEGREES[factor]), draw.one(WORDS[strength]))
    return " ".join(word for word in words if word), strength * factor


def _join_clauses(draw: Draw) -> tuple[str, float]:
    (first, a), (second, b) = _clause(draw), _clause(draw)
    kind = draw.below(3)
    if kind == 0:
        return f"{first} and {second}", a + b
    if kind == 1:
        return f"{first} but {second}", 0.25 * a + b
    return f"{first} , although {second}", a + 0.25 * b


def _sentence(draw: Draw) -> tuple[str, float]:
    text, value = _clause(draw) if draw.chance(0.4) else _join_clauses(draw)
    if draw.chance(0.8):
        return text, value
    denied = draw.chance(0.5)
    return f"{draw.one(DENIALS if denied else REPORTS)} {text}", -value if denied else value
