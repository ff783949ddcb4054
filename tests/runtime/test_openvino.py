"""OpenVINO as the runtime: the same answers, and a one-line error if it is missing."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from runtime_toys import SINGLES, bag

from compress.errors import CompressError
from compress.runtime import Classifier
from compress.runtime.openvino import find_openvino_model


def test_without_the_package_one_line_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # importing it fails, as if it were not installed
    with pytest.raises(CompressError) as caught:
        Classifier(folder, runtime="openvino")
    assert str(caught.value) == ("runtime openvino: the package is not installed; pip install openvino")


def test_the_qdq_file_is_taken_where_there_is_one(folder: Path) -> None:
    plain, qdq = folder / "onnx" / "model.onnx", folder / "onnx" / "model_qdq.onnx"
    assert find_openvino_model(folder, None) == ("fp32", plain)
    with pytest.raises(CompressError, match=r"expected onnx/model_quantized\.onnx"):
        find_openvino_model(folder, "int8")
    qdq.write_bytes(plain.read_bytes())
    assert find_openvino_model(folder, None) == ("qdq", qdq)
    assert find_openvino_model(folder, "qdq") == ("qdq", qdq)
    assert find_openvino_model(folder, "fp32") == ("fp32", plain)


def test_the_same_answers_in_openvino(folder: Path) -> None:
    model = Classifier(folder, runtime="openvino", threads=1)
    assert (model.runtime, model.precision_hint) == ("openvino", "f32")
    np.testing.assert_allclose(model.logits(SINGLES), Classifier(folder).logits(SINGLES), rtol=1e-4, atol=1e-4)


def test_threads_may_share_it(folder: Path) -> None:
    model = Classifier(folder, runtime="openvino", threads=1)
    expected = [model.logits([text] * (i + 1)) for i, text in enumerate(SINGLES)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            logits = pool.map(lambda i: model.logits([SINGLES[i]] * (i + 1)), range(len(SINGLES)))
            for one, other in zip(logits, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_the_hint_is_what_it_computes_in(folder: Path) -> None:
    """On a CPU without bf16 it falls back, and the classifier reports that."""
    import openvino

    model = Classifier(folder, runtime="openvino", precision_hint="bf16")
    able = "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    assert model.precision_hint == ("bf16" if able else "f32")


def test_what_openvino_refuses_is_one_line(folder: Path, tmp_path: Path) -> None:
    path = folder / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes().replace(b"ReduceSum", b"ReduceSxm"))
    with pytest.raises(CompressError, match="OpenVINO cannot load it") as caught:
        Classifier(folder, runtime="openvino")
    assert "\n" not in str(caught.value)
    with pytest.raises(CompressError, match="found pixel_values"):
        Classifier(bag(tmp_path / "x", inputs=("input_ids", "attention_mask", "pixel_values")), runtime="openvino")


def test_a_prediction_without_it_does_not_look_for_it(folder: Path) -> None:
    script = (
        "import sys\nsys.modules['openvino'] = None\nfrom compress.runtime import Classifier\n"
        "assert Classifier(sys.argv[1]).predict('a text')[0].label"
    )
    subprocess.run([sys.executable, "-c", script, folder], check=True)
