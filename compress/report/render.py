"""A page and its charts -> report.md, report.html and the pictures, as text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from .grouping.groups import Task
from .page import Page
from .pictures.drawing import inline, svg
from .pictures.plot import chart
from .pictures.plot_points import legend_of, shape_of
from .sections import curves, pruned_picture
from .sections import reliability as reliability_picture
from .sections import similarity as similarity_picture
from .sections.curves import Curves
from .sections.sensitivity import charts
from .text import markdown
from .text.names import Names

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def markdown_report(page: Page, digest: str) -> str:
    text = template("report.md.j2").render(page=page, digest=digest)
    return text.strip() + "\n"


def html_report(page: Page, tasks: Sequence[Task]) -> str:
    return html(
        "report.html.j2",
        page=page,
        charts=[_inline(chart(task)) for task in tasks],
        sizes=[_inline(chart(task, by_size=True)) if shape_of(task) else "" for task in tasks],
        legends=[legend_of(task) for task in tasks],
        curves=[[_curves(each) for each in task.curves] for task in page.tasks],
        sensitivity=inline(sensitivity(tasks)) if page.sensitivity else "",
        pruned=inline(pruned_svg(tasks)) if page.pruned else "",
        reliability=inline(reliability(tasks)) if page.reliability else "",
        similarity=inline(similarity(tasks)) if page.similarity and page.similarity.words else "",
    )


def _inline(drawn: Any) -> str:
    return inline(svg([drawn]))


def _curves(recipe_curves: Curves) -> tuple[str, str, str]:
    """Return title, words, picture."""
    return recipe_curves.title, curves.describe(recipe_curves), inline(svg([curves.chart(recipe_curves)]))


def every_chart(tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Return all charts in the pictures of `tasks`."""
    by_size = [chart(task, by_size=True) for task in tasks if shape_of(task)]
    own = [*charts(tasks), *pruned_picture.charts(tasks), *reliability_picture.charts(tasks)]
    return [*map(chart, tasks), *by_size, *own, *similarity_picture.charts(tasks)]


def plot(tasks: Sequence[Task]) -> str:
    """Return all tasks' charts as one SVG on white, legible on light and dark pages."""
    return svg([chart(task) for task in tasks]) + "\n"


def sizes(tasks: Sequence[Task]) -> str:
    """Return charts by file size, for the tasks whose own charts are by time."""
    return svg([chart(task, by_size=True) for task in tasks if shape_of(task)]) + "\n"


def sensitivity(tasks: Sequence[Task]) -> str:
    """Return the searched models' charts as one SVG on white."""
    return svg(charts(tasks)) + "\n"


def pruned_svg(tasks: Sequence[Task]) -> str:
    """Return what pruning left in each run, as one SVG on white."""
    return svg(pruned_picture.charts(tasks), columns=1) + "\n"


def reliability(tasks: Sequence[Task]) -> str:
    """Return reliability diagrams of each task, as one SVG on white."""
    return svg(reliability_picture.charts(tasks)) + "\n"


def similarity(tasks: Sequence[Task]) -> str:
    """Return maps of students' and teachers' layers, one below the other, as one SVG on white."""
    return svg(similarity_picture.charts(tasks), columns=1) + "\n"


def html(name: str, *, scripts: Sequence[str] = ("page.js",), **values: Any) -> str:
    """Render a page with unique names and the one script that it may run: `scripts` of `templates/`, concatenated."""
    return template(name).render(names=Names(), **script_of(scripts), **values)


def script_of(scripts: Sequence[str] = ("page.js",)) -> dict[str, str]:
    """Return the script of a page and the hash by which the page allows it, named as in templates."""
    script = "\n".join(template(each).render() for each in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": script, "script_hash": digest}


def template(name: str) -> Template:
    """Return one of `templates/`; those with names in `.html.j2` escape their values."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("compress.report"),
        autoescape=lambda name: bool(name) and name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "md": markdown.escape,
        "html": markdown.in_html,
        "fence": markdown.fence,
        "pipe_table": markdown.table,
    }
    return environment
