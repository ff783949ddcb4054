"""`compress ablate` on a tiny teacher, from the recipe to the files, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.results import read_result

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

FILES = {
    "tiny.yaml": """\
name: tiny
title: BERT, 4 layers × 16, random weights
licence: Apache-2.0
random: {layers: 4, hidden: 16, heads: 2, intermediate: 32, vocabulary: 300, max_positions: 32}
finetune: {learning_rate: 1.0e-3, max_steps: 3, batch_size: 8}
""",
    "two.yaml": "name: two\ntitle: Two layers\narchitecture: bert\nlayers: 2\n",
    "task.yaml": """\
name: tiny-task
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
synthetic: {generator: sentiment, train: 120, dev: 40}
""",
    "mine.yaml": """\
name: mine
title: Mine
paper: "arXiv:1909.10351"
teacher: tiny.yaml
student: two.yaml
stages:
  - finetune:
  - augment: {copies: 1}
  - distill:
      name: intermediate
      losses: [{name: embedding_mse}, {name: hidden_mse}, {name: attention_mse}]
      max_steps: 2
      batch_size: 8
      keep: last
  - distill:
      name: prediction
      losses: [{name: soft_cross_entropy}]
      max_steps: 2
      batch_size: 8
      learning_rate: 1.0e-3
  - export:
  - quantize:
""",
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ablate(cli: Cli, *arguments: object) -> Any:
    return cli("ablate", "mine.yaml", "--task", "task.yaml", "--threads", "1", *arguments)


@pytest.mark.slow
def test_rows_run_on_two_seeds_and_are_reported(cli: Cli, world: Path) -> None:
    chosen = ("--seeds", "2", "--base-seed", "0", "--rows", "without soft_cross_entropy")
    code, out, err = ablate(cli, *chosen)
    assert code == 0, err
    assert [line for line in err.splitlines() if "row " in line] == [
        "note    row 1 of 2: full",
        "note    row 2 of 2: without soft_cross_entropy",
    ]
    # for two rows and two seeds: one teacher and one set of copies, and an intermediate student per seed
    counts = {name: err.count(f"run     {name}") for name in ("finetune", "augment", "distill intermediate")}
    assert counts == {"finetune": 1, "augment": 1, "distill intermediate": 2}
    assert err.count("run     distill prediction") == 4
    assert "bench" not in err and "quantize" not in err
    assert (
        "without soft_cross_entropy" in out and "−2.10" in out and "runs/ablation-mine-tiny-task/ablation.html" in out
    )
    runs = [read_result(path.parent) for path in sorted((world / "runs").glob("*/result.json"))]
    assert [(run.recipe["name"], run.seed) for run in runs] == [
        (name, seed) for name in ("mine-full", "mine-without-soft_cross_entropy") for seed in (0, 1)
    ]
    command = "compress ablate mine.yaml --task task.yaml --seeds 2 --base-seed 0 --rows 'without soft_cross_entropy'"
    assert {run.command for run in runs} == {command}
    assert {(run.final.precision, run.final.onnx) for run in runs} == {("fp32", None)}

    code, out, err = ablate(cli, *chosen, "--json")  # again: everything comes from the store
    assert code == 0, err
    assert "cached  distill prediction" in err
    assert "run     " not in err
    document = json.loads(out)
    assert document == json.loads((world / "runs/ablation-mine-tiny-task/ablation.json").read_text(encoding="utf-8"))
    full, gold = document["rows"]
    assert (full["label"], gold["label"], gold["published_difference"]) == ("full", "without soft_cross_entropy", -2.1)
    assert full["mean"]["scores"] == [run.final.headline for run in runs[:2]]
    assert gold["mean"]["difference"]["points"] == pytest.approx(
        np.subtract(gold["mean"]["scores"], full["mean"]["scores"]).mean()
    )
    assert gold["runs"] == [run.run for run in runs[2:]]


@pytest.mark.end_to_end
def test_another_student_is_a_row(cli: Cli, world: Path) -> None:
    (world / "three.yaml").write_text(FILES["two.yaml"].replace("two", "three").replace("layers: 2", "layers: 3"))
    code, out, err = ablate(cli, "--rows", "student three.yaml", "--set", "augment.enabled=false", "--json")
    assert code == 0, err
    assert err.count("run     finetune") == 1
    assert err.count("run     distill prediction") == 2
    runs = {
        run.student: run for run in map(read_result, (path.parent for path in (world / "runs").glob("*/result.json")))
    }
    assert [row["label"] for row in json.loads(out)["rows"]] == ["full", "student three.yaml"]
    assert runs["three"].final.parameters > runs["two"].final.parameters


@pytest.mark.slow
def test_ones_own_files_are_ablated(cli: Cli, world: Path) -> None:
    for name, count in {"a": 40, "b": 12}.items():
        rows = [f"the {name} film {i} is {'good' if i % 2 else 'bad'},{i % 2 + 1}" for i in range(count)]
        (world / f"{name}.csv").write_text("\n".join(["review,stars", *rows]))
    files = ["--train", "a.csv", "--dev", "b.csv", "--text", "review", "--label", "stars"]
    words = ("mine.yaml", *files, "--max-length", "16", "--threads", "1", "--set", "augment.enabled=false")
    code, out, err = cli("ablate", *words, "--rows", "without hidden_mse", "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document == json.loads((world / "runs/ablation-mine-a/ablation.json").read_text(encoding="utf-8"))
    assert [row["label"] for row in document["rows"]] == ["full", "without hidden_mse"]
    runs = [read_result(path.parent) for path in (world / "runs").glob("*/result.json")]
    assert {run.task.labels for run in runs} == {("1", "2")}
    assert {run.command for run in runs} == {
        f"compress ablate mine.yaml {' '.join(files)} --max-length 16 --set augment.enabled=false --rows 'without hidden_mse'"
    }
    code, _, err = cli("ablate", *words, "--task", "task.yaml")
    assert (code, err.count("\n")) == (2, 1)
    assert "--train names data, and --task task.yaml has data of its own" in err


def test_without_data_nothing_is_ablated(cli: Cli, world: Path) -> None:
    code, _, err = cli("ablate", "mine.yaml")
    assert (code, err.count("\n")) == (2, 1)
    assert "expected --task NAME (`compress list tasks`) or FILE.yaml, or --train FILE and --dev FILE" in err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--rows", "without general"], "no row `without general`; this recipe has: full, without augment, "),
        (["--set", "quantise.method=dynamic"], "`mine` has neither a field nor a stage `quantise`"),
        (["--rows", "student tiny-2"], "student `tiny-2` is not in the catalogue; did you mean `tiny-2l`?"),
        (["--teacher", "bert-bas"], "did you mean `bert-base`?"),
        (["--precision", "half"], "--precision: expected fp32, bf16 or auto; found 'half'"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(cli: Cli, world: Path, arguments: list[str], expected: str) -> None:
    code, out, err = ablate(cli, *arguments)
    assert (code, out) == (2, "")
    assert expected in err
    assert "Traceback" not in err
    assert not (world / "runs").exists()


def test_a_recipe_without_parts_is_refused(cli: Cli, world: Path) -> None:
    code, _, err = cli("ablate", "int8", "--task", "task.yaml")
    assert code == 2
    assert "there is nothing to leave out" in err
