"""The nearest layers on the pages: sentences, maps, tables; omitted parts, and results without any."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from pydantic import ValidationError

from compress.report import write_report
from compress.report.page import tasks_of
from compress.report.pictures.drawing import INK, LINE, PAPER, SOFT, svg
from compress.report.sections import similarity
from compress.results import Result, read_result
from compress.results.similarity import LayerSimilarity

from .conftest import COMPARED as FULL

STATES, ATTENTION = FULL.states, FULL.attention


def compared(fake: Callable[..., Result], layers: LayerSimilarity = FULL, seed: int = 0) -> Result:
    return fake(seed=seed).model_copy(update={"similarity": layers})


def section(*results: Result) -> similarity.Section:
    page_section = similarity.section(tasks_of(results))
    assert page_section is not None
    return page_section


def test_the_sentences_name_the_nearest_layer_of_each(fake: Callable[..., Result]) -> None:
    assert section(compared(fake)).sentences == (
        "distilbert, SST-2: by CKA, student layers 0, 1 and 2 are nearest to teacher layers 0, 1 and 3 (0.99, 0.93 and 0.88). "
        "Layer 0 is the embeddings.",
        "distilbert, SST-2: by attention, student layers 1 and 2 are nearest to teacher layers 1 and 3 (0.05 and 0.02 bits apart).",
    )


def test_of_several_seeds_the_first_one_is_shown_and_named(fake: Callable[..., Result]) -> None:
    other = FULL.model_copy(update={"tokens": 1})
    page_section = section(compared(fake), compared(fake, other, seed=1))
    assert all(sentence.startswith("distilbert, SST-2, seed 0: ") for sentence in page_section.sentences)
    assert len(page_section.tables) == 2


def test_a_seed_of_before_is_passed_over(fake: Callable[..., Result]) -> None:
    tasks = tasks_of([fake(), compared(fake, seed=1)])
    page_section = similarity.section(tasks)
    assert page_section is not None and len(similarity.charts(tasks)) == 1
    assert all(sentence.startswith("distilbert, SST-2, seed 1: ") for sentence in page_section.sentences)


def test_every_figure_stands_in_a_table_and_in_a_cell_of_its_map(fake: Callable[..., Result]) -> None:
    result = compared(fake)
    states, attention = section(result).tables
    assert [[str(cell) for cell in line.cells] for line in states.lines] == [
        [str(number), *(f"{value:.4f}" for value in row)] for number, row in enumerate(STATES)
    ]
    assert [str(column) for column in attention.columns] == ["Student layer", "Teacher 1", "Teacher 2", "Teacher 3"]
    picture = svg(similarity.charts(tasks_of([result])), columns=1)
    texts = re.findall(r"<text[^>]*>(0\.\d\d)</text>", picture)
    assert texts == [f"{value:.2f}" for table in (STATES, ATTENTION) for row in table for value in row]
    rows = re.findall(r"<text[^>]*>(Student \d)</text>", picture)
    assert rows == ["Student 0", "Student 1", "Student 2", "Student 1", "Student 2"]
    assert picture.count("Teacher layer") == 2


def test_layers_without_heads_and_what_is_left_out(fake: Callable[..., Result]) -> None:
    rows = ((None, None, None), ATTENTION[1])
    problem = "the student's attention in layer 1, where pruning left no heads"
    result = compared(fake, FULL.model_copy(update={"attention": rows, "left_out": (problem,)}))
    page_section = section(result)
    assert "student layer 2 is nearest to teacher layer 3 (0.02 bits apart)" in page_section.sentences[1]
    assert page_section.sentences[2] == f"distilbert, SST-2: not compared: {problem}."
    assert [str(cell) for cell in page_section.tables[1].lines[0].cells] == ["1", "–", "–", "–"]
    picture = svg(similarity.charts(tasks_of([result])), columns=1)
    assert len(re.findall(r"<text[^>]*>0\.\d\d</text>", picture)) == 12 + 3


@pytest.mark.parametrize("colours", [similarity._STATES, similarity._ATTENTION])
def test_figures_stand_out_from_every_cell_in_the_light_and_in_the_dark(colours: tuple[similarity.Colour, ...]) -> None:
    """WCAG requires 4.5 for small text. Pages override the drawing's own colours; cells and their figures must not use those."""
    shares = [place / 200 for place in range(201)]
    painted = [similarity._paint(share, colours, (0.0, 1.0)) for share in shares]  # type: ignore[arg-type]
    pairs = [[tuple(bytes.fromhex(paint[name][1:])) for name in ("fill", "figure")] for paint in painted]
    assert min(similarity.contrast(*pair) for pair in pairs) >= 4.5  # type: ignore[arg-type]
    assert len({paint["figure"] for paint in painted}) == 2
    assert all(paint[name] not in (INK, SOFT, LINE, PAPER) for paint, name in product(painted, ("fill", "figure")))


def test_contrast_is_wcags() -> None:
    assert similarity.contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert similarity.contrast((0x76, 0x76, 0x76), (255, 255, 255)) == pytest.approx(4.54, abs=0.005)


def test_the_pages_have_maps_tables_and_sentences_or_say_why_not(fake: Callable[..., Result], tmp_path: Path) -> None:
    """A static student has only a sentence, and the report's existing map is removed."""
    result = compared(fake)
    assert tmp_path / "similarity.svg" in write_report([result], tmp_path)
    assert read_result(tmp_path) == result
    text, page = ((tmp_path / f"report.{kind}").read_text() for kind in ("md", "html"))
    assert "(similarity.svg)" in text
    for words in ("How near students' layers", "student layers 0, 1 and 2 are nearest", "CKA compares two layers"):
        assert words in text and words in page.replace("&#39;", "'")
    assert "| 0 | 0.9900 | 0.8000 | 0.6000 | 0.5100 |" in text
    assert 'aria-label="Divergence of attention in bits, distilbert, SST-2"' in page

    problem = "states and attention, as static models have no layers"
    write_report([compared(fake, LayerSimilarity(model="student", left_out=(problem,)))], tmp_path)
    assert not (tmp_path / "similarity.svg").exists()
    for kind in ("md", "html"):
        assert f"not compared: {problem}." in (tmp_path / f"report.{kind}").read_text()
    assert "CKA compares" not in (tmp_path / "report.md").read_text()


def test_results_of_before_have_none(fake: Callable[..., Result]) -> None:
    assert similarity.section(tasks_of([fake()])) is None
    assert not similarity.is_drawn(fake())
    document = fake().model_dump(mode="json")
    del document["similarity"]
    assert Result.model_validate(document) == fake()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"states": (*STATES, (0.1,))}, "as many numbers in each row"),
        ({"states": ((), (), ())}, "as many numbers in each row"),
        ({"attention": STATES}, "a row and a column less"),
        ({"states": (), "attention": ATTENTION}, "a row and a column less"),
        ({"states": ((1.2,),), "attention": ()}, "less than or equal to 1"),
        ({"split": "dev"}, "'tuning'"),
    ],
)
def test_tables_that_no_two_models_have_are_refused(fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        LayerSimilarity.model_validate({**FULL.model_dump(), **fields})
