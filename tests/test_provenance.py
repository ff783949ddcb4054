"""The record of the code: equal for a checkout and an installed package, different after every relevant change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compress import __version__, provenance
from compress.files.catalogue import KINDS
from compress.provenance import Code

ROOT = Path(__file__).parents[1]


def git(folder: Path, *words: str) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, env=ours, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a repository with a package and a recipe in one commit."""
    for name in ("compress/a.py", "recipes/r.yaml", "reports/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("one\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def test_the_files_are_all_that_decides_what_the_package_does() -> None:
    files = provenance.source_files()
    tracked = git(ROOT, "ls-files", "compress", *KINDS).splitlines()
    assert len(tracked) > 300
    assert set(tracked) - {"compress/py.typed"} <= set(files)  # only for type checkers
    assert all(path.is_file() for path in files.values())


def test_an_installed_package_has_the_hash_of_its_checkout(tmp_path: Path) -> None:
    """A wheel has the catalogue inside the package; compiled files are ignored."""
    shutil.copytree(ROOT / "compress", tmp_path / "compress")
    for kind in KINDS:
        shutil.copytree(ROOT / kind, tmp_path / "compress/catalogue" / kind)
    (tmp_path / "compress/__pycache__").mkdir(exist_ok=True)
    (tmp_path / "compress/__pycache__/other.pyc").write_bytes(b"0")
    program = (
        "import sys; from compress import provenance; assert 'torch' not in sys.modules\n"
        "print(provenance.running_code().model_dump_json())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    installed = Code.model_validate_json(done.stdout)
    here = provenance.source_hash(provenance.source_files())
    assert installed == Code(version=__version__, source=here, commit=None, dirty=None)


def test_the_hash_is_of_names_and_contents_but_not_of_order_or_line_ends(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"a\nb\n")
    two.write_bytes(b"c\n")
    whole = provenance.source_hash({"x": one, "y": two})
    assert provenance.source_hash({"y": two, "x": one}) == whole
    assert provenance.source_hash({"x": two, "y": one}) != whole
    assert provenance.source_hash({"x": one, "z": two}) != whole
    one.write_bytes(b"a\r\nb\r\n")
    assert provenance.source_hash({"x": one, "y": two}) == whole
    one.write_bytes(b"a\nb \n")
    assert provenance.source_hash({"x": one, "y": two}) != whole


def test_a_checkout_says_its_commit_and_whether_the_package_differs_from_it(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    assert provenance.checked_out(checkout) == (commit, False)
    (checkout / "reports/page.md").write_text("two\n")
    (checkout / "reports/new.md").write_text("two\n")
    assert provenance.checked_out(checkout) == (commit, False)
    (checkout / "compress/new.py").write_text("two\n")
    assert provenance.checked_out(checkout) == (commit, True)
    (checkout / "compress/new.py").unlink()
    (checkout / "recipes/r.yaml").write_text("two\n")
    assert provenance.checked_out(checkout) == (commit, True)


def test_a_hook_of_another_repository_does_not_lend_its_commit(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "-q")
    git(other, "commit", "-qm", "other", "--allow-empty")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert provenance.checked_out(checkout) == (git(checkout, "rev-parse", "HEAD"), False)


def test_a_repository_that_does_not_hold_the_package_lends_no_commit(checkout: Path) -> None:
    git(checkout, "rm", "-rq", "--cached", "compress")
    git(checkout, "commit", "-qm", "without")
    assert provenance.checked_out(checkout) == (None, None)
    shutil.rmtree(checkout / ".git")
    assert provenance.checked_out(checkout) == (None, None)
    git(checkout, "init", "-q")  # no commit yet
    assert provenance.checked_out(checkout) == (None, None)


def test_without_git_there_is_no_commit(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert provenance.checked_out(checkout) == (None, None)


def test_how_it_is_written() -> None:
    code = Code(version="1.2.3", source="ab" * 32, commit="cd" * 20, dirty=False)
    assert str(code) == "1.2.3, commit cdcdcdcdcdcd, source abababababab"
    assert (
        str(code.model_copy(update={"dirty": True})) == "1.2.3, commit cdcdcdcdcdcd with changes, source abababababab"
    )
    assert str(code.model_copy(update={"commit": None, "dirty": None})) == "1.2.3, source abababababab"


def test_a_manifest_says_the_code_and_one_of_before_says_none() -> None:
    said = provenance.manifest_fields("finetune", "finetune teacher")
    assert provenance.recorded_code(said) == provenance.running_code()
    assert provenance.recorded_code({"kind": "finetune", "label": "finetune teacher"}) is None
    assert provenance.recorded_code(said | {"code": {"of": "a version to come"}}) is None
