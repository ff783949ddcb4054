from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from compress.errors import CompressError
from compress.store import Store, hash_file, hash_folder, key, manifest

KEY = "0" * 32
FILES = {"model.bin": b"weights" * 1000, "sub/config.json": b"{}", "sub/empty": b""}


def make(out: Path, work: Path) -> dict:
    for name, content in FILES.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(content)
    return {"steps": 3, "loss": np.float32(0.5), "per_class": np.array([1, 2]), "where": Path("a/b")}


def refuse(out: Path, work: Path) -> dict:
    raise AssertionError("built again")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store")


@pytest.fixture
def notices(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(store, "_notice", lines.append)
    return lines


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_an_artefact_is_built_once_and_found_again(store: Store):
    assert store.find(KEY) is None
    assert store.last_problem is None
    built = store.build(KEY, make, describe={"kind": "test"})
    assert built.path == store.path(KEY)
    assert {name: (built.path / name).read_bytes() for name in FILES} == FILES
    assert built.info == {"steps": 3, "loss": 0.5, "per_class": [1, 2], "where": "a/b"}
    again = store.build(KEY, refuse, describe={})
    assert again == built == store.find(KEY) == Store(store.root).find(KEY)


def test_finding_in_a_store_that_does_not_exist_writes_nothing(store: Store):
    assert store.find(KEY) is None
    assert not store.root.exists()


def test_the_manifest_describes_the_artefact(store: Store):
    store.build(KEY, make, describe={"kind": "test", "inputs": {"teacher": "1" * 32}})
    manifest = json.loads((store.path(KEY) / "manifest.json").read_text())
    assert manifest["describe"] == {"kind": "test", "inputs": {"teacher": "1" * 32}}
    assert {name: entry["bytes"] for name, entry in manifest["files"].items()} == {n: len(c) for n, c in FILES.items()}
    assert manifest["key"] == KEY


def flip(path: Path, position: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "a flipped byte": (lambda a: flip(a / "model.bin", 3500), "model.bin was altered"),
    "a truncated file": (lambda a: (a / "model.bin").write_bytes(b"weights"), "model.bin has 7 bytes, expected 7000"),
    "a missing file": (lambda a: (a / "sub/empty").unlink(), "sub/empty is missing"),
    "an extra file": (lambda a: (a / "sub/extra").touch(), "sub/extra is not in the manifest"),
    "a link": (lambda a: (a / "link").symlink_to(a / "model.bin"), "link is a link or a special file"),
    "a missing manifest": (lambda a: (a / "manifest.json").unlink(), "manifest.json cannot be read"),
    "a truncated manifest": (lambda a: (a / "manifest.json").write_bytes(b"{"), "manifest.json cannot be read"),
    "a manifest of nothing": (lambda a: (a / "manifest.json").write_bytes(b"[]"), "manifest.json was altered"),
    "an altered manifest": (
        lambda a: (a / "manifest.json").write_text(
            (a / "manifest.json").read_text().replace('"steps": 3', '"steps": 4')
        ),
        "manifest.json was altered",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("process", ["same", "another"])
def test_damage_is_seen_told_and_repaired(store: Store, notices: list[str], damage: str, process: str):
    spoil, expected = DAMAGE[damage]
    intact = store.build(KEY, make, describe={})
    assert store.find(KEY) == intact
    spoil(store.path(KEY))
    observer = store if process == "same" else Store(store.root)
    assert observer.find(KEY) is None
    assert observer.last_problem is not None
    assert observer.last_problem.startswith(f"{store.path(KEY)}: {expected}")
    rebuilt = store.build(KEY, make, describe={})
    assert notices == [f"{observer.last_problem}; building it again"]
    assert Store(store.root).find(KEY) == rebuilt
    assert names(rebuilt.path) == sorted([*FILES, "manifest.json"])


def test_a_flip_anywhere_in_the_manifest_or_in_a_file_is_seen(store: Store):
    path = store.build(KEY, make, describe={"kind": "test"}).path
    for name in ("manifest.json", "sub/config.json"):
        for position in range(0, (path / name).stat().st_size, 1 if name == "sub/config.json" else 7):
            flip(path / name, position)
            assert Store(store.root).find(KEY) is None, f"byte {position} of {name}"
            flip(path / name, position)
    assert Store(store.root).find(KEY) is not None


def test_an_artefact_under_another_key_is_refused(store: Store):
    store.build(KEY, make, describe={}).path.rename(store.path("1" * 32))
    assert store.find("1" * 32) is None
    assert "that of another artefact" in str(store.last_problem)


def test_verification_is_not_repeated_for_what_did_not_change(store: Store, monkeypatch: pytest.MonkeyPatch):
    store.build(KEY, make, describe={})
    hashed = []
    monkeypatch.setattr("compress.store.manifest.sha256_all", lambda paths: hashed.append(1) or _hashes(paths))
    monkeypatch.setattr("compress.store.artifacts.time.time_ns", lambda: 1 << 62)  # long after the files were written
    assert store.find(KEY) == store.find(KEY)
    assert len(hashed) == 1
    assert Store(store.root).find(KEY) is not None
    assert len(hashed) == 2
    flip(store.path(KEY) / "model.bin")
    assert store.find(KEY) is None


def _hashes(paths: object) -> list[str]:
    from compress.store.hashing import sha256_all

    return sha256_all(paths)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "failure", [RuntimeError("boom"), KeyboardInterrupt(), CompressError("wrong"), SystemExit(130)]
)
def test_a_failure_passes_through_leaves_nothing_and_keeps_the_work(store: Store, failure: BaseException):
    def fail(out: Path, work: Path) -> dict:
        (out / "half").write_bytes(b"x")
        (work / "checkpoint").write_bytes(b"step 7")
        raise failure

    def resume(out: Path, work: Path) -> dict:
        assert list(out.iterdir()) == []
        (out / "model").write_bytes((work / "checkpoint").read_bytes())
        return {}

    with pytest.raises(type(failure)) as caught:
        store.build(KEY, fail, describe={})
    assert caught.value is failure
    assert store.find(KEY) is None
    assert names(store.root / ".building") == [f"{KEY}/work/checkpoint"]
    assert (Store(store.root).build(KEY, resume, describe={}).path / "model").read_bytes() == b"step 7"
    assert names(store.root / ".building") == []


def test_an_unclear_error_on_a_disk_without_room_is_told_as_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch):
    def fail(out: Path, work: Path) -> dict:
        (out / "half").write_bytes(b"x")
        raise RuntimeError("unexpected pos 576 vs 534")  # torch.save's message

    def room(root: Path) -> SimpleNamespace:
        return SimpleNamespace(free=0 if names(root / ".building") else 1 << 40)

    monkeypatch.setattr("compress.store.failures.shutil.disk_usage", room)
    with pytest.raises(CompressError, match=r"cannot write more \(No space left on device\)"):
        store.build(KEY, fail, describe={})


def test_leftovers_of_other_keys_go_and_their_work_stays(store: Store):
    other = store.root / ".building" / ("1" * 32)
    for part in ("out", "work", "damaged"):
        (other / part).mkdir(parents=True)
        (other / part / "file").touch()
    store.build(KEY, make, describe={})
    assert names(store.root / ".building") == [f"{'1' * 32}/work/file"]


def test_a_link_in_the_output_is_refused(store: Store, tmp_path: Path):
    def link(out: Path, work: Path) -> dict:
        (out / "link").symlink_to(tmp_path)
        return {}

    with pytest.raises(Exception, match="link is a link or a special file"):
        store.build(KEY, link, describe={})
    assert store.find(KEY) is None


def test_keys_are_stable_and_depend_on_everything():
    arguments = ("distill", 1, {"epochs": 3.0, "losses": ({"name": "é"},)}, {"teacher": "a"}, {"torch": "2.13"})
    assert key(*arguments) == "725fe6e4bb7e738dce27c2b067a87d87"
    others = [
        ("finetune", *arguments[1:]),
        ("distill", 2, *arguments[2:]),
        (*arguments[:2], {"epochs": 3.5, "losses": ({"name": "é"},)}, *arguments[3:]),
        (*arguments[:3], {"teacher": "b"}, arguments[4]),
        (*arguments[:3], {"task": "a"}, arguments[4]),
        (*arguments[:4], {"torch": "2.14"}),
    ]
    assert len({key(*arguments), *(key(*other) for other in others)}) == 7


def test_keys_do_not_depend_on_order_or_on_tuples():
    assert key("x", 1, {"a": 1, "b": (1, 2)}, {}, {}) == key("x", 1, {"b": [1, 2], "a": 1}, {}, {})
    with pytest.raises(ValueError, match="not JSON compliant"):
        key("x", 1, {"a": float("nan")}, {}, {})


def test_hashes_of_outside_files_and_folders(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"abc")
    (tmp_path / "a" / "sub").mkdir()
    (tmp_path / "a" / "sub" / "y").write_bytes(b"")
    assert hash_file(tmp_path / "a" / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    before = hash_folder(tmp_path / "a")
    (tmp_path / "a" / ".cache").touch()
    (tmp_path / "copy" / "sub").mkdir(parents=True)
    (tmp_path / "copy" / "x").symlink_to(tmp_path / "a" / "x")
    (tmp_path / "copy" / "sub" / "y").touch()
    assert hash_folder(tmp_path / "a") == before == hash_folder(tmp_path / "copy")
    (tmp_path / "copy" / "sub" / "y").rename(tmp_path / "copy" / "sub" / "z")
    assert hash_folder(tmp_path / "copy") != before
    with pytest.raises(CompressError, match="expected a folder, found a file"):
        hash_folder(tmp_path / "a" / "x")
    with pytest.raises(CompressError, match="expected a folder, found nothing"):
        hash_folder(tmp_path / "none")
    with pytest.raises(CompressError, match="none: no such file"):
        hash_file(tmp_path / "none")


def test_an_artefact_made_anew_takes_the_place_of_the_old_one(store: Store):
    old = store.build(KEY, make, describe={"kind": "test"})

    def other(out: Path, work: Path) -> dict:
        assert names(old.path) == sorted([*FILES, "manifest.json"])  # until the new one is done
        (out / "figures.json").write_bytes(b"2")
        return {"steps": 4}

    new = store.build(KEY, other, describe={"kind": "test"}, anew=True)
    assert (names(new.path), new.info) == (["figures.json", "manifest.json"], {"steps": 4})
    assert store.build(KEY, refuse, describe={}) == new == Store(store.root).find(KEY)


def test_what_fails_to_be_made_anew_leaves_the_old_one(store: Store):
    old = store.build(KEY, make, describe={"kind": "test"})
    with pytest.raises(AssertionError, match="built again"):
        store.build(KEY, refuse, describe={}, anew=True)
    assert Store(store.root).find(KEY) == old


def test_a_change_that_a_coarse_clock_hides_is_seen(store: Store, monkeypatch: pytest.MonkeyPatch):
    built = store.build(KEY, make, describe={})
    statuses = manifest.contents(built.path)
    newest = max(max(each.st_mtime_ns, each.st_ctime_ns) for each in statuses.values())
    monkeypatch.setattr("compress.store.artifacts.time.time_ns", lambda: newest + 10**9)
    monkeypatch.setattr(manifest, "contents", lambda folder: dict(statuses))
    assert store.find(KEY)
    (built.path / "model.bin").write_bytes(b"WEIGHTS" * 1000)
    assert store.find(KEY) is None and "altered" in str(store.last_problem)
