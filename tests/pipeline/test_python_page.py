"""The code in docs/python.md runs, and the page names every option."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

import compress
from compress import Options
from compress.pipeline import BenchSettings

pytestmark = pytest.mark.end_to_end

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")


def test_its_programs_run(
    tmp_path: Path,
    tiny_checkpoint: Callable[[str], Path],
    toy_tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="")
    (tmp_path / "teacher").rename(tmp_path / "my-bert")
    (tmp_path / "task.yaml").rename(tmp_path / "my-task.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("compress.run", partial(compress.run, threads=1, bench=BenchSettings(((1, 16),), runs=1)))
    first, listener, second = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    first = first.replace('["quantize.method', '["finetune.max_steps=2", "quantize.method')  # keeps training short
    first = first.replace('teacher="./my-bert")', 'teacher="./my-bert", overrides=["finetune.max_steps=2"])')
    exec(first, {})
    exec(second, {})
    lines = capsys.readouterr().out.splitlines()
    names: dict[str, Any] = {}
    exec(listener, names)
    compress.run(
        "int8", tasks="my-task.yaml", teacher="./my-bert", listener=names["Log"](), overrides=["finetune.max_steps=2"]
    )
    heard = capsys.readouterr().out.splitlines()
    assert heard and all(line.startswith("cached ") for line in heard)
    assert lines[0].startswith("['finetune teacher', 'export teacher-fp32', 'quantize teacher-int8']")
    assert [line.split()[:2] for line in lines[1:3]] == [["teacher", "fp32"], ["teacher", "int8"]]
    assert "False" not in lines[-4]
    assert lines[-1] == "(1, 2)"


def test_every_option_is_named() -> None:
    named = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")))
    )
    assert named == set(Options.__annotations__)
