"""Quantize a fine-tuned checkpoint of your own on your own task, ship the bundle and check it on this CPU."""

from __future__ import annotations

import argparse

import scripts

import compress
from compress.bundle import ship, verify


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", help="a task file, such as reviews/reviews.yaml beside this script")
    parser.add_argument("checkpoint", help="folder of a fine-tuned classifier in safetensors")
    parser.add_argument("--out", type=scripts.folder, default="my-int8", help="folder for the runs and the bundle")
    options = parser.parse_args()

    runs = options.out / "runs"
    (result,) = compress.run("int8", tasks=options.task, teacher=options.checkpoint, root=runs, progress=True)
    fp32, int8 = result.models[0], result.final
    print(f"fp32 {fp32.headline:.2f} points in {fp32.file_bytes / 1e6:.2f} MB")
    print(f"int8 {int8.headline:.2f} points in {int8.file_bytes / 1e6:.2f} MB")
    if int8.fidelity is not None:
        print(f"{int8.fidelity.flips} of {int8.fidelity.examples} decisions differ")

    report = verify(ship(runs / result.run, options.out / "bundle", store=runs / ".store", force=True))
    for check in report.checks:
        print("ok  " if check.passed else "FAIL", check.name)


if __name__ == "__main__":
    scripts.run(main)
