"""Latency of the plain and of the fast ONNX graph in their int8 forms, for a teacher and for students of the catalogue.

    python benchmarks/graphs.py --teacher minilm-l6 --student tiny-3l-384 --student tiny-3l-312 --out runs/graphs

Weights do not matter to latency: students are random, and the head of the teacher is. All int8 files are timed
against the teacher's plain fp32 graph by `compress bench`, interleaved, a process each, on one thread.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from compress.catalog import load_student
from compress.export import export_onnx
from compress.models.checkpoints import load_classifier, save_checkpoint
from compress.models.students import build_student, student_dimensions
from compress.pipeline.teachers import resolve_teacher
from compress.quantize import FILES, quantize_onnx
from compress.spec.stages import Quantize

LABELS = ("a", "b")
FORMS = (("plain", "dynamic"), ("fast", "dynamic"), ("fast", "static"), ("fast", "qdq"))
SHAPES = ("1x32", "1x128", "8x128")


def files(folder: Path) -> list[Path]:
    """The int8 files of the checkpoint `folder`, in a folder for each form; the fp32 graph of `plain` is beside its own."""
    made = []
    for graph, layout in FORMS:
        out = folder / f"{graph}-{layout}"
        export_onnx(folder, out, graph=graph, opset=20, task_name="none", labels=LABELS, kind="classification")
        quantize_onnx(out / "model.onnx", out, Quantize(), layout=layout, feeds=feeds())
        made.append(out / FILES[layout])
    return made


def feeds() -> list[dict[str, np.ndarray]]:
    """Random texts for the ranges, which have no say in the latency."""
    ids = np.random.default_rng(0).integers(1000, 20000, (8, 64))
    return [{"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm-l6")
    parser.add_argument("--student", action="append", default=[])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("runs/graphs"))
    arguments = parser.parse_args()
    source = resolve_teacher(arguments.teacher)
    if source.folder is None:
        raise SystemExit("expected a teacher with a checkpoint")
    teacher = load_classifier(source.folder, labels=LABELS, trained=False).eval()
    save_checkpoint(teacher, source.tokenizer, arguments.out / "teacher")
    timed = files(arguments.out / "teacher")
    for name in arguments.student:
        card = load_student(name).model_copy(update={"init": "random"})
        student = build_student(card, teacher, student_dimensions(card, source.dimensions(len(LABELS)))).eval()
        save_checkpoint(student, source.tokenizer, arguments.out / name)
        timed += files(arguments.out / name)
    shapes = [word for shape in SHAPES for word in ("--shape", shape)]
    program = Path(sys.executable).with_name("compress")
    command = [program, "bench", arguments.out / "teacher/plain-dynamic/model.onnx", *timed, *shapes]
    subprocess.run([*map(str, command), "--runs", str(arguments.runs), "--threads", "1"], check=True)


if __name__ == "__main__":
    main()
