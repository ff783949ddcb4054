"""Kills during training on plain text: pre-training and general distillation end bit-identical wherever they were killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_runs import Forks, kill_often, lines, outcome, trainer_of
from tokenizers import Tokenizer

pytestmark = pytest.mark.end_to_end

RECIPE = """
name: recipe
title: Toy
student: {folder}/student.yaml
stages:
  - pretrain:
      losses: [{{name: masked_lm}}, {{name: sentence_order}}]
      batch_size: 8
      max_steps: 9
      max_length: 24
      dropout: 0.1
      held_out: 0.1
  - finetune: {{batch_size: 8, max_steps: 2, max_length: 24}}
  - general:
      losses: [{{name: embedding_mse}}, {{name: hidden_mse}}, {{name: masked_lm}}]
      batch_size: 8
      max_steps: 9
      max_length: 24
  - distill: {{batch_size: 8, max_steps: 2, max_length: 24, losses: [{{name: soft_target}}]}}
  - export
"""
STUDENT = "{name: student, title: S, architecture: bert, layers: 1}"
TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
tuning_fraction: 0.25
synthetic: {generator: sentiment, train: 64, dev: 8}
"""
STEPS = 9 + 2 + 9 + 2


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory, toy_tokenizer: Tokenizer) -> Iterator[Forks]:
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("recipe")
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    BertModel(BertConfig.from_dict({**size, "vocab_size": 64, "max_position_embeddings": 24})).save_pretrained(
        folder / "teacher"
    )
    toy_tokenizer.save(str(folder / "teacher" / "tokenizer.json"))
    sentences = ("the film is good .", "the story is not bad .", "a very long old film .")
    text = "\n\n".join(" ".join(sentences[(i + j) % 3] for j in range(6)) for i in range(80))
    for name, content in (
        ("recipe.yaml", RECIPE.format(folder=folder)),
        ("student.yaml", STUDENT),
        ("task.yaml", TASK),
    ):
        (folder / name).write_text(content)
    (folder / "text.txt").write_text(text + "\n")
    forks = trainer_of(folder)
    yield forks
    forks.close()


@pytest.mark.slow
def test_twenty_kills_at_any_moment(trainer: Forks, tmp_path: Path) -> None:
    assert trainer.run(tmp_path / "whole") == 0, lines(tmp_path / "whole", "errors")
    expected = outcome(tmp_path / "whole")
    assert set(expected) == {"pretrained", "teacher", "encoder", "student"}
    assert [len(each["log"]) for each in expected.values()] == [9, 2, 9, 2]
    assert expected["pretrained"]["info"]["held_out"]["perplexity"] > 1
    keys = [path.name for path in (tmp_path / "whole" / ".store").iterdir() if not path.name.startswith(".")]
    roots, stages = kill_often(trainer, tmp_path, keys, kills=20, seed=2)
    assert len(stages) >= 4  # killed in every slow stage
    assert sum(len(lines(root, "steps")) for root in roots) > STEPS * len(roots)
    for root in roots:
        assert outcome(root) == expected
