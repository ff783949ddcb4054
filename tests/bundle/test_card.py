"""The model card: metadata that hubs parse, a table of the measured figures, snippets that run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundle_making import Run
from pruned_toys import HEADS, NEURONS, whole

from compress.bundle import read_bundle, ship
from compress.bundle.shipping.card import render
from compress.bundle.shipping.papers import bibtex
from compress.bundle.shipping.samples import SAMPLES
from compress.catalog import load_recipe, names
from compress.pruning.removal import without_units
from compress.tasks.sources.builtin import BUILTIN_TASKS

pytestmark = pytest.mark.end_to_end

TASKS = ("toy-sentiment", "toy-entailment", "toy-similarity")


def _front(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


@pytest.mark.slow
def test_the_hubs_own_parser_reads_the_metadata(bundle_of: Callable[[str], Path]) -> None:
    from huggingface_hub import ModelCard

    for task in TASKS:
        data: Any = ModelCard((bundle_of(task) / "README.md").read_text(encoding="utf-8")).data
        info = read_bundle(bundle_of(task))
        assert (data.license, data.library_name, data.pipeline_tag) == (
            "apache-2.0",
            "onnx",
            "text-classification",
        )
        assert data.base_model == "someone/teacher"
        assert {"onnx", "bert-compress", "transformers.js", "int8"} == set(data.tags or [])
        assert (data.language, data.base_model_relation) == ("en", "quantized")
        (widget,) = data.widget
        assert list(widget) == ["text", "text_pair"][: len(info.text_columns)]
        metric_values = [result.metric_value for result in data.eval_results or []]
        assert metric_values == [round(points / 100, 4) for points in info.models["int8"].scores["dev"].values()]


def test_no_licence_and_no_base_are_claimed_where_none_is_known(tmp_path: Path) -> None:
    from bundle_making import make_run

    run = make_run(tmp_path / "made", hub=None)
    out = ship(run.folder, tmp_path / "out", store=run.store)
    assert {"license", "base_model"}.isdisjoint(_front(out))
    assert "licence of its weights: not recorded" in (out / "README.md").read_text(encoding="utf-8")


def test_transformers_is_named_where_it_opens_the_folder(run: Run, tmp_path: Path) -> None:
    out = ship(run.folder, tmp_path / "out", store=run.store, with_checkpoint=True)
    assert _front(out)["library_name"] == "transformers"


def test_what_the_card_claims_can_be_said(run: Run, tmp_path: Path) -> None:
    claims = {"licence": "MIT", "base_model": "me/base", "name": "A fine model"}
    out = ship(run.folder, tmp_path / "out", store=run.store, **claims)  # type: ignore[arg-type]
    front, info = _front(out), read_bundle(out)
    assert (front["license"], front["base_model"]) == ("mit", "me/base")
    assert front["model-index"][0]["name"] == "A fine model"
    assert "\n# A fine model\n" in (out / "README.md").read_text(encoding="utf-8")
    assert (info.licence, info.base_model, info.title, info.name) == ("MIT", "me/base", "A fine model", run.folder.name)


def test_the_data_set_of_the_hub_is_named(bundle: Path) -> None:
    info = read_bundle(bundle)
    assert "datasets:" not in render(info)
    front = yaml.safe_load(render(info.model_copy(update={"dataset": "nyu-mll/glue"})).split("---\n")[1])
    assert front["datasets"] == ["nyu-mll/glue"]
    assert front["model-index"][0]["results"][0]["dataset"]["type"] == "nyu-mll/glue"


def test_every_task_that_comes_with_the_package_has_a_sample() -> None:
    texts = {name: len(spec.text) for name, spec in BUILTIN_TASKS.items()}
    assert {name: len(sample) for name, sample in SAMPLES.items()} == texts


def test_every_recipe_s_paper_is_cited() -> None:
    papers = {load_recipe(name).paper for name in names("recipes")}
    assert len(papers) > 5
    for paper in papers:
        entry = bibtex(paper)
        assert entry is not None, paper
        assert f"journal = {{arXiv preprint {paper}}}" in entry
        assert entry.count("{") == entry.count("}")
    assert bibtex("https://example.org") is bibtex(None) is None


def test_the_paper_is_in_the_card(bundle: Path) -> None:
    info = read_bundle(bundle)
    assert "## Cite" not in render(info.model_copy(update={"recipe": {"name": "mine"}}))
    card = render(info.model_copy(update={"recipe": {"name": "int8", "paper": "arXiv:1910.06188"}}))
    assert "```bibtex\n@article{zafrir2019q8bert,\n  title = {{Q8BERT}" in card


def test_transformers_js_is_told_which_file_to_open(bundle: Path, run: Run, tmp_path: Path) -> None:
    def dtype(folder: Path) -> str:
        return json.loads((folder / "config.json").read_text())["transformers.js_config"]["dtype"]

    assert dtype(bundle) == "q8"
    assert dtype(ship(run.folder, tmp_path / "out", store=run.store, precisions=["fp32"])) == "fp32"


def test_the_table_holds_the_figures_of_the_run(bundle: Path) -> None:
    text, info = (bundle / "README.md").read_text(encoding="utf-8"), read_bundle(bundle)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 5, "heading, rule, teacher, student in fp32 and in int8"
    assert len({line.count("|") for line in lines}) == 1
    shipped = info.models["int8"]
    assert f"{shipped.scores['dev']['accuracy']:.2f}" in lines[4]
    assert "-0.25 (-1.50 to +1.00), not distinguishable" in lines[4]
    assert "1.25 (2.50×)" in lines[4]


@pytest.mark.parametrize("task", TASKS)
def test_the_first_snippet_runs_on_onnxruntime_and_tokenizers_alone(
    bundle_of: Callable[[str], Path], task: str
) -> None:
    text = (bundle_of(task) / "README.md").read_text(encoding="utf-8")
    snippet = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    foreign = "import sys\nfor name in ('compress', 'torch', 'transformers'): assert name not in sys.modules, name\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", snippet + foreign],
        cwd=bundle_of(task),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = r"\[-?\d+\.\d+\]" if task == "toy-similarity" else "|".join(read_bundle(bundle_of(task)).labels)
    assert re.search(expected, done.stdout), done.stdout


def test_two_reported_splits_and_no_latency(bundle: Path) -> None:
    """MNLI has two dev sets; a run may have no benchmark."""
    info = read_bundle(bundle)
    scores = {"dev_matched": {"accuracy": 84.32}, "dev_mismatched": {"accuracy": 83.21}}
    models: Any = {p: model.model_copy(update={"scores": scores, "onnx": None}) for p, model in info.models.items()}
    task = info.task.model_copy(update={"splits": tuple(scores)})
    text = render(info.model_copy(update={"models": models, "baseline": models["fp32"], "task": task}))
    assert "On `dev_mismatched`: fp32 accuracy 83.21; int8 accuracy 83.21." in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[0] == "| model | MB | parameters | Accuracy | against the baseline |"
    assert len({line.count("|") for line in lines}) == 1
    results = yaml.safe_load(text.split("---\n")[1])["model-index"][0]["results"]
    assert [(one["dataset"]["split"], one["metrics"][0]["value"]) for one in results] == [
        ("dev_matched", 0.8432),
        ("dev_mismatched", 0.8321),
    ]


def _timed(bundle: Path, *, control: float, control_cpu: float) -> str:
    """Return the bundle's card from a busy machine: int8 is 2.5 times as fast in wall-clock time, 2.0 times in CPU time."""
    info = read_bundle(bundle)
    models: dict[str, Any] = {}
    rows: tuple[Any, ...] = ()
    for name, model in info.models.items():
        assert model.onnx is not None
        rows = tuple(row.model_copy(update={"cpu_p50": 1.24, "cpu_speedup": 2.0}) for row in model.onnx.latency)
        models[name] = model.model_copy(update={"onnx": model.onnx.model_copy(update={"latency": rows})})
    again = tuple(row.model_copy(update={"speedup": control, "cpu_speedup": control_cpu}) for row in rows)
    baseline = info.baseline.model_copy(update={"onnx": None})
    return render(info.model_copy(update={"models": models, "noise": again, "baseline": baseline}))


@pytest.mark.parametrize(("control", "shown"), [(1.01, "1.24 (2.00×); wall 1.25"), (1.63, "1.24 (2.00×) |")])
def test_the_card_s_times_are_cpu_time(bundle: Path, control: float, shown: str) -> None:
    """With wall-clock time beside them if the machine was quiet."""
    text = _timed(bundle, control=control, control_cpu=1.0)
    assert shown in text
    assert "CPU ms, 1 × 32" in text
    assert "2.50×" not in text


def test_a_card_has_no_times_of_a_machine_that_was_too_busy(bundle: Path) -> None:
    text = _timed(bundle, control=1.63, control_cpu=1.3)
    assert "busy machine" in text
    assert "×)" not in text
    assert "1 × 32" not in text


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (("45 of 900 dev texts also stand in train",), None),
        (("1 of 2 tuning texts also stand in train",), None),
        (
            ("46 of 900 dev texts also stand in train",),
            "Of the texts of `dev`, 5.1% also stand in train, so scores on it look",
        ),
        (
            ("3 of 4 a b texts also stand in train", "1,000 of 2,000 c texts also stand in train"),
            "Of the texts of `a b`, 75.0% and of `c`, 50.0% also stand in train, so scores on them look better than on new texts.",
        ),
    ],
)
def test_the_card_says_if_much_of_a_reported_split_stands_in_train(
    bundle: Path, notes: tuple[str, ...], said: str | None
) -> None:
    info = read_bundle(bundle)
    data = info.task.data.model_copy(update={"notes": notes})
    card = render(info.model_copy(update={"task": info.task.model_copy(update={"data": data})}))
    fingerprint = f" Fingerprint: `{data.fingerprint}`."
    assert f"The reported split was used for nothing but these figures.{fingerprint}" in card or said
    assert said is None or (said in card and "used for nothing" not in card and f"new texts.{fingerprint}" in card)


@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")  # leaves a file open
def test_the_program_for_a_pruned_checkpoint_opens_it(
    bundle_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info, model = read_bundle(bundle_of("toy-sentiment")), without_units(whole("bert"), HEADS, NEURONS)
    task = info.task.model_copy(update={"labels": ("no", "maybe", "yes")})
    model.save_pretrained(tmp_path)
    (tmp_path / "bundle.json").write_text(info.model_copy(update={"task": task}).model_dump_json(), encoding="utf-8")
    program = render(info, has_checkpoint=True, pruned=True).split("```python\n")[-1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    opened = names["model"]
    assert type(opened).__name__ == "PrunedBertForSequenceClassification"
    assert sum(each.numel() for each in opened.parameters()) == model.num_parameters()
