"""What a teacher's training starts with: weights grown from a smaller model, or initialized from counts in its text."""

from __future__ import annotations

import json
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

from ...corpus import TextBatches, count_pairs, word_vectors
from ...models.checkpoints.folders import load_encoder
from ...models.cooccurrence_init import init_encoder, init_head
from ...models.dimensions import dimensions, read_config, word_and_position_widths
from ...models.growth import grow
from ...models.masked_lm import has_masked_lm_head, load_masked_lm
from ...processes import ranks
from ..plan import Job
from ..plan.teachers import TeacherSource
from .info import Start
from .log import saved_step


def grow_into(model: Any, teacher: TeacherSource, *, seed: int) -> None:
    """If the teacher's card names a model to grow from, put the grown weights into `model`: the encoder's, and those of a masked-LM head if
    both have one."""
    if teacher.grown_from is None:
        return
    sizes = (dimensions(read_config(teacher.grown_from), classes=2), teacher.dimensions(2))
    grown = grow(load_encoder(teacher.grown_from).state_dict(), *sizes, seed=seed)
    model.base_model.load_state_dict(grown, strict=False)  # a classifier of a masked LM's encoder has no pooler
    if hasattr(model, "cls") and has_masked_lm_head(teacher.grown_from):
        head = {
            name: value for name, value in load_masked_lm(teacher.grown_from).state_dict().items() if "cls." in name
        }
        model.load_state_dict(grow(head, *sizes, seed=seed), strict=False)


def cooccurrence_init(job: Job[Any], model: Any, text: TextBatches) -> Start | None:
    """Initialize random weights for pre-training from the co-occurrences of words in its `text`; return info on the start.

    Of several processes the first does this, and all begin with its weights. A resumed training counts nothing again: it has its
    own weights but for the words that its data do not read (`training.word_rows`), which are as they were at the start.
    """
    start = _from_counts(job, model, text) if ranks.is_first() else None
    ranks.broadcast(None)  # the others wait here, however long it takes
    return start


def _from_counts(job: Job[Any], model: Any, text: TextBatches) -> Start:
    kept = job.work / "start.safetensors"
    encoder = getattr(model, "base_model", model)
    words = encoder.get_input_embeddings().weight.detach()
    if saved_step(job.work) is not None and kept.exists():
        with safe_open(kept, framework="pt") as file:
            words.copy_(file.get_tensor("words"))
            return json.loads(file.metadata()["start"])
    progress = job.context.listener.progress
    pairs, counts = count_pairs(text, lambda done, total: progress("sequences counted", done, total))
    width, _ = word_and_position_widths(encoder.config.hidden_size, encoder.config.num_attention_heads)
    init_encoder(encoder, word_vectors(pairs, width, seed=job.node.seed))
    if model is not encoder:
        init_head(model, counts)
    start: Start = {"words": int((counts > 0).sum()), "pairs": int(pairs.nnz)}
    save_file({"words": words.cpu()}, kept, metadata={"start": json.dumps(start)})
    return start
