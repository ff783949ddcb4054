"""quantize: fp32 ONNX -> an int8 file for each requested precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ...files.paths import expand_home
from ...machine import cpu_name, isa, versions
from ...models.checkpoints.folders import load_tokenizer, pad_id
from ...models.dimensions import read_config
from ...quantize.methods import QUANTIZERS, int8_format, quantizer_of, spec_of_file
from ...quantize.quantizer import Quantizer
from ...quantize.weights import LONG, is_long
from ...quantize.word_blocks import check_blocks
from ...spec.kinds import KindName
from ...spec.quantization import Quantize
from ...spec.recipe import Stage
from ...stats.fidelity import differ, logit_difference
from ...tasks import TASK_KINDS, gold_of, headline, score
from ..plan import Context, Draft, Job, Kind, Node, Plan
from .calibration import (
    calibrated_on,
    calibration,
    evaluator,
    length_stratified,
    read_lines,
    refuse_reported,
)

if TYPE_CHECKING:
    from ...quantize.inc_tuning import Program

# Texts per batch, and padded tokens: the inner states of such a batch take 0.2 GB for BERT-base, and are held for two models.
_NOISE_TEXTS, _NOISE_TOKENS = 64, 512


class TuningFidelity(TypedDict):
    """An int8 model compared with its fp32 one on the tuning split: decisions that flip (None for a regression), mean |Δlogit|, and both
    scores in points."""

    examples: int
    flips: int | None
    mean_abs_logit_change: float
    fp32_tuning_score: float
    int8_tuning_score: float


def plan(draft: Draft, stage: Stage) -> None:
    model, spec = draft.current, stage.spec
    if not draft.sizes[model].layers and not draft.sizes[model].classes:
        _check_table(draft, spec, stage.id)
    inputs = {model: draft.latest[model], f"{model}-fp32": f"{model}-fp32"}
    for precision in spec.precisions:
        file, form = spec_of_file(spec, precision), int8_format(spec, precision)
        quantizer = quantizer_of(file)
        read = calibrated_on(draft, spec) if quantizer.calibrates(form) else {}
        described = quantizer.described(file, form)
        described |= {"precision": precision} if precision == "avx2" else {}  # its file has a name of its own
        described |= _machine(quantizer)
        draft.add(QUANTIZE, f"{model}-{precision}", model, spec, described, inputs=inputs, outside=read)
    draft.notes.extend(unread_fields(spec, stage.id))


def unread_fields(spec: Quantize, stage: str) -> list[str]:
    """Return a line for each field that is set to other than its default, and that no file of the spec depends on."""
    forms = {precision: int8_format(spec, precision) for precision in spec.precisions}
    files = {precision: spec_of_file(spec, precision) for precision in forms}
    read = frozenset[str]().union(*(quantizer_of(files[name]).read_fields(spec, form) for name, form in forms.items()))
    unread = [
        name
        for name, field in Quantize.model_fields.items()
        if name not in read | {"method"} and getattr(spec, name) != field.default
    ]
    return [f"{stage}.{name} has no effect: {_reason(spec, name)}" for name in unread]


def _reason(spec: Quantize, name: str) -> str:
    if name == "percentile" and spec.calibration != "percentile":
        return f"`calibration: {spec.calibration}` takes no percentile"
    readers = [f"`{method}`" for method, each in QUANTIZERS.items() if name in each.read_fields(spec, each.int8_format)]
    return f"method `{spec.method}` does not use it; {', '.join(readers)} {'does' if len(readers) == 1 else 'do'}"


def _check_table(draft: Draft, spec: Quantize, stage: str) -> None:
    """Check a sentence encoder without layers. CompressError: nothing of it would become int8, or there are no matmuls to choose among."""
    what = "a sentence encoder without layers is a table, with no matmuls"
    if quantizer_of(spec).needs_matmuls:
        raise draft.fails(
            stage, f"{what} for method `{spec.method}` to choose among: leave the method at `smoothquant`"
        )
    if not spec.embeddings:
        raise draft.fails(stage, f"{what}, and `embeddings: false` keeps it in fp32: leave that out")


def _machine(quantizer: Quantizer) -> dict[str, Any]:
    """Properties of this machine that a file depends on."""
    installed = {name: version for name, version in versions().items() if name in quantizer.packages}
    properties = {"libraries": installed} if installed else {}
    properties |= {"isa": list(isa())} if "isa" in quantizer.depends_on else {}
    return properties | ({"cpu": cpu_name()} if "cpu" in quantizer.depends_on else {})


def check(plan: Plan, node: Node[Quantize]) -> None:
    """Check that the packages that the method needs are installed, that words can have 4 bits, and that the calibration texts are
    suitable."""
    quantizer_of(node.spec).check_packages()
    sizes = plan.sizes_of(node)  # before the run a reduced vocabulary counts as many tokens as it may keep
    if node.spec.word_bits == 4 and is_long(sizes.vocabulary):
        check_blocks(sizes.embedding)
    if node.spec.calibration_text is not None:
        texts = read_lines(expand_home(node.spec.calibration_text), plan.task.spec)
        refuse_reported(node.spec.calibration_text, texts, plan.task)


def run(job: Job[Quantize]) -> dict[str, Any]:
    """Write an int8 file; return also how far its logits and inner tensors are from fp32 on the tuning split."""
    from ...evaluate import predict_onnx
    from ...quantize import quantize_onnx
    from ...quantize.noise import signal_to_noise
    from ...quantize.qat_params import Trained
    from ...runtime.folder import MODEL_FILES

    context, out = job.context, job.out
    checkpoint, source = job.inputs.values()
    precision, fp32_file = job.node.id.rpartition("-")[2], source.path / "model.onnx"
    name, spec, form = MODEL_FILES[precision], spec_of_file(job.spec, precision), int8_format(job.spec, precision)
    quantizer = quantizer_of(spec)
    tokenizer, pad = load_tokenizer(checkpoint.path), pad_id(read_config(checkpoint.path))
    tuning = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    feeds = calibration(context, spec, tokenizer, pad, job.node.outside) if quantizer.calibrates(form) else []
    info = quantize_onnx(
        fp32_file,
        out,
        spec,
        int8_format=form,
        feeds=feeds,
        evaluator=evaluator(context, spec, tokenizer, pad, job.work) if quantizer.evaluates else None,
        trained=Trained.read(checkpoint.path) if quantizer.trains else None,
        read_program=_program_of(checkpoint.path, context.kind),
        name=name,
    )
    if spec.word_bits == 4 and not info["int4_gathers"]:
        context.notice(
            f"{job.node.id}: word_bits: 4 bits are not used here, as no table of {LONG:,} rows or more is quantized"
        )
    fp32, int8 = (predict_onnx(path, tuning, pad, threads=context.threads) for path in (fp32_file, out / name))
    return {
        **info,
        "calibration_examples": sum(len(feed["input_ids"]) for feed in feeds),
        "fidelity": tuning_fidelity(fp32, int8, context),
        "signal_to_noise_db": signal_to_noise(
            fp32_file, out / name, length_stratified(tuning, pad, _NOISE_TEXTS, tokens=_NOISE_TOKENS)
        ),
    }


def _program_of(checkpoint: Path, kind: KindName) -> Callable[[Sequence[str], int], Program]:
    def read(inputs: Sequence[str], opset: int) -> Program:
        from ...export.program import read_program

        return read_program(checkpoint, inputs, opset, kind=kind)

    return read


def tuning_fidelity(fp32: np.ndarray, int8: np.ndarray, context: Context) -> TuningFidelity:
    """Compare logits [text, class], or [word, label], of the tuning split."""
    data, kind = context.task.data, TASK_KINDS[context.task.spec.kind]
    gold = gold_of(data.spec, data.tuning)
    scores = [headline(score(data.spec, data.labels, logits, gold)) for logits in (fp32, int8)]
    flips = int(differ(kind.answers(fp32), kind.answers(int8)).sum()) if kind.decisions else None
    return {
        "examples": len(fp32),
        "flips": flips,
        "mean_abs_logit_change": logit_difference(kind.logits(fp32), kind.logits(int8))[0],
        "fp32_tuning_score": scores[0],
        "int8_tuning_score": scores[1],
    }


QUANTIZE = Kind("quantize", 17, Quantize, run=run, plan=plan, check=check, libraries=("onnx", "onnxruntime"), onnx=True)
