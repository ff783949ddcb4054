"""Contents of an attention page: tokens that could end its script, weights to three digits, never two million bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attention_runs import page_maps

from compress.report.attention import AttentionMaps, ModelMaps, token_limit, write_attention


def model(name: str, tokens: int, layers: int, heads: int, first: str = "[CLS]") -> ModelMaps:
    rng = np.random.default_rng(layers)
    shape = (heads, tokens, tokens)
    weights = [np.eye(tokens)[None].repeat(heads, 0), *(rng.random(shape) for _ in range(layers - 1))]
    return ModelMaps(name, (first, *(["good"] * (tokens - 1))), tuple(weights), cut=False)


def written(folder: Path, teacher: ModelMaps, student: ModelMaps) -> str:
    maps = AttentionMaps("<b>mine</b>", teacher, student, (1, 2), "even spacing", "<i>run</i>", ("</script>a", "b"))
    return write_attention(maps, folder / "page.html").read_text(encoding="utf-8")


def test_no_token_is_markup_and_weights_keep_three_digits(tmp_path: Path) -> None:
    pair = model("teacher", 3, 2, 2, "</script><b>"), model("student", 4, 2, 1, "<!--")
    page = written(tmp_path, *pair)
    assert (
        "</script><b>" not in page
        and "<!--" not in page
        and "<b>mine" not in page
        and "<i>run" not in page
        and "</script>a" not in page
    )
    document = page_maps(page)
    for role, maps in zip(("teacher", "student"), pair, strict=True):
        assert document[role]["tokens"] == list(maps.tokens)
        for mine, theirs in zip(document[role]["weights"], maps.weights, strict=True):
            assert theirs is not None
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=0.0005 + 1e-12)


def test_a_layer_without_heads_is_none(tmp_path: Path) -> None:
    student = model("student", 3, 2, 1)
    student = ModelMaps("pruned", student.tokens, (None, student.weights[1]), cut=True)
    page = written(tmp_path, model("teacher", 3, 2, 2), student)
    assert page_maps(page)["student"]["heads"] == [0, 1]
    assert page.count("the text is longer") == 1
    assert "Student: pruned</a>" in page


@pytest.mark.parametrize(("teacher", "student", "limit"), [((2, 2), (2, 2), 64), ((24, 16), (12, 16), 40)])
def test_a_page_has_less_than_two_million_bytes(
    teacher: tuple[int, int], student: tuple[int, int], limit: int, tmp_path: Path
) -> None:
    tokens = token_limit(sum(layers * heads for layers, heads in (teacher, student)))
    assert tokens == limit
    page = written(tmp_path, model("teacher", tokens, *teacher), model("student", tokens, *student))
    assert len(page.encode()) < 2_000_000
