"""tokenize: plain text -> token shards in the teacher's vocabulary, shared by the stages that read the same amount."""

from __future__ import annotations

from typing import Any

from ...corpus import text_rules, tokenize_corpus
from ...fields import Positive, Spec
from ..plan import Draft, Job, Kind
from ..plan.teachers import TeacherSource

_RULES: dict[str, dict[str, str]] = {}  # hash of a vocabulary -> how its tokenizer reads text


class Tokenize(Spec):
    """`max_tokens`: how many tokens of the text to read; None: all."""

    max_tokens: Positive | None = None


def add_text(draft: Draft, max_tokens: int | None) -> str:
    """Add the node of the tokenized text, for a stage that reads so much of it; return its name."""
    name = f"text-{max_tokens}" if max_tokens else "text"
    if draft.corpus is not None and not draft.has(name):
        outside = {"text": draft.corpus.fingerprint, "tokenizer": draft.teacher.vocabulary}
        spec = Tokenize(max_tokens=max_tokens)
        described = spec.model_dump() | _rules(draft.teacher)
        draft.add(TOKENIZE, name, "text", spec, described, outside=outside, seed=0)
    return name


def _rules(teacher: TeacherSource) -> dict[str, str]:
    """Return the tokenizer's rules, read once for all plans of a command: a large vocabulary takes a second."""
    if teacher.vocabulary not in _RULES:
        _RULES[teacher.vocabulary] = text_rules(teacher.tokenizer)
    return _RULES[teacher.vocabulary]


def run(job: Job[Tokenize]) -> dict[str, Any]:
    """Write the shards."""
    corpus, most = job.plan.corpus, job.spec.max_tokens
    if corpus is None:
        raise RuntimeError("a tokenize stage is only planned with a corpus")
    corpus.check_unchanged()
    return tokenize_corpus(
        corpus.sources,
        job.plan.teacher.tokenizer,
        job.out,
        job.work,
        max_tokens=most,
        threads=job.context.threads,
        on_progress=lambda tokens: job.context.listener.progress("tokens", tokens, most),
    )


TOKENIZE = Kind("tokenize", 1, Tokenize, run=run, libraries=("tokenizers",))
