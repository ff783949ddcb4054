"""Two lone quotes in a .csv, between which rows become one."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_files import refused, task
from whole import load_task

from compress.tasks.reading.delimited import read_table


@pytest.mark.parametrize("names", ["text,label", "label,text", "id,text,label"])
def test_lone_quotes_in_csv_never_merge_rows(here: Path, names: str) -> None:
    texts = ["fine", '"He left', "so it goes", "not bad", 'he said"', "well", "good"]
    rows = [{"id": str(i), "text": text, "label": "pos" if i % 2 else "neg"} for i, text in enumerate(texts * 2)]
    ordered = [names, *(",".join(row[name] for name in names.split(",")) for row in rows)]
    (here / "dev.csv").write_text("\n".join(ordered))
    refused(task(), here, r"dev.csv:3: a quoted field spans several lines that look like rows, such as .*so it goes")
    (here / "dev.csv").write_text("\n".join(ordered).replace('"', "'"))
    assert len(load_task(task(), here, None).reported["dev"]) == len(rows)


@pytest.mark.parametrize("text", ["Dear Sir,\nBerlin, 10115\nParis, 75001\nregards", "Apples, 2\nPears, 3\nx"])
@pytest.mark.parametrize("labels", [("0", "1"), ("4.5", "3.25")])
def test_numbers_in_the_lines_of_a_text_are_no_labels(here: Path, text: str, labels: tuple[str, str]) -> None:
    one, other = labels
    (here / "dev.csv").write_text(f'text,label\nfine,{one}\n"{text}",{one}\nbad,{other}\ngood,{one}\n')
    assert len(read_table(here / "dev.csv").numbers) == 4


@pytest.mark.parametrize("text", ["Roses are red,\nviolets, blue\n", "red,\nand, blue\nso", "one, pos\ntwo, pos\nx"])
def test_lines_of_a_text_are_no_rows(here: Path, text: str) -> None:
    (here / "dev.csv").write_text(f'text,label\nfine,pos\n"{text}",pos\nbad,neg\ngood,pos\n')
    assert len(load_task(task(), here, None).reported["dev"]) == 4


def test_spaces_before_quotes_shift_no_columns(here: Path) -> None:
    (here / "dev.csv").write_text('text, "label",note\n "fine, really", "pos", "a, b"\nbad, "neg",c\n')
    table = read_table(here / "dev.csv")
    assert table.columns == {"text": ["fine, really", "bad"], "label": ["pos", "neg"], "note": ["a, b", "c"]}
    (here / "dev.csv").write_text('text,label\nfine,pos\nbad, "neg\n')
    refused(task(), here, r"dev\.csv:3: a quote after a space begins a field that does not end on this line; check the")
