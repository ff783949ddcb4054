"""A BERT's logits distilled into a pre-trained byte-level RoBERTa, through the command line: run, shipped, verified, queried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretrained_toys import BYTES, encoder_folder
from recipe_runs import TASK, TEACHER, compress

from compress.bench import Candidate
from compress.models.checkpoints.folders import load_tokenizer
from compress.results import Result
from compress.runtime import Classifier
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate

pytestmark = pytest.mark.end_to_end

COMMAND = ("run", "logits", "--task", "task.yaml", "--teacher", "tiny.yaml", "--student", "./bytes", "--threads", "1")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    (folder / "tiny.yaml").write_text(TEACHER)
    (folder / "task.yaml").write_text(TASK)
    encoder_folder(folder / "bytes")
    return folder


@pytest.mark.slow
def test_run_ship_verify_predict(world: Path, tmp_path: Path) -> None:
    done = compress(*COMMAND, "--set", "distill.max_steps=9", "--no-bench", "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    result = Result.model_validate(json.loads(done.stdout)[0])
    teacher, student, int8 = result.models
    assert (teacher.name, student.name, int8.precision) == ("teacher", "student", "int8")
    assert student.embedding_parameters != teacher.embedding_parameters
    assert int8.fidelity is not None and int8.fidelity.reference == "student-fp32"
    assert result.student_origin is not None and set(result.student_origin.files) >= {"model.safetensors"}
    assert "--student ./bytes" in result.command
    assert str(world) not in done.stdout

    bundle = tmp_path / "bundle"
    shipped = compress("ship", world / "runs" / result.run, "-o", bundle, cwd=world)
    assert shipped.returncode == 0, shipped.stderr
    verified = compress("verify", bundle, "--json", cwd=world)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert json.loads(verified.stdout)["passed"] is True
    assert json.loads((bundle / "config.json").read_text())["model_type"] == "roberta"
    assert load_tokenizer(bundle).get_vocab_size() == BYTES
    assert "started from a checkpoint of their own, `bytes`" in (bundle / "README.md").read_text()
    answered = compress("predict", bundle, "a good film", cwd=world)
    assert answered.returncode == 0, answered.stderr

    # The reported score is that of the shipped file on the reported texts.
    texts, gold = zip(*generate(Synthetic(generator="sentiment", train=120, dev=40))["dev"], strict=True)
    logits = Classifier(bundle, precision="fp32").logits([str(text) for text in texts])
    names = np.array(result.task.labels)[logits.argmax(1)]
    assert 100 * (names == np.array(gold)).mean() == pytest.approx(student.headline)


@pytest.mark.slow
def test_each_model_is_timed_on_its_own_tokens(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the same texts, the teacher is timed on its tokens and the student on its own."""
    import compress.bench
    from compress.errors import CompressError
    from compress.pipeline import Request, run_all

    seen: list[Candidate] = []

    def measure(candidates: list[Candidate], *_: object) -> None:
        seen.extend(candidates)
        raise CompressError("seen")

    monkeypatch.setattr(compress.bench, "measure", measure)
    names: Any = {name: str(world / path) for name, path in (("teacher", "tiny.yaml"), ("student", "bytes"))}
    request = Request(
        ("logits",),
        (str(world / "task.yaml"),),
        root=world / "timed",
        overrides=("distill.max_steps=1",),
        threads=1,
        **names,
    )
    with pytest.raises(CompressError, match="seen"):
        run_all(request)
    lengths = {candidate.name: candidate.lengths for candidate in seen}
    assert len(lengths["teacher-fp32"]) == len(lengths["student-fp32"]) == 12
    assert sum(lengths["student-fp32"]) != sum(lengths["teacher-fp32"])
    assert lengths["student-int8"] == lengths["student-torch"] == lengths["student-fp32"]
