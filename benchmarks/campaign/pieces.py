"""Cut files into pieces for transfers with a size limit, and write a script that joins them with Python alone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

_LIST = "pieces.json"
_JOINER = '''"""Put the files of this folder together again: python join.py"""

import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
listed = HERE / "pieces.json"
for name, entry in json.loads(listed.read_text(encoding="utf-8")).items():
    parts = [HERE / part for part in entry["parts"]]
    lost = [part.name for part in parts if not part.is_file()]
    if lost:
        sys.exit(f"{name}: {', '.join(lost)} is missing; nothing of it was joined")
    whole, digest = (HERE / name).with_name((HERE / name).name + ".joining"), hashlib.sha256()
    with whole.open("wb") as out:
        for part in parts:
            data = part.read_bytes()
            digest.update(data)
            out.write(data)
    if digest.hexdigest() != entry["sha256"]:
        whole.unlink()
        sys.exit(f"{name}: a piece was altered; nothing of it was joined")
    whole.replace(HERE / name)
    print(name)
for entry in json.loads(listed.read_text(encoding="utf-8")).values():
    for part in entry["parts"]:
        (HERE / part).unlink()
listed.unlink()
Path(__file__).unlink()
'''


def cut(folder: Path, size: int) -> list[str]:
    """Replace every file of `folder` above `size` bytes with pieces beside it; write `join.py` and its list into `folder`."""
    entries: dict[str, dict[str, object]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > size):
        data = path.read_bytes()
        parts = [path.with_name(f"{path.name}.{number:03}") for number in range(-(-len(data) // size))]
        for number, part in enumerate(parts):
            part.write_bytes(data[number * size : (number + 1) * size])
        names = [part.relative_to(folder).as_posix() for part in parts]
        entries[path.relative_to(folder).as_posix()] = {"sha256": hashlib.sha256(data).hexdigest(), "parts": names}
        path.unlink()
    if entries:
        (folder / _LIST).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
        (folder / "join.py").write_text(_JOINER, encoding="utf-8")
    return list(entries)
