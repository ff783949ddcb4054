"""Run the command line on a tiny teacher and task."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from compress.results import Result

HERE = Path(__file__)

TEACHER = """\
name: tiny
title: BERT, 4 layers × 32, random weights
licence: Apache-2.0
random: {layers: 4, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 32}
finetune: {learning_rate: 1.0e-3, max_steps: 3, batch_size: 8}
"""
TASK = """\
name: tiny-task
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
synthetic: {generator: sentiment, train: 120, dev: 40}
"""
TIMED = ("int8", "tinybert-int8-auto")  # a teacher alone, and a search; for timing, the others are the same

Run = Callable[[str], tuple[Path, Result]]


@cache
def _server() -> subprocess.Popen[str]:
    """Return the server of this test process; it exits when its standard input closes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE.parents[2])}
    command = [sys.executable, str(HERE.with_name("cli_child.py"))]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    atexit.register(server.communicate)
    return server


def compress(*arguments: object, cwd: Path, lines: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in a process forked from one that has imported torch; `lines` are its standard input."""
    server, words = _server(), list(map(str, arguments))
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        stdin, *files = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        stdin.write_text(lines, encoding="utf-8")
        server.stdin.write(f"{json.dumps([words, *map(str, (cwd, stdin, *files))])}\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(["compress", *words], code, *(file.read_text("utf-8") for file in files))


def result_of(*arguments: object, cwd: Path) -> Result:
    """Return the result of the command's one run, printed with `--json`."""
    done = compress(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)
    return Result.model_validate(document)


def arguments(recipe: str, *, timed: bool = True) -> tuple[str, ...]:
    """Return the words of the command that runs the recipe, with latency if it is in `TIMED`, unless `timed` is false."""
    # After three training steps every decision is close, so no flip goal could be met.
    goal = ("--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100")
    words = ("run", recipe, "--task", "task.yaml", "--teacher", "tiny.yaml", "--threads", "1")
    words += ("--bench-runs", "1") if timed and recipe in TIMED else ("--no-bench",)
    without_text = ("--set", "pretrain.enabled=false") if recipe.endswith("-pretrain") else ()
    return words + without_text + (goal if recipe.endswith("-auto") else ())


def is_quantized(result: Result) -> bool:
    """Return whether the recipe quantizes, after a check: if so, the last model has int8 operators and is compared with its fp32
    file; if not, it is that file."""
    wanted, final = any("quantize" in stage for stage in result.recipe["stages"]), result.final
    steps = sum(final.info.get(key, 0) for key in ("int8_matmuls", "int8_gathers"))
    actual = (final.precision, final.fidelity is not None, steps > 0)
    assert actual == (("int8", True, True) if wanted else ("fp32", False, False))
    return wanted


def check_layers(result: Result) -> None:
    """Check that the last model's similarity to the teacher has a row for each layer and one for the embeddings, or, for a static
    model, the reason why there are none."""
    sizes = {model.name: model.architecture for model in result.models if model.precision == "fp32"}
    teacher, *others = sizes
    similarity = result.similarity
    assert (similarity is not None) == bool(others)
    if similarity is None:
        return
    assert similarity.model == others[-1]
    if sizes[similarity.model].startswith("table"):
        assert similarity.left_out == ("states and attention, as static models have no layers",)
        assert not similarity.states
        return
    layers, columns = (int(sizes[name].partition(" x ")[0]) for name in (similarity.model, teacher))
    assert similarity.texts <= similarity.tokens and similarity.tokens
    assert (len(similarity.states), len(similarity.states[0])) == (layers + 1, columns + 1)
    assert (len(similarity.attention), len(similarity.attention[0])) == (layers, columns)
    assert similarity.states[0][0] > 0.5
