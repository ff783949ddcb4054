"""Plant twenty faults, one at a time, in a copy of the tree, and report whether `make test test-e2e` notices each.

    python tests/support/planted_faults.py [NUMBER…]

Prints one line for each fault: `caught` and the first test that failed, or `MISSED`. Exits with 1 if any was missed. Each fault
runs only the tests in its own folders, so that the list takes minutes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """`right` occurs once in `file` of the package and is replaced by `wrong`; `tests` should notice."""

    name: str
    file: str
    right: str
    wrong: str
    tests: str


FAULTS = (
    Fault("soft targets without T²", "losses/soft_target.py", "temperature**2 * F", "F", "tests/losses"),
    Fault(
        "relations count padded queries",
        "losses/relation_kl.py",
        "mean_over_tokens(distance, mask)",
        "mean_over_tokens(distance, mask.new_ones(mask.shape))",
        "tests/losses",
    ),
    Fault(
        "weight decay on biases and norms", "training/loop.py", "_decays(name, p) is decays", "decays", "tests/training"
    ),
    Fault("a worse checkpoint is kept", "training/loop.py", "score > best", "score < best", "tests/training"),
    Fault(
        "warm-up begins at zero",
        "training/schedule.py",
        "(step + 1) / (warmup + 1)",
        "step / (warmup + 1)",
        "tests/training",
    ),
    Fault(
        "top layers are the bottom ones",
        "models/layer_maps.py",
        "(m, m + teacher_layers - student_layers)",
        "(m, m)",
        "tests/models",
    ),
    Fault(
        "a student layer is copied from the one before",
        "models/students/copying.py",
        "teacher_layers.path.format(block)",
        "teacher_layers.path.format(max(block - 1, 0))",
        "tests/models",
    ),
    Fault(
        "special tokens are masked",
        "corpus/masking.py",
        "np.where(special, 1.0, draws)",
        "draws",
        "tests/corpus tests/models/test_masked_lm.py",
    ),
    Fault(
        "held-out text is trained on",
        "corpus/batches.py",
        "train.count, held.count, held.first = self.count - count,",
        "train.count, held.count, held.first = self.count,",
        "tests/corpus tests/pipeline/test_pretrain.py",
    ),
    Fault(
        "sources may stand on both sides of the tuning split",
        "tasks/loading/tuning.py",
        "enumerate(_groupings(split, goal))",
        "enumerate([[[row] for row in range(len(split))]])",
        "tests/tasks",
    ),
    Fault(
        "of several trainings the worst is chosen",
        "pipeline/stages/choose.py",
        "best = max(candidates,",
        "best = min(candidates,",
        "tests/pipeline/stages/test_choose_runs.py",
    ),
    Fault(
        "differences have the other sign",
        "stats/significance.py",
        "points, (low, high) = observed.mean(), _interval_ends(observed, resampled, shared, largest)",
        "points, (low, high) = -observed.mean(), _interval_ends(-observed, -resampled, shared, largest)",
        "tests/stats/test_significance.py tests/report",
    ),
    Fault(
        "calibration reads the reported split",
        "pipeline/stages/quantize.py",
        'context.task.encoded("tuning",',
        'context.task.encoded("dev",',
        "tests/pipeline tests/test_split_guard.py",
    ),
    Fault(
        "the largest weight is beyond int8",
        "quantize/weights.py",
        "largest / np.float32(2 ** (bits - 1) - 1)",
        "largest / np.float32(2 ** (bits - 1))",
        "tests/quantize",
    ),
    Fault(
        "the two values of a byte change places",
        "quantize/word_blocks.py",
        "(16 * upper + lower + 8)",
        "(16 * lower + upper + 8)",
        "tests/quantize/test_word_blocks.py",
    ),
    Fault(
        "the zero point has the other sign",
        "quantize/ranges.py",
        "np.rint(-low / scale)",
        "np.rint(low / scale)",
        "tests/quantize",
    ),
    Fault(
        "parity lets NaN pass",
        "export/parity.py",
        "~(by_example <= tolerance * scale)",
        "by_example > tolerance * scale",
        "tests/export",
    ),
    Fault(
        "keys leave libraries out",
        "store/hashing.py",
        '"libraries": libraries,',
        '"libraries": {},',
        "tests/test_store.py tests/pipeline",
    ),
    Fault(
        "padding takes part in attention",
        "runtime/batches.py",
        'pad_id if name == "input_ids" else 0',
        'pad_id if name == "input_ids" else 1',
        "tests/runtime",
    ),
    Fault(
        "a damaged artefact is taken as it is",
        "store/artifacts.py",
        'manifest.verify(folder, document["files"])',
        "pass",
        "tests/test_store.py tests/recipes",
    ),
    Fault(
        "int8 is compared with the teacher",
        "pipeline/results/assemble.py",
        'data, reference = outputs.reported.data, f"{model.name}-fp32"',
        'data, reference = outputs.reported.data, "teacher-fp32"',
        "tests/pipeline tests/recipes",
    ),
    Fault(
        "the runtime answers in the order of lengths",
        "runtime/batches.py",
        "yield order[start:end]",
        "yield np.arange(start, end)",
        "tests/runtime",
    ),
)


def plant(fault: Fault, tree: Path) -> None:
    path = tree / "compress" / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise SystemExit(f"{fault.file}: {fault.right!r} stands {text.count(fault.right)} times, expected once")
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")


def noticed(fault: Fault) -> str | None:
    """Return the first test that failed, or None if all passed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__"))
        plant(fault, tree)
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *fault.tests.split()]
        environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode != 1 or failed is None:
        raise SystemExit(
            f"{fault.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return failed[1]


def main(numbers: list[str]) -> int:
    missed = 0
    for number, fault in enumerate(FAULTS, 1):
        if numbers and str(number) not in numbers:
            continue
        test = noticed(fault)
        missed += test is None
        print(f"{number:2}  {'MISSED' if test is None else f'caught by {test}'}: {fault.name}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
