"""The quantization methods as records: what recipes and plans read from them, and errors that are raised before any work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.pipeline.request import load_recipe
from compress.quantize.methods import QUANTIZERS, int8_format, quantizer_of, spec_of_file
from compress.spec.quantization import Quantize

RECIPE = "name: r\ntitle: R\nstages:\n- finetune\n- export\n- quantize: {}\n"


def mistakes(folder: Path, quantize: str) -> list[str]:
    (folder / "r.yaml").write_text(RECIPE.format("{" + quantize + "}"))
    with pytest.raises(CompressError) as caught:
        load_recipe(folder / "r.yaml")
    return [line.rpartition("r.yaml:")[2] for line in str(caught.value).splitlines()]


@pytest.mark.parametrize("name", list(QUANTIZERS))
def test_a_method_says_what_its_files_depend_on(name: str) -> None:
    quantizer, spec = QUANTIZERS[name], Quantize(method=name, portable=True, avx2=True)
    assert quantizer.name == name
    assert quantizer.unused <= set(Quantize.model_fields)
    assert set(quantizer.other_files.values()) <= set(QUANTIZERS)
    for precision in spec.precisions:
        file = spec_of_file(spec, precision)
        assert file.reduce_range == (precision == "avx2")
        described = quantizer_of(file).described(file, int8_format(spec, precision))
        assert described["format"] == ("qdq" if precision == "qdq" else quantizer_of(file).int8_format)
        assert not described.keys() & {"portable", "avx2", "calibration_text"}


def test_a_mistake_in_a_method_is_told_beside_the_others_with_its_line(tmp_path: Path) -> None:
    problems = mistakes(tmp_path, "method: statics, percentile: 5")
    assert problems[0].startswith("6: stages[2].quantize.method: expected one of `dynamic`, ")
    assert problems[0].endswith("found the text 'statics'; did you mean `static`?")
    assert problems[1].startswith("6: stages[2].quantize.percentile: ")
    (problem,) = mistakes(tmp_path, "method: inc-static, reduce_range: true")
    assert problem.startswith("6: stages[2].quantize.reduce_range: neural-compressor's weights have 8 bits")
    (problem,) = mistakes(tmp_path, "method: qat")
    assert problem.startswith("6: stages[2].quantize.method: qat uses the ranges of a `quantize_aware` stage")


def test_what_is_made_in_python_is_checked_too() -> None:
    with pytest.raises(CompressError, match="did you mean `static`"):
        quantizer_of(Quantize(method="statics"))
    with pytest.raises(CompressError, match=r"quantize\.reduce_range: neural-compressor's weights have 8 bits"):
        quantizer_of(Quantize(method="inc-static", reduce_range=True))


def test_the_records_import_neither_onnx_nor_torch() -> None:
    code = "import sys, compress.quantize.methods; print(set(sys.modules) & {'onnx', 'onnxruntime', 'torch', 'numpy'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
