"""vocabulary: reduce the last model's vocabulary to the tokens that texts use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from ...corpus import paragraphs, text_blocks
from ...errors import CompressError
from ...models.checkpoints.folders import load_classifier, load_tokenizer, save_checkpoint
from ...models.dimensions import Dimensions, read_config
from ...models.word_table import keep_rows, largest_row, named_tokens
from ...spec.recipe import Stage
from ...spec.stages import Vocabulary
from ...vocabulary import (
    TextCounts,
    compare_splits,
    compare_texts,
    count_texts,
    count_tokens,
    fewest_tokens,
    kept_tokens,
    permanent_tokens,
    with_tokens,
)
from ..plan import TRAINING, Draft, Job, Kind, Node, Plan
from ..plan.changed import add_changed
from ..plan.fields import WITHOUT_TEXT

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

_NAME = "vocabulary"
# data, tuning file and tokenizer -> token counts in train
_COUNTED: dict[tuple[str, str, str], np.ndarray] = {}


class VocabularyInfo(TypedDict):
    """`tokens`: rows of the embedding table, out of `tokens_before`; `texts`: `train`, `tuning`, `corpus` -> `TextRates` as JSON."""

    tokens: int
    tokens_before: int
    texts: dict[str, dict[str, Any]]


def plan(draft: Draft, stage: Stage) -> None:
    draft.check_student(stage.id)
    spec = _check_spec(draft, stage)
    described = spec.model_dump(mode="json", include={"most", "min_count"})
    outside = {"data": draft.task.fingerprint}
    outside |= {"text": draft.corpus.fingerprint} if spec.corpus and draft.corpus is not None else {}
    add_changed(draft, VOCABULARY, _NAME, spec, described, stage=stage.id, outside=outside)


def _check_spec(draft: Draft, stage: Stage) -> Vocabulary:
    """Return the stage's spec, with `corpus` resolved to true or false, and note what will be kept. Raises `CompressError` for what cannot
    be done."""
    spec: Vocabulary = stage.spec
    if spec.corpus is True and draft.corpus is None:
        raise draft.fails(stage.id, f"corpus: true: {WITHOUT_TEXT}, or leave it out with --set {stage.id}.corpus=auto")
    reads = spec.corpus is not False and draft.corpus is not None
    if spec.min_count > 1 and not reads:
        why = "corpus is false" if spec.corpus is False else WITHOUT_TEXT
        raise draft.fails(
            stage.id,
            f"min_count: {spec.min_count} applies to plain text, and none is read: {why}; or leave min_count out",
        )
    source = draft.source(draft.current)
    try:
        tokenizer = source.tokenizer
        permanent = len(permanent_tokens(tokenizer, named_tokens(source.config)))
    except CompressError as error:
        raise draft.fails(
            stage.id,
            f"the tokenizer.json of {source.card.name}: {error}; leave the stage out with --set {stage.id}.enabled=false",
        ) from None
    if spec.most is not None and spec.most <= permanent:
        raise draft.fails(
            stage.id,
            f"most: expected more than the {permanent:,} special tokens and single characters, which are always "
            f"kept; found {spec.most:,}",
        )
    texts, most = "train and of the corpus" if reads else "train", f", at most {spec.most:,}" if spec.most else ""
    draft.notes.append(
        f"{stage.id}: of {tokenizer.get_vocab_size():,} tokens those of {texts} are kept{most}; {permanent:,} "
        "special ones and single characters always are: this makes the model smaller, not faster"
    )
    return spec.model_copy(update={"corpus": reads})


def run(job: Job[Vocabulary]) -> VocabularyInfo:
    """Write a checkpoint with fewer tokens. All tokens of train are kept, unless `most` is less."""
    (checkpoint,), context, spec = job.inputs.values(), job.context, job.spec
    model = load_classifier(checkpoint.path, kind=context.kind, labels=context.labels, trained=True)
    before, config = load_tokenizer(checkpoint.path), read_config(checkpoint.path)
    train, tuning = context.task.data.train, context.task.data.tuning
    kept = kept_of(job, spec, model, before, config)
    after = with_tokens(before, kept)
    keep_rows(model, kept)
    save_checkpoint(model.eval(), after, job.out)
    texts = {"train": compare_splits(before, after, train), "tuning": compare_splits(before, after, tuning)}
    texts |= {"corpus": compare_texts(before, after, _paragraphs(job))} if spec.corpus else {}
    for name, counts in texts.items():
        _note_new_unknowns(job, name, counts)
    rates = {name: counts.rates.model_dump() for name, counts in texts.items()}
    return {"tokens": len(kept), "tokens_before": int(config["vocab_size"]), "texts": rates}


def kept_of(job: Job[Any], spec: Vocabulary, model: Any, tokenizer: Tokenizer, config: dict[str, Any]) -> np.ndarray:
    """Return the tokens of a model that the stage keeps, ascending; `job`: of this stage, or of one that needs to know beforehand."""
    counts = count_tokens(tokenizer, job.context.task.data.train)
    others = count_texts(tokenizer, _paragraphs(job)) if spec.corpus else None
    counts[largest_row(model, tokenizer.get_vocab().values())] = counts.max() + 1  # ranks first, so that it is kept
    permanent = permanent_tokens(tokenizer, named_tokens(config))
    return kept_tokens(tokenizer, permanent, counts, others, most=spec.most, least=spec.min_count)


def _paragraphs(job: Job[Any]) -> Iterator[list[str]]:
    """Yield the paragraphs of the plain text, a block at a time."""
    corpus, listener, done = job.plan.corpus, job.context.listener, 0
    if corpus is None:
        raise RuntimeError("a corpus is only read where there is one")
    corpus.check_unchanged()
    for block in text_blocks(paragraphs(corpus.sources)):
        lines = [line for line in block if line]
        yield lines
        done += len(lines)
        listener.progress("paragraphs", done, None)


def _note_new_unknowns(job: Job[Vocabulary], name: str, counts: TextCounts) -> None:
    """Report words that become unknown: those with a character that is in the vocabulary only within longer tokens."""
    if counts.unknown_after > counts.unknown:
        job.context.notice(
            f"{job.node.id}: {counts.unknown_after - counts.unknown:,} more words of {name} are unknown: the "
            "vocabulary lacks characters that its longer tokens have; give text with such words with --corpus"
        )


def largest_dimensions(spec: Vocabulary, sizes: Dimensions) -> Dimensions:
    """Return the sizes with the largest number of tokens that can be kept."""
    return sizes if spec.most is None else replace(sizes, vocabulary=min(sizes.vocabulary, spec.most))


def smallest_dimensions(plan: Plan, node: Node[Vocabulary], sizes: Dimensions) -> Dimensions:
    """Return the sizes with only the tokens that train requires."""
    source = plan.source_of(node)
    permanent = permanent_tokens(source.tokenizer, named_tokens(source.config))
    counts = _counts_of_train(plan, source.tokenizer)
    fewest = fewest_tokens(source.tokenizer, permanent, counts, most=node.spec.most)
    return replace(sizes, vocabulary=min(sizes.vocabulary, fewest))


def _counts_of_train(plan: Plan, tokenizer: Tokenizer) -> np.ndarray:
    """Token counts of train, cached for the process: a search plans the same task many times."""
    key = plan.task.fingerprint, str(plan.task.tuning), hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    if key not in _COUNTED:
        _COUNTED.clear()  # one task's are enough
        _COUNTED[key] = count_tokens(tokenizer, plan.task.data.train)
    return _COUNTED[key].copy()


VOCABULARY = Kind(
    _NAME, 1, Vocabulary, run=run, plan=plan, libraries=TRAINING, checkpoint=True, reads_text=True,
    resized=largest_dimensions, smallest=smallest_dimensions,
)  # fmt: skip
