"""Titles, labels and names from others stay text in the card: no HTML, links, rows or metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from compress.bundle import read_bundle
from compress.bundle.document import BundleInfo
from compress.bundle.shipping.card import render
from compress.report.text.markdown import code_span, escape, one_line

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "<javascript:alert(1)>",
    "[a]: javascript:alert(1)",
    "a | b | c",
    "a\n\n| x | y |\n|-|-|\n| 1 | 2 |",
    "a\n---\nlicense: evil\n---\n# Owned",
    "---",
    "...\nlicense: evil",
    "# Owned",
    "1. Owned",
    "- Owned",
    "a\n===",
    "`code` ``more` ```\n<b>bold</b>",
    "```\nfence",
    "*bold* _slanted_ ~~gone~~ **all**",
    "a: b # c",
    "{{ 7 * 7 }} {% raw %}",
    "!!python/object:os.system x",
    "&lt;b&gt; &#60;b&#62;",
    "\\[x\\](javascript:alert(1))",
    "\x00\x1b[31m\u202eevil\u2028new\x85line",
    "https://evil.example www.evil.example",
)


def _with(info: BundleInfo, text: str) -> BundleInfo:
    """Put `text` into every free-text field of a bundle."""
    data = info.task.data.model_copy(update={"source": text, "notes": (text,), "rows": {text: 3}, "fingerprint": text})
    task = info.task.model_copy(
        update={"name": text, "title": text, "labels": (text, "b"), "data": data, "splits": (text,)}
    )
    models: Any = {
        name: model.model_copy(update={"name": text, "architecture": text, "scores": {text: model.scores["dev"]}})
        for name, model in info.models.items()
    }
    machine = info.measured_on.model_copy(update={"cpu": text, "isa": (text,)})
    changes = {"task": task, "models": models, "baseline": models["fp32"], "labels": (text, "b"), "name": text}
    changes |= {"teacher": text, "base_model": text, "licence": text, "text_columns": (text,), "created": text}
    return info.model_copy(update=changes | {"recipe": {"name": text}, "measured_on": machine, "verified_on": machine})


def _tokens(text: str) -> list[Token]:
    """Return the tokens of the body as GitHub parses it; HTML and links, to any URL, are tokens of their own."""
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": False})
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return list(_all(parser.parse(text.split("---\n", 2)[2])))


def _all(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _all(token.children or [])


def _shape(text: str) -> list[str]:
    """Return the structure of a page without its words."""
    return [token.type for token in _tokens(text) if token.type not in ("text", "text_special", "softbreak")]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_words_of_others_change_no_structure(bundle_of: Callable[[str], Path], text: str) -> None:
    info = read_bundle(bundle_of("toy-sentiment"))
    card = render(_with(info, text))
    assert _shape(card) == _shape(render(_with(info, "plain")))
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in card.splitlines() if line.startswith("|")}) == 1
    tokens = _tokens(card)
    assert not [token for token in tokens if token.type.startswith("html") or token.type in ("link_open", "image")]
    shown = [token.content for token in tokens if token.type in ("text", "text_special", "code_inline")]
    if text.isprintable() and "``" not in text:
        assert one_line(text) in "".join(shown), "it is there, as it is"


@pytest.mark.parametrize("text", HOSTILE)
def test_the_front_matter_is_one_block_with_our_keys(bundle_of: Callable[[str], Path], text: str) -> None:
    from huggingface_hub import ModelCard

    info = read_bundle(bundle_of("toy-sentiment"))
    card = render(_with(info, text))
    lines = card.splitlines()
    assert lines[0] == "---"
    front = yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
    expected = yaml.safe_load(render(_with(info, "plain")).split("---\n")[1])
    assert list(front) == list(expected)
    assert front["license"] == one_line(text).lower()
    assert front["base_model"] == front["model-index"][0]["name"] == one_line(text)
    metadata: Any = ModelCard(card, ignore_metadata_errors=True).data
    assert metadata.license == one_line(text).lower()


def test_what_is_escaped() -> None:
    assert escape("# a") == "\\# a"
    assert escape("12. a") == "12\\. a"
    assert [escape(text) for text in ("-0.25", "+1.5", "3.5", "a # b", "C# x", "2 × 48")] == [
        "-0.25",
        "+1.5",
        "3.5",
        "a # b",
        "C# x",
        "2 × 48",
    ]
    assert escape("see https://a.example, www.a.example") == "see https&#58;//a.example, www&#46;a.example"
    assert one_line("a\u202eb\ud800\n c") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER} c"
    assert (code_span("a"), code_span("a`b"), code_span("`"), code_span("")) == ("`a`", "``a`b``", "`` ` ``", "`  `")
