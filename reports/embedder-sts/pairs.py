"""Write the files of this report's task from a folder of GLUE and one of the STS sets: python pairs.py GLUE STS

train.tsv has pairs of texts of MNLI, QQP and RTE; no loss reads their scores. tuning.tsv has those of STS-B's train that are of
SemEval 2012's train files. 2012.tsv to 2016.tsv have all scored pairs of a year's test files. No text of theirs stands in train or tuning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

Row = tuple[str, str, str]
TRAIN = {"MNLI": ("sentence1", "sentence2"), "QQP": ("question1", "question2"), "RTE": ("sentence1", "sentence2")}
YEARS = (2012, 2013, 2014, 2015, 2016)


def columns(path: Path, *names: str) -> Iterator[tuple[str, ...]]:
    with path.open(encoding="utf-8-sig") as file:
        header = next(file).rstrip("\n").split("\t")
        places = [header.index(name) for name in names]
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) > max(places):
                yield tuple(fields[place].strip() for place in places)


def scored(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            score, left, right = line.split("\t")
            if score:
                yield left.strip(), right.strip(), score


def main(glue: Path, sts: Path) -> None:
    files = {str(year): list(scored(sts / str(year))) for year in YEARS}
    reported = {text for rows in files.values() for row in rows for text in row[:2]}
    files["tuning"] = [
        (left, right, score)
        for left, right, score, year in columns(glue / "STS-B" / "train.tsv", "sentence1", "sentence2", "score", "year")
        if year == "2012train" and reported.isdisjoint((left, right))
    ]
    seen = reported | {text for row in files["tuning"] for text in row[:2]}
    files["train"] = [
        (left, right, "")
        for name, names in TRAIN.items()
        for left, right in columns(glue / name / "train.tsv", *names)
        if left and right and seen.isdisjoint((left, right))
    ]
    for name, rows in files.items():
        lines = [("sentence1", "sentence2", "score"), *rows]
        Path(f"{name}.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
