"""What a folder must contain, and the one-line errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runtime_toys import bag, describe

from compress.errors import CompressError
from compress.models.families import FAMILIES
from compress.runtime import Classifier
from compress.runtime.folder import POSITIONS_AFTER_PADDING


def test_precision_int8_where_there_is_one(folder: Path) -> None:
    assert Classifier(folder).precision == "fp32"
    (folder / "model_quantized.onnx").write_bytes((folder / "onnx" / "model.onnx").read_bytes())
    model = Classifier(folder)
    assert (model.precision, model.model) == ("int8", folder / "model_quantized.onnx"), (
        "optimum puts it beside the config"
    )
    assert Classifier(folder, precision="fp32").model == folder / "onnx" / "model.onnx"
    with pytest.raises(CompressError, match="expected int8, fp32, avx2 or qdq, found 'int4'"):
        Classifier(folder, precision="int4")


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def test_a_form_that_the_bundle_lists_and_lacks_is_not_replaced_by_another(folder: Path) -> None:
    described = json.loads((folder / "bundle.json").read_text()) if (folder / "bundle.json").exists() else {}
    (folder / "bundle.json").write_text(json.dumps(described | {"models": {"fp32": {}, "int8": {}}}))
    with pytest.raises(CompressError, match=r"expected onnx/model_quantized\.onnx, found neither .*; it has fp32"):
        Classifier(folder)
    assert Classifier(folder, precision="fp32").precision == "fp32"


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json: no such file"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json: no such file"),
        (
            lambda folder: (folder / "onnx" / "model.onnx").unlink(),
            r"expected onnx/model_quantized\.onnx or onnx/model\.onnx",
        ),
        (_write("config.json", "{"), r"config\.json: cannot be read as JSON"),
        (_write("config.json", "[]"), r"config\.json: expected a JSON object, found list"),
        (_write("config.json", '{"id2label": {"0": "a", "2": "b"}}'), "id2label: expected names for the ids 0, 1, 2"),
        (_write("config.json", '{"id2label": {"0": "a", "1": "a"}}'), "id2label: expected different names"),
        (_write("config.json", '{"id2label": {"0": "a", "1": "b"}}'), "do not belong together"),
        (
            _write("config.json", '{"problem_type": "ranking"}'),
            "problem_type: expected regression or multi_label_classification or single_label_classification, found ranking",
        ),
        (_write("config.json", '{"num_labels": "two"}'), "num_labels: expected a whole number, found 'two'"),
        (_write("config.json", '{"num_labels": 1000001}'), "num_labels: expected at most 1,000,000 without names"),
        (
            _write("config.json", '{"num_labels": 3, "pad_token_id": -1}'),
            "pad_token_id: expected a whole number, found -1",
        ),
        (_write("tokenizer.json", "{}"), r"tokenizer\.json: not a tokenizer"),
        (_write("onnx/model.onnx", "not a graph"), r"model\.onnx: not an ONNX file"),
        (_write("bundle.json", '{"max_length": "many"}'), r"bundle\.json: max_length: expected tokens, found 'many'"),
        (
            _write("bundle.json", f'{{"max_length": {10**30}}}'),
            r"bundle\.json: max_length: expected tokens, found 10{30}",
        ),
        (
            _write("bundle.json", '{"text_columns": ["a", "b", "c"]}'),
            r"bundle\.json: text_columns: expected at most 2 for this kind of model, found 3; ship or download",
        ),
        (_write("bundle.json", '{"max_length": 2}'), "max_length is 2; expected more than the 2 special tokens"),
    ],
)
def test_a_damaged_folder_is_one_line_that_names_the_file(folder: Path, damage: Callable, expected: str) -> None:
    damage(folder)
    with pytest.raises(CompressError, match=expected) as caught:
        Classifier(folder).predict("word")
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="expected a bundle's folder, found nothing"):
        Classifier(tmp_path / "none")


def test_a_graph_that_onnxruntime_refuses_prints_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes().replace(b"ReduceSum", b"ReduceXum"))
    with pytest.raises(CompressError, match="ONNX Runtime cannot load it"):
        Classifier(folder)
    assert capfd.readouterr() == ("", "")


def test_a_graph_with_other_inputs_is_refused(tmp_path: Path) -> None:
    folder = bag(tmp_path / "x", inputs=("input_ids", "attention_mask", "pixel_values"))
    with pytest.raises(CompressError, match="found pixel_values"):
        Classifier(folder)


def test_texts_are_cut_to_the_tightest_limit_that_the_folder_names(folder: Path) -> None:
    long, cut = " ".join(["a"] * 500), " ".join(["a"] * 22)
    model = Classifier(folder)
    np.testing.assert_array_equal(model.logits(long), model.logits(cut))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 10}')
    assert Classifier(folder).settings.max_length == 10
    describe(folder, max_length=7)
    assert Classifier(folder).settings.max_length == 7
    (folder / "bundle.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1e30}')
    assert Classifier(folder).settings.max_length == 24


@pytest.mark.parametrize(("padding", "longest"), [(1, 24), (3, 22), (None, 24)])
def test_rows_of_the_table_of_positions_up_to_the_paddings_are_for_no_token(
    folder: Path, padding: int | None, longest: int
) -> None:
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1e30}')
    config = json.loads((folder / "config.json").read_text()) | {"max_position_embeddings": 26, "pad_token_id": padding}
    for family in POSITIONS_AFTER_PADDING:
        (folder / "config.json").write_text(json.dumps(config | {"model_type": family}))
        assert Classifier(folder).settings.max_length == longest
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
    assert Classifier(folder).settings.max_length == 26


def test_families_that_count_positions_after_padding_are_those_of_the_registry() -> None:
    assert set(POSITIONS_AFTER_PADDING) == {
        name for name, family in FAMILIES.items() if family.embeddings.positions_after_padding
    }
