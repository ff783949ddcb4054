"""benchmarks/peers/distil_*.py: each library minimises the same losses as our recipes, and the page shows what was measured."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from compress.catalog import load_recipe
from compress.objective import Objective

PEERS = Path(__file__).parents[1] / "benchmarks/peers"
PAIRS = ((1, 2), (2, 4), (3, 6))


@pytest.fixture
def outputs() -> tuple[Any, Any, torch.Tensor]:
    """Return outputs of a three-layer student and its six-layer teacher, and the mask of two texts, one of them padded."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    def output(layers: int) -> Any:
        return SimpleNamespace(
            logits=drawn(2, 2),
            hidden_states=[drawn(2, 5, 8) for _ in range(layers + 1)],
            attentions=[drawn(2, 4, 5, 5) for _ in range(layers)],
        )

    return output(3), output(6), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])


def by_hand(student: Any, teacher: Any, mask: torch.Tensor, *, of_batch: bool = False) -> float:
    """Compute TinyBERT's squared errors token by token, without padding; `of_batch`: one mean over all attention pairs of the batch, not
    one per text."""
    total = 0.0
    lengths = mask.sum(1).tolist()
    for mine, theirs in ((0, 0), *PAIRS):
        square = (student.hidden_states[mine] - teacher.hidden_states[theirs]) ** 2
        total += torch.cat([square[row, :length] for row, length in enumerate(lengths)]).mean().item()
    for mine, theirs in PAIRS:
        square = (student.attentions[mine - 1] - teacher.attentions[theirs - 1]) ** 2
        texts = [square[row, :, :length, :length].flatten() for row, length in enumerate(lengths)]
        parts = [torch.cat(texts)] if of_batch else texts
        total += sum(part.mean().item() for part in parts) / len(parts)
    return total


def ours(peers: Any, case: str, student: Any, teacher: Any, mask: torch.Tensor, labels: torch.Tensor) -> float:
    (stage, *_) = load_recipe(str(PEERS / f"distil_{case}.yaml")).stages
    objective = Objective(stage.spec.losses, layers=PAIRS, widths=(8, 8))
    features = []
    for output in (student, teacher):
        states = {f"hidden[{i}]": state for i, state in enumerate(output.hidden_states)}
        scores = {f"scores[{i}]": score for i, score in enumerate(output.attentions)}
        features.append({"logits": output.logits, "embeddings": output.hidden_states[0], **states, **scores})
    return sum(term.item() for term in objective(*features, {"attention_mask": mask, "labels": labels}).values())


def test_layers_are_compared_alike(peers: Any, outputs: Any) -> None:
    student, teacher, mask = outputs
    expected = by_hand(student, teacher, mask)
    written = peers("distil_layers_loss").layers_loss(student, teacher, mask).item()
    assert written == pytest.approx(expected, rel=1e-5)
    assert ours(peers, "layers", student, teacher, mask, torch.zeros(2, dtype=torch.long)) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.slow  # imports the Trainer
def test_logits_are_compared_alike(peers: Any, outputs: Any) -> None:
    student, teacher, mask = outputs
    labels = torch.tensor([1, 0])
    student.loss = F.cross_entropy(student.logits, labels)
    p, q = ((output.logits / 2).softmax(-1) for output in (teacher, student))
    expected = (0.5 * 4 * (p * (p.log() - q.log())).sum(-1).mean() + 0.5 * student.loss).item()
    assert peers("distil_trainer").logits_loss(student, teacher, mask).item() == pytest.approx(expected, rel=1e-5)
    assert ours(peers, "logits", student, teacher, mask, labels) == pytest.approx(expected, rel=1e-5)


@pytest.mark.skipif(importlib.util.find_spec("textbrewer") is None, reason="textbrewer is not installed here")
def test_textbrewer_compares_alike(peers: Any, outputs: Any) -> None:
    from textbrewer.presets import MATCH_LOSS_MAP  # pyright: ignore[reportMissingImports]

    student, teacher, mask = outputs
    states = {
        "hidden": (student.hidden_states, teacher.hidden_states),
        "attention": (student.attentions, teacher.attentions),
    }
    total = 0.0
    for match in peers("distil_textbrewer").matches(heads=4):
        mine, theirs = states[match["feature"]]
        loss = MATCH_LOSS_MAP[match["loss"]](mine[match["layer_S"]], theirs[match["layer_T"]], mask=mask)
        total += match["weight"] * loss.item()
    assert total == pytest.approx(by_hand(student, teacher, mask, of_batch=True), rel=1e-5)


def test_shares_of_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PEERS.parent)
    shares = importlib.import_module("padding").shares(np.array([8] * 32 + [32] * 32))
    assert shares["ours"] == 0
    assert shares["longest"] == pytest.approx(1 - 20 / 128)
    assert shares["random"] == pytest.approx(1 - 20 / 32)  # each half has a long text


def test_a_users_lines(peers: Any, tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text('"""What\n\nit is."""\n\nimport a  # why\n\n# a comment\nx = 1\n')
    assert peers("distil_run")._written(path) == 2


def test_a_library_that_does_not_answer_in_its_time_is_left_out(peers: Any, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    failed: dict[str, str] = {}
    with peers("distil_run")._children({"textbrewer": program}, 1, failed, 0.2) as (children, versions):
        assert children == versions == {}
    assert "no answer in 0.2 s" in failed["distil_textbrewer"]


@pytest.mark.parametrize(("words", "fits"), [(["--examples", "32", "--epochs", "1"], False), (["--epochs", "1"], True)])
def test_one_step_alone_cannot_be_timed(
    peers: Any, words: list[str], fits: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["distil_run.py", "--teacher", "it", *words])
    if fits:
        assert peers("distil_run")._arguments().examples == 1024
        return
    with pytest.raises(SystemExit):
        peers("distil_run")._arguments()
    assert "expected two batches of 32 or more" in capsys.readouterr().err


def test_the_page(peers: Any) -> None:
    page = peers("distil_page")
    seconds = {"compress": (2.0, 3.0, 4.0), "compress, again": (2.0, 3.0, 4.0), "TextBrewer": (4.0, 6.0, 8.0)}
    runs = [
        {
            "case": "logits",
            "candidate": name,
            "round": 0,
            "real": 300,
            "padded": 400,
            "examples": 30,
            "clocks": [(0.0, 0.0), *((end, end) for end in ends)],
            "peak_mib": 900.0,
            "score": 80.0,
        }
        for name, ends in seconds.items()
    ]
    result = {
        "command": "python it.py",
        "date": "2026-01-01",
        "task": "sst2",
        "note": "A quiet machine.",
        "load": 0.0,
        "machine": {"cpu": "One", "cores": 1, "isa": ["avx2"]},
        "job": {"examples": 30, "epochs": 1, "batch_size": 10, "learning_rate": 1e-4, "threads": 1},
        "lines": {"distil_ours": 40, "distil_textbrewer": 90},
        "parts": 30,
        "tuning": 500,
        "versions": {"distil_textbrewer": {"textbrewer": "1.0"}},
        "runs": runs,
        "failed": {"torchdistill": "no such wheel"},
    }
    text = page.render(result)
    assert "load average 0.0 before. A quiet machine." in text
    assert (
        "| candidate | padding | tokens/s | examples/s | times ours | s a step | before, s | MiB | score | lines |"
        in text
    )
    assert "| compress | 25% | 75 (75 to 75) | 7.5 | 1.00 | 1.000 | 1.0 | 900 | 80.0 | 40 |" in text
    assert "| TextBrewer | 25% | 38 (38 to 38) | 3.75 | 2.00 | 2.000 | 2.0 | 900 | 80.0 | 90 |" in text
    assert "* logits, TextBrewer: 2.00 times, reached" in text
    assert "* torchdistill did not run: no such wheel" in text
