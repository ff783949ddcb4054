"""Tables of a page in a browser: sorting by headings, filtering by words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

TABLE = """const table = [...document.querySelectorAll('.scroll > table')]
  .sort((a, b) => b.tBodies[0].rows.length - a.tBodies[0].rows.length)[0];"""
ROWS = """JSON.stringify([...table.tBodies[0].rows].filter(row => row.checkVisibility())
  .map(row => [...row.cells].map(cell => cell.firstChild?.textContent ?? '')))"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["report", "ablation"])
def test_a_heading_sorts_its_table_and_the_third_time_puts_it_back(kind: str, pages: dict[str, Path], tab: Any) -> None:
    shown, _ = tab
    shown.open(pages[kind])
    shown.run("document.querySelectorAll('details').forEach(part => part.open = true)")

    def rows() -> list[list[str]]:
        return json.loads(shown.run(f"(() => {{ {TABLE} return {ROWS}; }})()"))

    def click(place: int) -> str | None:
        return shown.run(
            f"(() => {{ {TABLE} const head = table.tHead.rows[0].cells[{place}]; head.querySelector('button').click();"
            " return head.getAttribute('aria-sort'); })()"
        )

    before = rows()
    numeric = shown.run(
        f"(() => {{ {TABLE} return [...table.tHead.rows[0].cells].findLastIndex(head => head.classList.contains('number')); }})()"
    )
    for place, value in ((numeric, _number), (0, lambda text: text.casefold())):
        assert click(place) == "ascending"
        upwards = [value(row[place]) for row in rows() if row[place] not in ("", "–")]
        assert upwards == sorted(upwards) and len(rows()) == len(before)
        assert click(place) == "descending"
        downwards = [value(row[place]) for row in rows() if row[place] not in ("", "–")]
        assert downwards == upwards[::-1]
        assert click(place) is None
        assert rows() == before


def _number(text: str) -> float:
    match = re.match(r"[+-]?\d+(\.\d+)?", text.replace(",", "").replace("−", "-"))
    assert match, text
    return float(match[0])


@pytest.mark.slow
def test_a_recipe_comes_and_goes_in_its_figures_charts(pages: dict[str, Path], tab: Any) -> None:
    shown, _ = tab
    shown.open(pages["report"])
    script = """(() => {
      const figure = document.querySelector('figure'), [first, second] = figure.querySelectorAll('.legend input');
      const others = [...document.querySelectorAll('figure')].slice(1).flatMap(other => [...other.querySelectorAll('.chart path')]);
      const visible = mark => mark.checkVisibility({visibilityProperty: true});
      const seen = colour => [...figure.querySelectorAll(`.chart [fill="${colour}"]`)].filter(visible).length;
      const count = () => [seen(first.value), seen(second.value)];
      const before = count();
      first.click();
      const without = count();
      const elsewhere = others.every(mark => mark.style.visibility === '');
      first.click();
      return JSON.stringify([before, without, count(), elsewhere]);
    })()"""
    before, without, again, elsewhere = json.loads(shown.run(script))
    assert before[0] > 1 and before[1] > 1, "the page has no two recipes in one figure"
    assert without == [0, before[1]] and again == before and elsewhere


@pytest.mark.slow
def test_a_long_table_is_filtered_by_words(pages: dict[str, Path], tab: Any) -> None:
    shown, _ = tab
    shown.open(pages["report"])
    shown.run("document.querySelectorAll('details').forEach(part => part.open = true)")
    script = f"""(words => {{
      {TABLE}
      const line = table.parentElement.previousElementSibling, field = line.querySelector('input');
      field.value = words;
      field.dispatchEvent(new Event('input'));
      return [{ROWS}, table.tBodies[0].rows.length, line.querySelector('[role=status]').textContent];
    }})"""
    rows_json, every, count = shown.run(f"{script}('  ')")
    whole = json.loads(rows_json)
    assert len(whole) == every > 7 and count == ""
    word = whole[2][0].split()[0]
    rows_json, _, count = shown.run(f"{script}({json.dumps(word.upper())})")
    left = json.loads(rows_json)
    assert 0 < len(left) < every and left == [row for row in whole if word.casefold() in " ".join(row).casefold()]
    assert count == f"{len(left)} of {every}"
