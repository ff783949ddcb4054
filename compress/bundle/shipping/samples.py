"""Sample inputs for a model's card, such as its task has: a text, a pair, or a context with endings. Our own, from no data
set."""

from __future__ import annotations

from ...spec.kinds import Unit

LANGUAGES = "en"  # of all tasks named here
SAMPLES: dict[str, tuple[str, ...]] = {
    "cola": ("The letter was read to the whole class.",),
    "sst2": ("a warm and funny film that never loses its way .",),
    "mrpc": ("The company said that profits rose by a tenth.", "Profits were up ten percent, the company said."),
    "qqp": ("How do I learn to swim?", "What is the best way to learn swimming?"),
    "stsb": ("A man is playing a guitar.", "Somebody plays an instrument."),
    "mnli": ("The kettle boils on the stove.", "The water is hot."),
    "qnli": ("When was the bridge finished?", "The bridge over the bay was finished in 1932."),
    "rte": ("The bridge, which was finished in 1932, was closed in 1990.", "The bridge was closed in 1990."),
    "wnli": ("The cup does not fit into the box because it is too wide.", "The cup is too wide."),
    "toy-sentiment": ("a slow start , but a wonderful end",),
    "toy-entailment": ("the old man opens the door", "a man opens the door"),
    "toy-similarity": ("the old man opens the door", "a man opens the window"),
}
_NAMES = "Marie Curie moved from Warsaw to Paris in 1891."
_QUESTION = "Where did Marie Curie move from?"
_ENDINGS = "She put the kettle on the stove.", "She waited until it boiled.", "She drove it to the office."
_OTHERS = {1: ("A slow start, and a fine end.",), 2: ("The kettle boils.", "The water is hot.")}


def sample(task: str, columns: int, *, unit: Unit = "text") -> tuple[str, ...]:
    """Return `columns` texts, or a context and endings: the task's own, or general ones if it is unknown. `unit`: what the
    model answers."""
    if unit == "word":
        return (_NAMES,)
    if unit == "question":
        return _QUESTION, _NAMES
    if unit == "choice":
        return _ENDINGS
    known = SAMPLES.get(task, ())
    return known if len(known) == columns else _OTHERS[columns]
