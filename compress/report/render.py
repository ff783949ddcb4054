"""A page and its charts -> report.md, report.html and plot.svg, as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from . import markdown
from .page import Page
from .plot import DARK, LIGHT, chart, specification
from .runs import Task
from .sensitivity import charts

if TYPE_CHECKING:
    from jinja2 import Environment, Template

VEGALITE = "6.4"


def markdown_report(page: Page, digest: str) -> str:
    text = template("report.md.j2").render(page=page, digest=digest)
    return text.strip() + "\n"


def html_report(page: Page, tasks: Sequence[Task]) -> str:
    plots = [specification([chart(task)], LIGHT) for task in tasks]
    return template("report.html.j2").render(
        page=page,
        charts=[{"svg": svg(document), "json": _script_json(document)} for document in plots],
        sensitivity=sensitivity(tasks) if page.sensitivity else "",
        light=_script_json(LIGHT),
        dark=_script_json(DARK),
        bundle=_bundle(),
    )


def plot(tasks: Sequence[Task]) -> str:
    """All tasks' charts as one SVG on white, legible in light and dark surroundings."""
    return svg(specification([chart(task) for task in tasks], LIGHT)) + "\n"


def sensitivity(tasks: Sequence[Task]) -> str:
    """The searched models' charts as one SVG on white."""
    return svg(specification(charts(tasks), LIGHT)) + "\n"


def svg(document: dict[str, Any]) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(document, vl_version=VEGALITE)


def _script_json(document: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False).replace("<", "\\u003c")


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed as one script: the page asks nothing of the network."""
    import vl_convert

    bundle: Any = vl_convert.javascript_bundle  # its stub demands the optional snippet
    return bundle(vl_version=VEGALITE).replace("</script", "<\\/script")


def template(name: str) -> Template:
    """One of `templates/`; what ends in `.html.j2` escapes what it is given."""
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
    environment.filters |= {"md": markdown.escape, "fence": markdown.fence, "pipe_table": markdown.table}
    return environment
