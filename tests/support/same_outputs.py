"""Run every recipe with the code of two trees, and compare the files of their stages.

    python tests/support/same_outputs.py OLD NEW [--work DIR] [--recipes NAME ...]

OLD and NEW are checkouts (`git worktree add OLD COMMIT`). Each recipe that both have runs for a few steps on a tiny teacher, with
and without plain text, without latency. Lists what differs: files of stages by their SHA-256 (except logs, which contain times),
predictions, and keys. Exits with 1 if anything differs. For changes that should not change behaviour.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from recipe_runs import TASK, TEACHER

SENTENCES = ("the film is good .", "the story is not bad .", "a very long old film .")


def run(tree: Path, recipe: str, world: Path, *, text: bool) -> str | None:
    """Run the recipe; return the last line of its error output if it failed, else None."""
    goal = ["--set", "quantize.max_flips=100", "--set", "quantize.max_drop=100"] if recipe.endswith("-auto") else []
    corpus = ["--corpus", "text.txt"] if text else []
    command = [sys.executable, "-m", "compress", "run", recipe, "--task", "task.yaml", "--teacher", "tiny.yaml"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(tree)}
    out = ["--no-bench", "--threads", "1", "--out", f"{tree.name}-{'text' if text else 'plain'}"]
    done = subprocess.run(
        [*command, *corpus, *goal, *out], cwd=world, env=environment, capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def stages(root: Path, recipe: str) -> dict[str, dict[str, str]]:
    """Return stage -> file -> SHA-256 of the recipe's one run; `answers` are the logits."""
    (result,) = root.glob(f"{recipe}-tiny-tiny-task-*/result.json")
    hashes: dict[str, dict[str, str]] = {}
    for stage in json.loads(result.read_text())["stages"]:
        manifest = json.loads((root / ".store" / stage["key"] / "manifest.json").read_text())
        files = manifest["files"]
        hashes[stage["kind"]] = {
            name: entry if isinstance(entry, str) else entry["sha256"]
            for name, entry in sorted(files.items())
            if name != "log.jsonl"
        }
        hashes[stage["kind"]]["(key)"] = stage["key"]
    with np.load(result.with_name("predictions.npz")) as arrays:
        hashes["answers"] = {name: hashlib.sha256(arrays[name].tobytes()).hexdigest() for name in arrays.files}
    return hashes


def compare(old: dict[str, dict[str, str]], new: dict[str, dict[str, str]]) -> list[str]:
    lines = [f"{stage}: only one has it" for stage in old.keys() ^ new.keys()]
    for stage in old.keys() & new.keys():
        for name in sorted(old[stage].keys() | new[stage].keys()):
            if old[stage].get(name) != new[stage].get(name):
                lines.append(f"{stage}: {name} differs")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--recipes", nargs="*")
    options = parser.parse_args()
    world = options.work or Path(tempfile.mkdtemp())
    world.mkdir(exist_ok=True)
    (world / "tiny.yaml").write_text(TEACHER)
    (world / "task.yaml").write_text(TASK)
    documents = [" ".join(SENTENCES[(i + j) % 3] for j in range(4)) for i in range(60)]
    (world / "text.txt").write_text("\n\n".join(documents) + "\n")
    trees = [options.old.resolve(), options.new.resolve()]
    both = set.intersection(*({path.stem for path in (tree / "recipes").glob("*.yaml")} for tree in trees))
    recipes = options.recipes or sorted(both)
    failed = False
    for recipe in recipes:
        for text in (False, True):
            kind = "text" if text else "plain"
            problems = []
            for tree in trees:
                out = world / f"{tree.name}-{kind}"
                if not list(out.glob(f"{recipe}-tiny-tiny-task-*/result.json")):
                    problem = run(tree, recipe, world, text=text)
                    problems += [f"{tree.name}: {problem}"] if problem else []
            if len(problems) == 2 and problems[0].split(": ", 1)[1] == problems[1].split(": ", 1)[1]:
                print(f"{recipe} {kind}: both refuse: {problems[0]}", flush=True)
                continue
            if not problems:
                problems = compare(*(stages(world / f"{tree.name}-{kind}", recipe) for tree in trees))
            failed |= bool(problems)
            print(f"{recipe} {kind}: {'same' if not problems else ''}", flush=True)
            for line in problems:
                print(f"  {line}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
