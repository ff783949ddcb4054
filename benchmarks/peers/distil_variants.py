"""The candidates of the distillation benchmark: libraries, and the ways in which each makes batches."""

from __future__ import annotations

from dataclasses import dataclass

CASES = {
    "logits": "Logits: 0.5 · T² · KL at T = 2 and 0.5 · cross-entropy with the labels",
    "layers": "Layers: TinyBERT's squared errors of embeddings, hidden states and attention scores",
}
FIRST, AGAIN = "compress", "compress, again"


@dataclass(frozen=True)
class Candidate:
    """`environment`: the name of its requirements file; "" for the interpreter that runs the benchmark."""

    name: str
    peer: str
    environment: str
    pad: str
    what: str
    cases: tuple[str, ...] = tuple(CASES)


def candidates() -> list[Candidate]:
    """Return the candidates in the order of the page."""
    brewer, distill, trainer = (
        ("distil_textbrewer", "textbrewer"),
        ("distil_torchdistill", "torchdistill"),
        ("distil_trainer", ""),
    )
    ours = ("distil_ours", "")
    own = "batches of near-equal lengths; in the first case the teacher answers each text once, before the first step"
    shuffled = "a random order, each batch padded to its longest text (DataCollatorWithPadding)"
    return [
        Candidate(FIRST, *ours, "length", own),
        Candidate(AGAIN, *ours, "length", "the same once more, which shows the noise"),
        Candidate(
            "TextBrewer, 128", *brewer, "128", "as its notebook for SST-2 has it: every text padded to 128 tokens"
        ),
        Candidate("TextBrewer", *brewer, "batch", shuffled),
        Candidate("TextBrewer, same batches", *brewer, "same", "the batches of our first epoch, in each epoch"),
        Candidate(
            "TextBrewer, cached",
            *brewer,
            "cached batch",
            "its `is_caching_logits`: the teacher answers once, and batches stay as they are",
            ("logits",),
        ),
        Candidate("torchdistill", *distill, "batch", shuffled),
        Candidate("Trainer", *trainer, "batch", shuffled),
        Candidate("Trainer, by length", *trainer, "by length", "its `group_by_length`"),
    ]
