"""Measure the latency of the int8 forms of the plain and the fast ONNX graph, for a teacher and for students of the catalogue.

    python benchmarks/graphs.py --teacher minilm-l6 --student tiny-3l-384 --student tiny-3l-312 --out runs/graphs

Weights do not affect latency: students have random weights, and so has the teacher's head. `compress bench` times all int8 files against
the teacher's fp32 graph (of the first form: the plain one, if included), interleaved, in a process each, with one thread.

    python benchmarks/graphs.py --form fast-dynamic --form fast-static --opset 20 --opset 23 --out runs/opsets

    python benchmarks/graphs.py --teacher deberta-v3-small --form plain-dynamic --form plain-static --out runs/graphs-deberta

With two opsets the fp32 graphs are timed too, and a second table has each file's time in the first opset over that in the second.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import add_json, code_line, write_json

from compress.export import export_onnx
from compress.models.cards import load_student
from compress.models.checkpoints.folders import load_classifier, save_checkpoint
from compress.models.dimensions import dimensions
from compress.models.random_models import random_classifier
from compress.models.students import build_student, student_dimensions
from compress.pipeline.plan.teachers import resolve_teacher
from compress.processes.children import run
from compress.quantize import FILES, quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

LABELS = ("a", "b")
FORMS = (("plain", "dynamic"), ("plain", "static"), ("fast", "dynamic"), ("fast", "static"), ("fast", "qdq"))
NAMES = tuple("-".join(form) for form in FORMS)
TRAINED = "minilm-l6"
DEBERTA = {
    "model_type": "deberta-v2", "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "relative_attention": True,
    "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
    "position_biased_input": False,
}  # fmt: skip
RANDOM: dict[
    str, dict[str, Any]
] = {  # on top of transformers' defaults, which are the base models' for BERT and ModernBERT
    "bert-base": {"model_type": "bert"},
    "modernbert-base": {"model_type": "modernbert"},
    "deberta-v3-small": {**DEBERTA, "num_hidden_layers": 6},
    "deberta-v3-base": {**DEBERTA, "num_hidden_layers": 12},
    "xlnet-base": {"model_type": "xlnet", "d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072},
}
SHAPES = ("1x32", "1x128", "8x128")
_TEXTS = 64  # of 128 random tokens each, for comparing int8 with fp32
BENCH_SECONDS = 4 * 3600.0  # for all files together


def find_teacher(name: str) -> tuple[Any, Any]:
    """Return (classifier, tokenizer)."""
    source = resolve_teacher(TRAINED if name in RANDOM else name)
    if source.folder is None:
        raise SystemExit(f"expected a teacher with a checkpoint; {name} has none")
    if name in RANDOM:
        torch.manual_seed(0)
        model: Any = random_classifier(RANDOM[name], kind="classification", labels=LABELS)
        return model.eval(), source.tokenizer
    return load_classifier(source.folder, kind="classification", labels=LABELS, trained=False).eval(), source.tokenizer


def files(folder: Path, forms: tuple[tuple[str, str], ...], opsets: list[int]) -> list[Path]:
    """Export and quantize the checkpoint `folder`, into a folder for each form and opset; return the int8 files. Each has its fp32 graph
    beside it. With several opsets, also return the fp32 graph once per graph kind and opset."""
    paths, kinds = [], set()
    for (graph, int8_format), opset in product(forms, opsets):
        out = folder / f"{graph}-{int8_format}-{opset}"
        info = export_onnx(
            folder, out, graph=graph, opset=opset, task_name="none", labels=LABELS, kind="classification"
        )
        int8 = quantize_onnx(
            out / "model.onnx", out, Quantize(method="dynamic"), int8_format=int8_format, feeds=feeds()
        )
        print(f"{out.name}: {describe(info, int8)}")
        if len(opsets) > 1 and (graph, opset) not in kinds:
            paths.append(out / "model.onnx")
            kinds.add((graph, opset))
        paths.append(out / FILES[int8_format])
    return paths


def describe(info: dict[str, Any], int8: dict[str, Any]) -> str:
    """Describe an export and its quantization: errors, and which matmuls are int8."""
    return (
        f"largest error of a logit to torch's {max(info['parity_max_abs_error'].values()):.1e}; matmuls by weights: "
        f"{int8['int8_matmuls']} int8, {int8['weight_only_matmuls']} with int8 weights, {int8['fp32_matmuls']} fp32; "
        f"{int8['activation_matmuls']} of activations"
    )


def feeds() -> list[dict[str, np.ndarray]]:
    """Return random texts for calibration: ranges do not affect latency."""
    ids = np.random.default_rng(0).integers(1000, 20000, (8, 64))
    return [{"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--teacher", default=TRAINED, help=f"a card or a checkpoint's folder; with random weights: {', '.join(RANDOM)}"
    )
    parser.add_argument("--student", action="append", default=[])
    parser.add_argument("--form", action="append", choices=NAMES, help="default: all")
    parser.add_argument(
        "--opset", action="append", type=int, help="of the fast graph, 20 to 23; once or twice; default: 20"
    )
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("runs/graphs"))
    add_json(parser)
    arguments = parser.parse_args()
    forms = tuple(form for form in FORMS if "-".join(form) in (arguments.form or NAMES))
    opsets = arguments.opset or [20]
    if len(set(opsets)) != len(opsets) or len(opsets) > 2:
        parser.error("--opset: one, or two that differ")
    teacher, tokenizer = find_teacher(arguments.teacher)
    save_checkpoint(teacher, tokenizer, arguments.out / "teacher")
    timed = files(arguments.out / "teacher", forms, opsets)
    sizes = dimensions(teacher.config.to_dict(), classes=len(LABELS))
    for name in arguments.student:
        card = load_student(name).model_copy(update={"init": "random"})
        student: Any = build_student(card, teacher, student_dimensions(card, sizes))
        save_checkpoint(student.eval(), tokenizer, arguments.out / name)
        timed += files(arguments.out / name, forms, opsets)
    for name, size in sizes_of(timed, arguments.out).items():
        print(f"{name}: {size / 1e6:.2f} MB")
    for name, (mean, flips) in fidelity(timed, arguments.out).items():
        print(f"{name}: mean |Δlogit| {mean:.4f} of a standard deviation, {flips} of {_TEXTS} decisions flip")
    shapes = [word for shape in SHAPES for word in ("--shape", shape)]
    program = Path(sys.executable).with_name("compress")
    baseline = arguments.out / "teacher" / f"{'-'.join(forms[0])}-{opsets[0]}" / "model.onnx"
    others = [path for path in timed if path != baseline]
    command = [program, "bench", baseline, *others, *shapes, "--runs", str(arguments.runs), "--threads", "1", "--json"]
    measured = json.loads(run(command, BENCH_SECONDS))
    write_json(arguments.json, {"bytes": sizes_of(timed, arguments.out), "bench": measured})
    print(f"{code_line()}\n\n{table(measured['latency'])}")
    if len(opsets) > 1:
        paths = dict(zip([baseline, *others], measured["latency"], strict=False))
        print(f"\n{opset_table(paths, arguments.out, *opsets)}")


def fidelity(paths: list[Path], folder: Path) -> dict[str, tuple[float, int]]:
    """Compare each file in `folder` with the fp32 graph beside it on random texts. Return file -> (mean absolute difference of logits in
    standard deviations of each logit over texts, number of decisions that differ)."""
    ids = np.random.default_rng(1).integers(1000, 20000, (_TEXTS, 1, 128))
    differences = {}
    for path in paths:
        logits = [np.concatenate([answer(file, text) for text in ids]) for file in (path.parent / "model.onnx", path)]
        mean = float((np.abs(logits[1] - logits[0]) / logits[0].std(0)).mean())
        differences[path.relative_to(folder).as_posix()] = mean, int((logits[0].argmax(1) != logits[1].argmax(1)).sum())
    return differences


@cache
def opened(path: Path) -> Any:
    return open_session(path, threads=1)


def answer(path: Path, ids: np.ndarray) -> np.ndarray:
    """Return the logits [text, class]."""
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    session = opened(path)
    return np.asarray(session.run(["logits"], {value.name: inputs[value.name] for value in session.get_inputs()})[0])


def sizes_of(paths: list[Path], folder: Path) -> dict[str, int]:
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}


def table(latency: list[dict[str, Any]]) -> str:
    """Return p50 of CPU time, with the speedup over the baseline in brackets."""
    lines = [f"| {' | '.join(('model', *(f'{shape}, CPU ms' for shape in SHAPES)))} |", "|-|" + "-:|" * len(SHAPES)]
    for entry in latency:
        cells = [f"{row['cpu_p50']:.2f} ({row['cpu_speedup']:.2f}×)" for row in entry["latency"]]
        lines.append(f"| {' | '.join((entry['name'], *cells))} |")
    return "\n".join(lines)


def opset_table(latency: dict[Path, dict[str, Any]], folder: Path, opset: int, other: int) -> str:
    """Return each file's p50 of CPU time in `opset`, divided by that of the same file in `other`."""
    title = f"CPU time in opset {opset} / {other}"
    lines = [f"| {' | '.join((title, *SHAPES))} |", "|-|" + "-:|" * len(SHAPES)]
    for path, entry in latency.items():
        form, _, end = path.parent.name.rpartition("-")
        if end != str(opset):
            continue
        beside = latency[path.parent.with_name(f"{form}-{other}") / path.name]
        ratios = [
            f"{mine['cpu_p50'] / its['cpu_p50']:.3f}"
            for mine, its in zip(entry["latency"], beside["latency"], strict=True)
        ]
        name = path.parent.relative_to(folder).parent.as_posix()
        precision = "fp32" if path.name == "model.onnx" else f"{form.partition('-')[2]} int8"
        lines.append(f"| {' | '.join((f'{name}, {precision}', *ratios))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
