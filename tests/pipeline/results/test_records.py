"""A result identifies its code, teacher, text and data; earlier artefacts keep the record of their time."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pretrain_toys import QUICK
from tokenizers import Tokenizer
from worlds import encoder_world

from compress import provenance, store
from compress.corpus import corpus_fingerprint, corpus_sources
from compress.pipeline import Request, run_all
from compress.pipeline.plan.teachers import resolve_teacher
from compress.provenance import Code
from compress.results import Result, read_result

OLD = Code(version="0.1.0", source="a" * 64, commit="b" * 40, dirty=False)
RECIPE = """
name: short
title: short
stages: [pretrain: {losses: [{name: masked_lm}]}, finetune, export]
"""
NEW = Code(version="0.1.0", source="c" * 64, commit="d" * 40, dirty=True)


def by(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    # All that hold it by name, its own module last: what is first imported now must find the real one, to get it back afterwards.
    for module in ("pipeline.results.assemble", "pipeline.training.run", "provenance"):
        monkeypatch.setattr(f"compress.{module}.running_code", lambda: code)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(world: Path, *overrides: str) -> Result:
    (world / "short.yaml").write_text(RECIPE)
    request = Request(
        (str(world / "short.yaml"),),
        (str(world / "task.yaml"),),
        teacher=str(world / "own.yaml"),
        corpus=(str(world / "text.txt"),),
        root=world / "runs",
        overrides=(*QUICK, *overrides),
        threads=1,
        bench=None,
    )
    return run_all(request)[0]


def test_what_earlier_code_made_keeps_its_record(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by(OLD, monkeypatch)
    first = run(world)
    assert first.code == OLD
    assert {stage.kind: stage.code for stage in first.stages} == {stage.kind: OLD for stage in first.stages}
    assert [model.code for model in first.models] == [OLD]
    assert first.timed_by is None
    assert first.corpus is not None
    assert first.corpus.names == ("text.txt",)
    assert first.corpus.fingerprint == corpus_fingerprint(corpus_sources([str(world / "text.txt")]))
    assert first.origin is not None
    assert first.origin.files == {"tokenizer.json": sha256(world / "words/tokenizer.json")}

    by(NEW, monkeypatch)
    assert run(world) == first == read_result(world / "runs" / first.run)

    later = run(world, "export.opset=23")
    assert later.code == NEW
    assert [model.code for model in later.models] == [NEW]
    codes = {stage.kind: stage.code for stage in later.stages}
    assert codes == dict.fromkeys(codes, OLD) | {"export teacher-fp32": NEW}
    assert later.task.data.tuning == first.task.data.tuning
    assert len(str(later.task.data.tuning)) == 64


def test_an_artefact_of_before_is_of_code_that_is_not_known(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(provenance, "manifest_fields", lambda kind, label: {"kind": kind, "label": label})
        before.setattr(
            "compress.pipeline.results.measure.manifest_fields", lambda kind, label: {"kind": kind, "label": label}
        )
        first = run(world)
    document = json.loads((world / "runs" / first.run / "result.json").read_text())
    for record in (document, document["task"]["data"], *document["stages"], *document["models"]):
        for name in ("code", "origin", "corpus", "timed_by", "tuning"):
            record.pop(name, None)
    (world / "runs" / first.run / "result.json").write_text(json.dumps(document))
    old = read_result(world / "runs" / first.run)
    assert (old.code, old.origin, old.stages[0].code) == (None, None, None)
    assert run(world) == old  # the measurements are the same, so the record of the code stays
    assert [stage.code for stage in first.stages] == [None] * len(first.stages)


def test_a_teacher_is_known_by_its_files_which_are_read_once(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="")
    read: Counter[str] = Counter()
    hash_file = store.hash_file
    monkeypatch.setattr(store, "hash_file", lambda path: read.update([path.name]) or hash_file(path))
    teacher = resolve_teacher(str(folder))
    names = ("model.safetensors", "config.json", "tokenizer.json")
    hashes = {name: sha256(folder / name) for name in names}
    assert teacher.identity == " ".join(f"{name}={digest}" for name, digest in hashes.items())
    origin = teacher.origin
    assert (origin.kind, origin.name, origin.revision, origin.files) == ("folder", "teacher", None, hashes)
    assert str(origin) == f"folder teacher, model.safetensors {hashes['model.safetensors'][:12]}"
    assert read == Counter(names)


CARD = "name: card\ntitle: card\nlicence: MIT\ncheckpoint: {{hub: owner/model, revision: '{0}', package: {{name: {1}, module: {2}}}}}\n"


@pytest.mark.parametrize(
    ("package", "module", "kind", "name", "revision"),
    [
        ("carries-a-model", "carries_a_model", "package", "carries-a-model", "2.5"),
        ("not-installed", "not_installed_anywhere", "hub", "owner/model", "0" * 40),
    ],
)
def test_a_card_says_which_of_its_places_the_weights_came_from(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch,
    package: str, module: str, kind: str, name: str, revision: str,
) -> None:  # fmt: skip
    (tmp_path / "carries_a_model").mkdir()
    (tmp_path / "carries_a_model/__init__.py").write_text("")
    (tmp_path / "carries_a_model-2.5.dist-info").mkdir()
    (tmp_path / "carries_a_model-2.5.dist-info/METADATA").write_text("Name: carries-a-model\nVersion: 2.5\n")
    folder = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="")
    folder.rename(tmp_path / "carries_a_model/model")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        "compress.models.checkpoints.location._download", lambda name, checkpoint: tmp_path / "carries_a_model/model"
    )
    (tmp_path / "card.yaml").write_text(CARD.format("0" * 40, package, module))
    origin = resolve_teacher(str(tmp_path / "card.yaml")).origin
    assert (origin.kind, origin.name, origin.revision) == (kind, name, revision)
    assert origin.files["model.safetensors"] == sha256(tmp_path / "carries_a_model/model/model.safetensors")
