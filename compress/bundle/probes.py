"""Fixed texts whose logits, or vectors, are stored in a bundle: the same file must give the same answers on another machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers

from ..errors import CheckFailed
from ..runtime import Chooser, Embedder, Reader, load
from ..runtime.batches import pad_batch
from ..runtime.endings import EndingCutter
from ..runtime.folder import find_model, read_settings, read_tokenizer
from ..runtime.kinds.embedding import DIGITS
from ..runtime.passages import Best, Cut, Passages
from ..runtime.reading import Text
from ..runtime.unpadded import open_unpadded
from ..runtime.words import Places, Windower, word_spans
from ..spec.kinds import KINDS, KindName, Unit

# Written for this purpose, in no data set. Plain and odd ones: accents, emoji, digits, markup, one word,
# nothing at all, and one that is longer than any limit.
SENTENCES = (
    "The kettle boils in four minutes and the tea is good.",
    "I would not sit through that concert a second time.",
    "Nothing about the repair was easy, yet the result holds.",
    "A slow start, a clumsy middle and no end worth waiting for.",
    "They gave us the wrong key and then blamed the lock!",
    "Warm, funny and over far too soon.",
    "The report lists three causes: rain, rust and haste.",
    "Who left the gate open last night?",
    "Café prices in Zürich rose by 7.5 % in 2023.",
    "What a morning 😀🎉 everything worked at once",
    "fine",
    "IT IS NOT THAT I DISLIKE IT, I JUST DO NOT SEE THE POINT",
    "<b>Sale</b> ends & prices go back up at 18:00 -- don't wait...",
    "Die Straße ist naß, 雨が降る, и ветер сильный.",
    "",
    "The train stopped again, and again we waited, and nobody said why. " * 60,
)
FOLLOW_UPS = (
    "The tea takes less than five minutes to make.",
    "I enjoyed the concert.",
    "The repair was difficult and it worked.",
    "The story ended well.",
    "The key that they gave us was the right one.",
    "It was long and cold.",
    "Rain was one of three causes.",
    "Somebody opened the gate in the evening.",
    "Coffee in Zürich became cheaper.",
    "Everything failed 😀",
    "good",
    "i cannot see the point of it",
    "The sale goes on until six in the evening.",
    "The street is wet.",
    "",
    "Nobody explained the delay. " * 60,
)
# About SENTENCES; the last of these is too short to be read in windows, so LONG_PASSAGE takes its place.
QUESTIONS = (
    "How long does the kettle take?",
    "What would I not sit through again?",
    "Was the repair easy?",
    "Where is the author born?",
    "What did they blame?",
    "How long was it?",
    "Which causes does the report list?",
    "When was the gate left open?",
    "By how much did prices rise in Zürich?",
    "What worked at once? 😀",
    "fine?",
    "WHAT DO I NOT SEE",
    "When do prices go back up?",
    "Was fällt in Japan?",
    "Is there anything to read?",
    "Who was blamed for the key, and where did coffee become cheaper? " * 12,
)
LONG_PASSAGE = " ".join(f"In chapter {number} it says: {text}" for number, text in enumerate(SENTENCES[:14] * 4))
_PADDING = 3  # columns that the mask hides


def probe_texts(columns: int, *, unit: Unit = "text", most_words: int | None = None) -> tuple[tuple[str, ...], ...]:
    """Return sixteen examples of one or two texts. `most_words` limits a text: if words are labelled, the logits of each are
    stored. For questions the second text is the context."""
    if unit == "question":
        return tuple(zip(QUESTIONS, (*SENTENCES[:-1], LONG_PASSAGE), strict=True))
    if columns == 2:
        return tuple(zip(SENTENCES, FOLLOW_UPS, strict=True))
    return tuple((text if most_words is None else " ".join(text.split(" ")[:most_words]),) for text in SENTENCES)


@dataclass(frozen=True)
class ProbeRows:
    """Texts as a model reads them, a row for each, or for each of its windows. `places`: if words are labelled. `cut`: if
    questions are answered, with the no-answer `threshold`."""

    encodings: list[tokenizers.Encoding]
    places: Places | None = None
    cut: Cut | None = None
    threshold: float = 0.0

    def collected(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """Return float32 [text, class or width], [word, label] or [question, 4] from the outputs of each row, [class] or
        [length, label], padding included."""
        if self.cut is not None:
            best = Best(self.cut, most=1)
            for window, row in enumerate(outputs):
                best.add(np.array([window]), row[None])
            return best.outputs(impossible=True, threshold=self.threshold)
        if self.places is None:
            return np.stack(outputs)
        logits = self.places.unread(outputs[0].shape[-1], 0)  # a bundle's labels begin with O, if they have it
        for window, row in enumerate(outputs):
            self.places.put(logits, np.array([window]), row[None])
        return logits


def probe_rows(folder: Path, texts: Sequence[tuple[str, ...]]) -> ProbeRows:
    """Encode the texts with the bundle's tokenizer."""
    settings = read_settings(folder)
    tokenizer = read_tokenizer(folder / "tokenizer.json", settings)
    if settings.kind.unit == "question":
        cut = Passages(tokenizer, settings.max_length)(*zip(*texts, strict=True))
        return ProbeRows(cut.encodings, cut=cut, threshold=settings.threshold)
    if settings.kind.unit == "choice":
        pairs = [(context, ending) for context, ending in texts]
        return ProbeRows(EndingCutter(tokenizer, settings.max_length)(pairs)[0])
    if settings.kind.unit != "word":
        return ProbeRows(tokenizer.encode_batch_fast(examples(texts)))
    plain = [text for (text,) in texts]
    windows = Windower(tokenizer, settings.max_length)(plain, [word_spans(text) for text in plain])
    return ProbeRows(windows.encodings, windows.places)


def rows_of(kind: KindName, texts: Sequence[tuple[str, ...]]) -> int:
    """Return how many rows the logits of `texts` have."""
    return sum(len(word_spans(text)) for (text,) in texts) if KINDS[kind].unit == "word" else len(texts)


def unpadded_logits(folder: Path, precision: str, texts: tuple[tuple[str, ...], ...]) -> np.ndarray:
    """`probe_logits` from the unpadded form of the graph: each text twice in a batch, with padding to leave out. A different
    text in the batch would change the ranges that dynamic int8 measures, and so the answer."""
    settings, (_, model) = read_settings(folder), find_model(folder, precision)
    rows, engine = probe_rows(folder, texts), open_unpadded(model, threads=1)
    outputs = []
    for encoding in rows.encodings:
        batch = pad_batch([encoding, encoding], engine.inputs, settings.pad_id)
        room = min(_PADDING, settings.max_length - len(encoding))
        longer = {name: np.pad(values, ((0, 0), (0, room))) for name, values in batch.items()}
        outputs.append(engine.run(longer)[1])
    return rows.collected(outputs)


def probe_logits(folder: Path, precision: str, texts: tuple[tuple[str, ...], ...], threads: int | None) -> np.ndarray:
    """Return float32 [text, class], [word, label], [question, 4] (`Reader.outputs`, with no answer where that is likelier,
    whatever the task), or [text, width] of vectors, one text at a time, so that no answer depends on another. CheckFailed:
    non-finite."""
    model = load(folder, precision=precision, threads=threads, verify=False)  # `verify` hashes all
    if isinstance(model, Embedder):
        return model.embed([text for (text,) in texts], batch_size=1).round(DIGITS)
    if isinstance(model, Reader):
        logits = model.outputs([(question, context) for question, context in texts], impossible=True, batch_size=1)
    elif isinstance(model, Chooser):
        logits = model.logits([(context, ending) for context, ending in texts], batch_size=1)
    else:
        logits = model.logits(examples(texts), batch_size=1)
    if not np.isfinite(logits).all():
        raise CheckFailed(f"{model.model}: gives non-finite scores for plain sentences; do not use this model")
    return logits


def examples(texts: Sequence[tuple[str, ...]]) -> list[Text]:
    """Return texts as tokenizers take them: a text, or a pair."""
    return [text[0] if len(text) == 1 else (text[0], text[1]) for text in texts]
