"""A bundle records the code that made its run, that made the bundle, and that checked it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bundle_making import Run

from compress.bundle import read_bundle, ship, verify
from compress.provenance import Code, Corpus, TeacherOrigin, running_code
from compress.results import read_result, write_result

EARLIER = Code(version="0.0.9", source="c" * 64, commit="d" * 40, dirty=True)
ORIGIN = TeacherOrigin(kind="hub", name="owner/model", revision="e" * 40, files={"model.safetensors": "1" * 64})
CORPUS = Corpus(names=("text.txt",), fingerprint="3" * 64)


def test_the_record_travels_with_the_bundle(run: Run, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run.folder, tmp_path / run.folder.name))
    result = read_result(folder).model_copy(update={"code": EARLIER, "origin": ORIGIN, "corpus": CORPUS})
    write_result(result, folder)
    info = read_bundle(ship(folder, tmp_path / "out", store=run.store))
    assert (info.code, info.origin, info.corpus, info.shipped_by) == (EARLIER, ORIGIN, CORPUS, running_code())


def test_a_run_of_before_is_shipped_by_code_that_is_known(bundle: Path) -> None:
    info = read_bundle(bundle)
    assert (info.code, info.origin, info.corpus, info.shipped_by) == (None, None, None, running_code())


def test_a_check_says_which_code_made_it(bundle: Path) -> None:
    document = json.loads(verify(bundle).model_dump_json())
    assert Code.model_validate(document["code"]) == running_code()
