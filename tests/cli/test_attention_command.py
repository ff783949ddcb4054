"""`compress attention` on tiny random models: the models' own weights, a self-contained page, and errors."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attention_runs import LENGTH, attention_run, change, page_maps
from default_suite import slow
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification

from ..support import browser

TEXT = "the film is not bad."
TOKENS = ["[CLS]", "the", "film", "is", "not", "bad", ".", "[SEP]"]
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def shared_run_of(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> Callable[[str, str], Path]:
    runs: dict[tuple[str, str], Path] = {}

    def make(teacher: str, student: str) -> Path:
        if (teacher, student) not in runs:
            checkpoints = {"teacher": tiny_checkpoint(teacher), "student": tiny_checkpoint(student)}
            runs[teacher, student] = attention_run(tmp_path_factory.mktemp("run"), checkpoints, toy_tokenizer)
        return runs[teacher, student]

    return make


@pytest.fixture
def run_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_run_of: Callable[[str, str], Path]) -> Make:
    """Return a function from the families of teacher and student to a copied run's folder here."""
    monkeypatch.chdir(tmp_path)

    def copy(teacher: str = "bert", student: str = "distilbert") -> Path:
        run = shared_run_of(teacher, student)
        shutil.copytree(run.parent.parent, tmp_path, dirs_exist_ok=True)
        return Path("runs") / run.name

    return copy


def call(cli: Any, run: Path, *options: str, text: str = TEXT, out: str = "page.html") -> Any:
    return cli("attention", run, "--text", text, "--store", "store", "-o", out, *options)


def expected(folder: Path, tokenizer: Tokenizer, text: str) -> list[np.ndarray]:
    """Return [head, query, key] of each layer by transformers' own code."""
    encoding = tokenizer.encode(text)
    model = AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        output = model(input_ids=torch.tensor([encoding.ids]), output_attentions=True)
    return [layer[0].numpy() for layer in output.attentions]


@pytest.mark.parametrize(
    ("teacher", "student"), [("bert", "distilbert"), *slow(("albert", "mpnet"), ("roberta", "electra"))]
)
def test_the_weights_are_those_of_the_models(
    cli, run_of: Make, teacher: str, student: str, tiny_checkpoint, toy_tokenizer: Tokenizer
) -> None:
    """The page rounds to 0.001; the rest of the tolerance is the rounding of other kernels."""
    code, out, err = call(cli, run_of(teacher, student))
    assert (code, out) == (0, "page.html\n"), err
    document = page_maps(Path("page.html").read_text(encoding="utf-8"))
    for role, family in zip(("teacher", "student"), (teacher, student), strict=True):
        assert document[role]["tokens"] == TOKENS
        layers = expected(tiny_checkpoint(family), toy_tokenizer, TEXT)
        assert len(layers) == len(document[role]["weights"]) > 1
        for mine, theirs in zip(document[role]["weights"], layers, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=0.0005 + 1e-5)
    assert document["matched"] == [1, 2]


def test_the_page_stands_alone_and_may_be_written_again(cli, run_of: Make) -> None:
    run = run_of()
    assert call(cli, run).code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page
    assert call(cli, run, text="good").code == 0
    assert Path("page.html").read_text(encoding="utf-8") != page
    Path("page.html").write_text("mine", encoding="utf-8")
    code, out, err = call(cli, run)
    assert (code, out) == (2, "")
    assert "page.html: is no page of `compress attention` and is not replaced" in err
    assert Path("page.html").read_text(encoding="utf-8") == "mine"


def test_of_several_teachers_the_page_names_the_one_that_it_shows(cli, run_of: Make) -> None:
    taught = {"tuning_score": 90.0, "scores": {"dev": {"accuracy": 90.0}}, "headline": 90.0, "predictions": "it"}
    origin = {"kind": "random", "name": "toy", "files": {}}

    def ensemble(result: dict[str, Any]) -> None:
        teachers = [
            {"name": name, "licence": "unknown", "origin": origin, **taught}
            for name in (result["teacher"], "other-teacher")
        ]
        result["ensemble"] = {"teachers": teachers, **taught}

    run = run_of()
    change(run, ensemble)
    code, _, err = call(cli, run)
    assert code == 0, err
    page = Path("page.html").read_text(encoding="utf-8")
    assert ", the first of its teachers, and its student</h1>" in page and "other-teacher" not in page


def test_a_long_text_is_cut_with_a_note(cli, run_of: Make) -> None:
    assert call(cli, run_of(), text="good film " * 5000).code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert len(page_maps(page)["teacher"]["tokens"]) == LENGTH
    assert page.count(f"reads the first {LENGTH} tokens; the text is longer") == 2


def test_pairs_are_read_where_the_task_has_pairs(cli, run_of: Make) -> None:
    run = run_of()
    code, _, err = call(cli, run, "--pair", "good")
    assert code == 2 and "--pair: expected none, as models of task toy-sentiment read one text" in err
    change(run, lambda result: result["settings"].update(text=["one", "other"]))
    code, _, err = call(cli, run)
    assert code == 2 and "--pair: expected the second text, as task toy-sentiment reads one and other" in err
    assert call(cli, run, "--pair", "good", text="bad").code == 0
    document = page_maps(Path("page.html").read_text(encoding="utf-8"))
    assert document["student"]["tokens"] == ["[CLS]", "bad", "[SEP]", "good", "[SEP]"]


def test_what_cannot_be_shown_is_one_line(cli, run_of: Make, tmp_path: Path) -> None:
    run = run_of()
    code, _, err = call(cli, run, text=" ")
    assert code == 2 and err.endswith("--text: expected words, found none\n")
    code, _, err = call(cli, run, text="good \udcff film")
    assert code == 2 and "--text: expected Unicode text, found half of a surrogate pair" in err
    code, _, err = call(cli, tmp_path / "runs")
    assert code == 2 and "is a folder of runs, not a run; name one of them" in err
    (tmp_path / "page.html").mkdir()
    code, _, err = call(cli, run)
    assert code == 2 and "page.html: expected a file for the page, found a folder" in err
    change(run, lambda result: result.update(models=[each for each in result["models"] if each["name"] == "teacher"]))
    code, _, err = call(cli, run, out="other.html")
    assert code == 2 and "expected a student beside the teacher, found teacher alone" in err
    (run / "models.json").unlink()
    code, _, err = call(cli, run, out="other.html")
    assert code == 2 and "models.json is missing" in err and "not finished" in err
    assert len(err.splitlines()) == 1 and not Path("other.html").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "static"}, "student: expected a model with attention; static models have no layers"),
        ({"model_type": "xlnet"}, "student: expected a model whose attention can be read; that of XLNet models cannot"),
    ],
)
def test_a_model_without_attention_to_show_is_one_line(
    cli, run_of: Make, config: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compress import attention

    real = attention.read_config
    run = run_of()
    monkeypatch.setattr(
        attention, "read_config", lambda folder: {**real(folder), **(config if "1" * 32 in str(folder) else {})}
    )
    code, out, err = call(cli, run)
    assert (code, out) == (2, "")
    assert message in err and len(err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_axe_finds_nothing_and_keys_read_the_weights(cli, run_of: Make, tmp_path: Path, width: int, dark: bool) -> None:
    program, axe = browser.chromium(), browser.axe_file()
    if program is None or axe is None:
        pytest.skip("needs Chromium and axe-core, as tests/report/test_pages.py does")
    assert call(cli, run_of()).code == 0
    document = page_maps(Path("page.html").read_text(encoding="utf-8"))
    with browser.tab(program, tmp_path / "profile") as shown:
        shown.open(tmp_path / "page.html", width=width, dark=dark)
        assert shown.axe(axe) == []
        shown.run("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert shown.axe(axe) == []
        assert shown.run("document.documentElement.scrollWidth") == width
        assert "Student layer 2 beside teacher layer 2, which it is matched with by" in shown.run(READ)
        shown.run(CHOOSE)
        assert "Student layer 1 beside teacher layer 1" in shown.run(READ)
        shown.run("document.querySelector('[data-role=student] svg').focus(); 0")
        for key in ("ArrowDown", "End", "ArrowLeft"):
            for kind in ("keyDown", "keyUp"):
                shown.call("Input.dispatchKeyEvent", type=kind, key=key)
        mine, theirs = (document[role]["weights"][0][1][1][6] for role in ("student", "teacher"))
        assert shown.run(READ) == f"the (2) attends to . (7); teacher: {theirs:.3f}; student: {mine:.3f}"
        table = "[data-role=student] table tbody tr:nth-child(2) td:nth-child(8)"
        assert shown.run(f"document.querySelector({table!r}).textContent") == f"{mine:.3f}"
        assert shown.requests() == shown.errors() == []


READ = "document.querySelector('.readout').textContent"
CHOOSE = """['.layer', '.head'].forEach((name, place) => {
  const choice = document.querySelector(`[data-role=student] ${name}`);
  choice.value = place;
  choice.dispatchEvent(new Event('change'));
})"""


def test_attention_that_is_not_finite_is_refused(cli: Any, run_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "compress.models.features.attention_weights.attention_weights",
        lambda *_: (np.full((2, 8, 8), np.nan, np.float32),),
    )
    code, out, err = call(cli, run_of())
    assert (code, out) == (2, "")
    assert "not finite" in err and not Path("page.html").exists()
