"""The words for each kind of task and each metric in reports and model cards, and lists of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...results import TaskInfo
from ...spec.kinds import KINDS


@dataclass(frozen=True)
class KindWords:
    """`pipeline_tag`: the kind's name on model hubs. `example`: the Python line of a model card that turns `logits` [text, output] into
    answers; `example_or_none`: the same for a task with questions that have no answer. `answer`: the runtime's class; `optimum`: the class
    of optimum that opens a bundle. `cut`: what happens to a longer text. `outputs`: of the graph, in Python, and `results`: their names in
    the example; `truncation`: more arguments of its `enable_truncation`; `input`: what it reads, if that is not the task's texts.
    `divergence` has a placeholder for the model that outputs are compared with."""

    pipeline_tag: str
    output: str
    example: str
    limit: str
    divergence: str
    answer: str = "Classifier"
    optimum: str = "ORTModelForSequenceClassification"
    cut: str = "cut to {} tokens"
    outputs: str = '["logits"]'
    results: str = "logits"
    truncation: str = ""
    input: str | None = None
    example_or_none: str = ""


# For a model card: the best span of each context.
_BEST_SPAN = """\
for (_, context), one, start, end in zip(texts, encoded, starts, ends):
    inside = [i for i, text in enumerate(one.sequence_ids) if text == 1]  # the context's tokens
    spans = [(start[i] + end[j], i, j) for i in inside for j in inside if i <= j < i + 30]
"""
_SPANS = f"""\
{_BEST_SPAN}    score, first, last = max(spans, default=(0, 0, 0))  # an empty context has no answer
    print(context[one.offsets[first][0] : one.offsets[last][1]].strip())"""
_SPANS_OR_NONE = f"""\
{_BEST_SPAN}    cls = 0 if one.sequence_ids[0] is None else sum(one.attention_mask) - 1  # the first token; XLNet's is the last
    none = start[cls] + end[cls] - (config.get("null_score_diff_threshold") or 0)
    score, first, last = max(spans, default=(none - 1, 0, 0))
    print("no answer" if none > score else context[one.offsets[first][0] : one.offsets[last][1]].strip())"""

KIND_WORDS: dict[str, KindWords] = {
    "classification": KindWords(
        pipeline_tag="text-classification",
        output="one logit per label",
        example='print([config["id2label"][str(i)] for i in logits.argmax(axis=1)])',
        limit="It always answers with one of its labels, also for a text to which none applies.",
        divergence="KL divergence from {}, nats",
    ),
    "multilabel": KindWords(
        pipeline_tag="text-classification",
        output="one logit per label, each a decision of its own: the label is given where it is above 0",
        example='print([[config["id2label"][str(i)] for i in row.nonzero()[0]] for row in logits > 0])',
        limit="It knows its labels alone, and may give none, or several that do not go together. Its outputs may have been moved so that "
        "labels are best given at one half on the tuning split: probabilities are no frequencies.",
        divergence="KL divergence from {}, nats, summed over labels",
    ),
    "tagging": KindWords(
        pipeline_tag="token-classification",
        output="one logit per token and label, special tokens included; the first token of a word decides it",
        example='print([[config["id2label"][str(i)] for i in row] for row in logits.argmax(axis=2)])',
        limit="It knows its labels alone, and gives every word one of them. It was measured on the words of its data: pass lists of words "
        "where yours are cut otherwise than at spaces and punctuation.",
        divergence="KL divergence from {}, nats a word",
        answer="Tagger",
        optimum="ORTModelForTokenClassification",
        cut="of which the model reads {} tokens at a time; bert-compress reads longer texts in windows that overlap",
    ),
    "span": KindWords(
        pipeline_tag="question-answering",
        output="two logits per token, `start_logits` and `end_logits`; the answer is the part of the context whose first and last token "
        "have the largest sum; where the task has questions without an answer, that of [CLS] speaks for none",
        example=_SPANS,
        example_or_none=_SPANS_OR_NONE,
        limit="It answers with a part of the context, and with one even where the context does not tell, unless it was trained on "
        "questions without an answer.",
        divergence="mean squared difference of answers' logits to {}",
        answer="Reader",
        optimum="ORTModelForQuestionAnswering",
        cut="of which the model reads {} tokens at a time; bert-compress reads longer contexts in windows that overlap",
        outputs='["start_logits", "end_logits"]',
        results="starts, ends",
    ),
    "ranking": KindWords(
        pipeline_tag="text-ranking",
        output="one score, the higher the more relevant the second text is to the first",
        example="print(logits[:, 0])",
        limit="Its scores put the passages of one query in order. Scores of different queries need not compare, and their sigmoids are no "
        "frequencies. It gives a score for any two texts.",
        divergence="mean squared difference to {}",
        answer="Ranker",
    ),
    "choice": KindWords(
        pipeline_tag="multiple-choice",
        input="a context with each of its endings",
        output="one score per pair, the higher the better the second text goes on from the first; the softmax of the scores of a "
        "question's endings are their probabilities",
        example='print("ending", logits[:, 0].argmax())',
        limit="It always chooses one of the endings that it is given, also where none fits. Scores of different questions do not compare.",
        divergence="KL divergence from {}, nats a question",
        answer="Chooser",
        optimum="",
        cut="cut to {} tokens together, the context first",
        truncation=', strategy="only_first"',
    ),
    "regression": KindWords(
        pipeline_tag="text-classification",
        output="one score",
        example="print(logits[:, 0])",
        limit="It gives a score for any texts, also for those to which the question does not apply.",
        divergence="mean squared difference to {}",
    ),
    "embedding": KindWords(
        pipeline_tag="sentence-similarity",
        input="a text",
        output="a vector of length 1 per text",
        example="print(vectors @ vectors.T)",
        limit="Its vectors are compared with one another alone: those of another model, the teacher included, are other vectors.",
        divergence="1 - cosine with {}'s vector, a text's mean",
        answer="Embedder",
        optimum="ORTModelForFeatureExtraction",
        outputs='["sentence_embedding"]',
        results="vectors",
    ),
}


@dataclass(frozen=True)
class MetricWords:
    """`column` is a table's heading, `inline` the name in a sentence; `hub`: (type, name) of the `evaluate` metric on model hubs."""

    column: str
    inline: str
    hub: tuple[str, str]


METRIC_WORDS: dict[str, MetricWords] = {
    "accuracy": MetricWords("Accuracy", "accuracy", ("accuracy", "Accuracy")),
    "entity_f1": MetricWords("Entity F1", "entity F1", ("seqeval", "Entity F1")),
    "entity_f1_strict": MetricWords("Strict entity F1", "strict entity F1", ("seqeval", "Strict entity F1")),
    "exact_match": MetricWords("Exact match", "exact match", ("squad", "Exact match")),
    "f1": MetricWords("F1", "F1", ("f1", "F1")),
    "f1_macro": MetricWords("Macro F1", "macro F1", ("f1", "F1 (macro)")),
    "f1_micro": MetricWords("Micro F1", "micro F1", ("f1", "F1 (micro)")),
    "f1_span": MetricWords("Answer F1", "answer F1", ("squad", "Answer F1")),
    "matthews": MetricWords("Matthews", "Matthews", ("matthews_correlation", "Matthews correlation")),
    "mean_average_precision": MetricWords(
        "Mean average precision", "mean average precision", ("mean_average_precision", "Mean average precision")
    ),
    "mrr@10": MetricWords("MRR@10", "MRR@10", ("mrr_at_10", "MRR@10")),
    "ndcg@10": MetricWords("nDCG@10", "nDCG@10", ("ndcg_at_10", "nDCG@10")),
    "pearson": MetricWords("Pearson", "Pearson", ("pearsonr", "Pearson correlation")),
    "spearman": MetricWords("Spearman", "Spearman", ("spearmanr", "Spearman correlation")),
}


def row_word(info: TaskInfo) -> str:
    """Return the word for a split's numbered examples: `Row` of its file, or `Word`, `Question`."""
    unit = KINDS[info.kind].unit
    return "Row" if unit == "text" else unit.capitalize()


def of_first_split(info: TaskInfo) -> str:
    """Return the split whose examples are numbered: `dev`, or `m and mm, one after the other`, if the headline is the mean over these."""
    return f"{' and '.join(info.splits[1:])}, one after the other," if info.sizes else info.splits[0]


def headline_name(info: TaskInfo) -> str:
    """Return e.g. `accuracy` or `mean of accuracy and F1`, with the split if there are several."""
    names = [METRIC_WORDS[name].inline for name in info.metrics]
    text = names[0] if len(names) == 1 else f"mean of {' and '.join(names)}"
    if info.sizes:
        return f"{text}, mean of {len(info.sizes)} splits"
    return f"{text}, {info.splits[0]}" if len(info.splits) > 1 else text


def join_words(parts: Sequence[str]) -> str:
    """Return e.g. `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
