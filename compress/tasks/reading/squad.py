"""Read SQuAD files, versions 1.1 and 2.0: JSON of articles, their paragraphs, and questions on each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import CompressError, brief
from .answers import ANSWERS, CONTEXT, QUESTION
from .tables import Table, read_text, refuse

_FORM = '{"data": [{"paragraphs": [{"context": …, "qas": [{"question": …, "answers": […]}]}]}]}'


def read_squad(path: Path, *, labelled: bool = True) -> Table:
    """Return columns `question`, `context` and `answers`; row numbers are those of the questions in the file, with their ids.

    `is_impossible` questions have no answers; `plausible_answers` are ignored. If questions need not be `labelled`, answers are not read,
    and `id` is the first column if each question has one. Raises `CompressError` for another format, and for contradictory questions.
    """
    places = [*_questions(path, _document(path))]
    if not places:
        raise CompressError(f"{path}: no questions in it; expected some, as in {_FORM}")
    questions = [question for _, _, question in places]
    numbers = [_question_number(index, question) for index, question in enumerate(questions, start=1)]
    columns = {
        QUESTION: [question.get("question") for question in questions],
        CONTEXT: [context for _, context, _ in places],
    }
    if labelled:
        columns[ANSWERS] = answers = [_answers(question) for question in questions]
        problems = [
            (number, f"{where}: {answer}")
            for number, (where, _, _), answer in zip(numbers, places, answers, strict=True)
            if isinstance(answer, str)
        ]
        refuse(str(path), "question", problems)
    elif all("id" in question for question in questions):
        columns = {"id": [question["id"] for question in questions], **columns}
    return Table(str(path), "question", numbers, columns)


def _document(path: Path) -> Any:
    text = read_text(path)
    if not text.strip():
        raise CompressError(f"{path}: empty file; expected questions, as in {_FORM}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # json.JSONDecodeError, or a number of too many digits
        raise CompressError(f"{path}: not JSON: {error}; a file of one object per line ends in .jsonl") from None


def _question_number(place: int, question: dict[str, Any]) -> int | str:
    """Return the number for messages, with the question's id if it has one."""
    name = question.get("id")
    return f"{place} (id {brief(name)})" if isinstance(name, str) and name else place


def _questions(path: Path, document: Any) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield each question's location, context and record."""
    for a, article in enumerate(_list(path, "", document, "data")):
        place = f"data[{a}]"
        for p, paragraph in enumerate(_list(path, place, article, "paragraphs")):
            inside = f"{place}.paragraphs[{p}]"
            for q, question in enumerate(_list(path, inside, paragraph, "qas")):
                where = f"{inside}.qas[{q}]"
                if not isinstance(question, dict):
                    raise CompressError(f"{path}: {where}: expected a question, found {brief(question)}")
                yield where, paragraph.get("context"), question


def _list(path: Path, place: str, value: Any, key: str) -> list[Any]:
    entries = value.get(key) if isinstance(value, dict) else None
    if isinstance(entries, list):
        return entries
    held = brief(sorted(value)) if isinstance(value, dict) else brief(value)
    at = f"{place}: " if place else ""
    hint = "" if place else "; other records go in a .jsonl file, one object per line"
    raise CompressError(f"{path}: {at}expected a list `{key}`, as in {_FORM}, found {held}{hint}")


def _answers(question: dict[str, Any]) -> Any:
    """Return the answers in the file, or, as text, what is wrong."""
    answers, impossible = question.get("answers"), question.get("is_impossible")
    if impossible is True and answers:
        return f"expected no answers, as `is_impossible` is true, found {brief(answers)}"
    if impossible is True:
        return []
    if not isinstance(answers, list):
        return f"expected a list `answers`, found {brief(answers)}"
    if impossible is False and not answers:
        return "expected an answer, as `is_impossible` is false, found none"
    return answers
