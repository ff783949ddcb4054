"""Teachers, tasks and texts for recipes that reduce the vocabulary, and runs of these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from recipe_runs import TASK, TEACHER
from transformers import AutoConfig, AutoModel
from vocabulary_toys import sentences, tokenizer, words

import compress
from compress.models.checkpoints.folders import save_checkpoint
from compress.results import Result
from compress.results.vocabulary import VocabularyRecord

_CLASSES = """
name: {name}
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
files: {{train: {name}.csv, dev: {name}-dev.csv}}
"""
_OTHERS = {
    "tags": "kind: tagging\ntext: [tokens]\nlabel: tags\nlabels: [O, B-X, I-X]\nmetrics: [entity_f1]\n",
    "asked": "kind: span\ntext: [question, context]\nlabel: answers\nmetrics: [exact_match]\n",
    "vectors": "kind: embedding\ntext: [one, other]\nlabel: score\nmetrics: [spearman]\n",
}
STUDENT = """
name: {name}
title: Own
teacher: minilm-l6
student: {student}
stages:
  - finetune:
  - distill: {{losses: [{{name: soft_target}}]}}
{stages}
  - export:
  - quantize: {{method: {method}}}
"""
BRIEF = ("finetune.max_steps=2", "finetune.batch_size=8")


def classes(folder: Path, name: str, train: list[str], dev: list[str]) -> None:
    """Write a task of two classes."""
    for split, lines in {"": train, "-dev": dev}.items():
        text = "".join(f"{line},{('negative', 'positive')[number % 2]}\n" for number, line in enumerate(lines))
        (folder / f"{name}{split}.csv").write_text(f"sentence,label\n{text}")
    (folder / f"{name}.yaml").write_text(_CLASSES.format(name=name))


def _row(task: str, number: int) -> dict[str, Any]:
    if task == "tags":
        return {"tokens": ["good", f"film{number}"], "tags": ["B-X", "O"]}
    if task == "asked":
        return {
            "question": "is it good ?",
            "context": f"the film {number} is good",
            "answers": [{"start": 4, "end": 8}],
        }
    return {"one": f"the film {number}", "other": "good film is bad"[: 4 + number % 9], "score": number % 9 / 9}


def vocabulary_world(folder: Path) -> Path:
    """Write the tasks `texts`, of embeddings; `few`, with a handful of words; `long`, whose train texts have more than half of
    its teacher's tokens and all but a few of those in dev; and those of `_OTHERS`; the teachers `tiny.yaml` and `long-teacher`,
    an encoder; and `text.txt`."""
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "texts.yaml").write_text(TASK)
    known, rest = words()[:1500], words()[1500:]
    classes(folder, "long", [*known, *sentences(100, seed=2, known=known)],
            [*sentences(60, seed=3, known=known), *sentences(4, seed=4, known=rest)])  # fmt: skip
    few = [f"the film {number} was {('bad', 'good')[number % 2]}" for number in range(80)]
    classes(folder, "few", few[:60], few[60:])
    (folder / "text.txt").write_text("\n\n".join(sentences(200, seed=5)))
    for name, task in _OTHERS.items():
        for split, numbers in {"": range(40), "-dev": range(40, 50)}.items():
            lines = "".join(f"{json.dumps(_row(name, number))}\n" for number in numbers)
            (folder / f"{name}{split}.jsonl").write_text(lines)
        files = f"files: {{train: {name}.jsonl, dev: {name}-dev.jsonl}}\n"
        (folder / f"{name}.yaml").write_text(f"name: {name}\n{task}max_length: 24\n{files}")
    _long_teacher(folder / "long-teacher")
    return folder


def _long_teacher(folder: Path) -> None:
    """Write an encoder with random weights and 2,500 tokens, a table long enough that int8 stores its scales as codes."""
    torch.manual_seed(3)
    own = tokenizer("WordPiece")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    config = AutoConfig.for_model("bert", vocab_size=own.get_vocab_size(), max_position_embeddings=32, **sizes)
    model: Any = AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    save_checkpoint(model.eval(), own, folder)


def run(
    world: Path, recipe: str, *overrides: str, task: str = "texts", teacher: str = "tiny.yaml", **more: Any
) -> Result:
    options = {"root": world / "runs", "threads": 1, "precision": "fp32", "bench": None, **more}
    brief = () if teacher == "tiny.yaml" else BRIEF
    (result,) = compress.run(
        recipe,
        tasks=str(world / f"{task}.yaml"),
        teacher=str(world / teacher),
        overrides=(*brief, *overrides),
        **options,
    )
    return result


def record(result: Result) -> VocabularyRecord:
    assert result.vocabulary is not None
    return result.vocabulary


def recipe(world: Path, name: str, stages: str, *, student: str = "distil-1l", method: str = "smoothquant") -> str:
    """Write the recipe `distill` and then `stages`, with this student, and return its path."""
    path = world / f"{name}.yaml"
    path.write_text(STUDENT.format(name=name, student=student, stages=stages, method=method))
    return str(path)


def predictions(world: Path, result: Result, label: str) -> np.ndarray:
    """Return the logits on dev."""
    with np.load(world / "runs" / result.run / "predictions.npz") as arrays:
        return arrays[f"{label}/dev"]
