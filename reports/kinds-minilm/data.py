"""Write the files of this report's three tasks beside this one.

    python reports/kinds-minilm/data.py CONLL QA CORPUS

CONLL has train.txt and valid.txt of CoNLL-2003: each sentence is labelled with the types of entities in it. QA has reddit.json and
squad-20-articles.json (train) and new_wiki.json (dev), in SQuAD's format: the sentences of a context are ranked for its question; the
one in which the answer begins is relevant. CORPUS has two .txt.xz files of English Wikipedia, an article's paragraphs a line each and a
blank line after it; the one that sorts first is for train: which of four sentences of an article follows the sentence before?
"""

from __future__ import annotations

import json
import lzma
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
QUESTIONS = {"train": 1500, "dev": 1500}
CHOICES = {"train": 1500, "dev": 2000}
OF_AN_ARTICLE = 4
MOST_PASSAGES = 10


def types_of_sentences(path: Path) -> Iterator[dict[str, object]]:
    for block in path.read_text("utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line.strip()]
        if rows:
            tags = {tag.split("-", 1)[1] for _, tag in rows if "-" in tag}
            yield {"text": " ".join(word for word, _ in rows), "types": sorted(tags)}


def rankings(paths: list[Path], most: int) -> Iterator[dict[str, object]]:
    """The pairs of `most` questions, at random, whose context has 3 to `MOST_PASSAGES` sentences."""
    groups: dict[str, list[dict[str, object]]] = {}
    for path in paths:
        for article in json.loads(path.read_text("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                starts = [0, *(cut.end() for cut in SENTENCE.finditer(context))]
                if not 3 <= len(starts) <= MOST_PASSAGES:
                    continue
                ends = [*starts[1:], len(context)]
                for question in paragraph["qas"]:
                    begin = question["answers"][0]["answer_start"]
                    query = question["question"].strip()
                    if query and query not in groups:
                        groups[query] = [
                            {"query": query, "passage": context[a:b].strip(), "relevance": int(a <= begin < b)}
                            for a, b in zip(starts, ends, strict=True)
                        ]
    chosen = random.Random(0).sample(sorted(groups), most)
    return (pair for query in chosen for pair in groups[query])


def choices(path: Path, most: int) -> Iterator[dict[str, object]]:
    """`most` sentences of articles at random, each with the next one and three others that stand elsewhere in the article."""
    draw = random.Random(0)
    with lzma.open(path, "rt", encoding="utf-8") as file:
        articles = file.read().split("\n\n")
    draw.shuffle(articles)
    count = 0
    for article in articles:
        paragraphs = [[s for s in SENTENCE.split(line) if 40 <= len(s) <= 250] for line in article.splitlines()]
        places = [(p, i) for p, part in enumerate(paragraphs) for i in range(len(part))]
        starts = [(p, i) for p, i in places if i + 1 < len(paragraphs[p])]
        if len(places) < 8 or len(starts) < OF_AN_ARTICLE:
            continue
        for p, i in draw.sample(starts, OF_AN_ARTICLE):
            others = draw.sample([at for at in places if at not in ((p, i), (p, i + 1))], 3)
            endings = [paragraphs[a][b] for a, b in ((p, i + 1), *others)]
            order = draw.sample(range(4), 4)
            yield {"context": paragraphs[p][i], "endings": [endings[k] for k in order], "label": order.index(0)}
            count += 1
            if count == most:
                return
    raise SystemExit(f"{path}: only {count} of {most} rows could be made")


def write(name: str, rows: Iterator[dict[str, object]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (Path(__file__).parent / name).write_text("".join(lines), "utf-8")


def main(conll: Path, qa: Path, corpus: Path) -> None:
    write("types-train.jsonl", types_of_sentences(conll / "train.txt"))
    write("types-dev.jsonl", types_of_sentences(conll / "valid.txt"))
    write("sentences-train.jsonl", rankings([qa / "reddit.json", qa / "squad-20-articles.json"], QUESTIONS["train"]))
    write("sentences-dev.jsonl", rankings([qa / "new_wiki.json"], QUESTIONS["dev"]))
    train, dev = sorted(corpus.glob("*.txt.xz"))[:2]
    write("next-train.jsonl", choices(train, CHOICES["train"]))
    write("next-dev.jsonl", choices(dev, CHOICES["dev"]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
