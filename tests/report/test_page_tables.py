"""Tables of a page in a browser: sorting by headings, filtering by words."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from compress.report.render import script_of

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


# Kind of cell -> a column's cells in ascending order, empty ones last.
NUMBERS = {
    "points": ["−1.50", "0.00", "+0.35", "9.50", "17.16", "–"],
    "interval": ["−1.03 (−2.18 to 0.00)", "−0.07 (−0.44 to +0.27)", "0.00 (−0.20 to +0.18)", "+0.39 (+0.01 to +0.76)", "–"],
    "deviation": ["9.12 ± 2.00", "76.60", "76.60 ± 0.30", "76.61 ± 0.10", "–"],
    "range": ["6.07 to 6.08", "6.07 to 6.10", "13.8 to 14.7", "110", "–"],
    "thousands": ["128", "922", "1,341", "12,638", "1,002,638", "–"],
    "speed-up": ["0.36×", "2.26 (3.1×)", "5.81", "11.4 / 12.5"],
    "share": ["0.3%", "9.9%", "83.2%", "100.0%", "–"],
    "of": ["8 (0.92%)", "9 of 34", "22 of 34", "– / –"],
    "exponent": ["3.1e-08", "9.5e-07", "1.2e-06", "3.5e-06", "0.000134", "–"],
    "probability": ["< 0.001", "0.001", "0.015", "0.05", "> 0.05", "–"],
    "duration": ["0.0 s", "29.8 s", "44.7 s", "1 min 02 s", "1 min 17 s", "2 min 14 s", "59 min 59 s", "1 h 04 min", "11 h 00 min"],
    "cost": ["0", "0.11 core-h", "0.41 core-h", "0.20 GPU-h", "0.14 GPU-h + 0.18 core-h", "0.20 GPU-h + 0.02 core-h", "–"],
    "kept": ["none", "2", "12", "1,024"],
    "noise": ["−2.1", "9.6", "22.6", "exact", "–"],
}  # fmt: skip
WORDS = {
    "budget": ["flops 0.25", "flops 0.5", "latency 0.25", "–"],
    "layer": ["layer.1.output", "layer.2.output", "layer.10.output"],
    "shape": ["1 × 32", "1 × 128", "32 × 128", "own lengths", ""],
    "heading": ["8", "512", "1,024"],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*NUMBERS, *WORDS])
def test_a_column_is_sorted_by_what_its_cells_say(kind: str, tmp_path: Path, tab: Any) -> None:
    ordered = NUMBERS.get(kind) or WORDS[kind]
    assert len(ordered) > 2, "a table this short is not sorted"
    scrambled = [*ordered[1::2], *ordered[::2]]
    rows = "".join(f"<tr><td>{html.escape(text)} <span>a remark</span></td></tr>" for text in scrambled)
    head = f"<thead><tr><th class='{'number' if kind in NUMBERS else ''}'>Column</th></tr></thead>"
    page = tmp_path / "page.html"
    page.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><div class='scroll'><table>{head}<tbody>{rows}</tbody></table></div>"
        f"<script>{script_of()['script']}</script>",
        encoding="utf-8",
    )
    shown, _ = tab
    shown.open(page)
    click = f"(() => {{ {TABLE} table.querySelector('button').click(); return {ROWS}; }})()"
    upwards, downwards, unsorted = ([row[0].strip() for row in json.loads(shown.run(click))] for _ in range(3))
    assert upwards == ordered
    filled = [text for text in ordered if text and not text.startswith("–")]
    assert downwards == filled[::-1] + ordered[len(filled) :]
    assert unsorted == scrambled


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
