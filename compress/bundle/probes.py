"""Fixed texts whose logits travel with a bundle: the same file must answer the same on another machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import CheckFailed
from ..runtime import Classifier
from ..runtime.batches import padded
from ..runtime.folder import find_model, read_settings, read_tokenizer
from ..runtime.reading import Text
from ..runtime.unpadded import open_unpadded

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
_PADDING = 3  # columns that the mask hides


def probe_texts(columns: int) -> tuple[tuple[str, ...], ...]:
    """Sixteen examples of one or two texts."""
    return tuple(zip(SENTENCES, FOLLOW_UPS, strict=True)) if columns == 2 else tuple((text,) for text in SENTENCES)


def unpadded_logits(folder: Path, precision: str, texts: tuple[tuple[str, ...], ...]) -> np.ndarray:
    """float32 [text, class] from the unpadded form of the graph: each text twice in a batch, with padding to leave out. A text
    beside another would change the ranges that dynamic int8 measures, and with them its answer."""
    settings, (_, model) = read_settings(folder), find_model(folder, precision)
    encodings = read_tokenizer(folder / "tokenizer.json", settings).encode_batch_fast(examples(texts))
    engine = open_unpadded(model, threads=1)
    found = []
    for encoding in encodings:
        batch = padded([encoding, encoding], engine.inputs, settings.pad_id)
        room = min(_PADDING, settings.max_length - len(encoding))
        longer = {name: np.pad(values, ((0, 0), (0, room))) for name, values in batch.items()}
        found.append(engine.run(longer)[1])
    return np.stack(found)


def probe_logits(folder: Path, precision: str, texts: tuple[tuple[str, ...], ...], threads: int | None) -> np.ndarray:
    """float32 [text, class], one text at a time, so that no answer depends on another. CheckFailed: non-finite."""
    model = Classifier(folder, precision=precision, threads=threads, verify=False)  # `verify` hashes all
    logits = model.logits(examples(texts), batch_size=1)
    if not np.isfinite(logits).all():
        raise CheckFailed(f"{model.model}: gives non-finite scores for plain sentences; do not use this model")
    return logits


def examples(texts: tuple[tuple[str, ...], ...]) -> list[Text]:
    """As tokenizers take them: a text, or a pair."""
    return [text[0] if len(text) == 1 else (text[0], text[1]) for text in texts]
