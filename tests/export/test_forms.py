"""The traced forms of DeBERTa and XLNet, against transformers' classifiers, and which matmuls become int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from family_teachers import LABELS
from plain_teachers import LAYERS, POSITIONS, plain_classifier, plain_teacher

from compress.errors import CompressError
from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.export.forms import FORMS
from compress.export.tracing import describe, example
from compress.quantize import quantize_onnx
from compress.quantize.checking import STACKED
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

pytestmark = pytest.mark.end_to_end

TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification"}
SHAPES = [(1, 1), (1, 2), (2, 7), (3, 19), (5, POSITIONS)]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("deberta-v2", {}),
    ("deberta-v2", {"share_att_key": False, "position_buckets": -1}),
    ("deberta-v2", {"position_buckets": 6, "max_relative_positions": 20}),
    ("deberta-v2", {"position_biased_input": True, "type_vocab_size": 2, "pooler_hidden_act": "tanh"}),
    ("xlnet", {}),
    ("xlnet", {"clamp_len": 4, "ff_activation": "relu"}),
]


@pytest.mark.parametrize(("family", "fields"), VARIANTS)
def test_the_form_computes_what_the_model_does(family: str, fields: dict[str, Any]):
    """For batches of any length, with ragged padding."""
    model = plain_classifier(family, **fields)
    form, traced = FORMS[family](model).eval(), describe(model)
    for batch, length in SHAPES:
        inputs = example(traced, batch, length)
        with torch.no_grad():
            torch.testing.assert_close(
                form(**inputs), model(**inputs).logits, rtol=0, atol=2e-6
            )  # fp32 sums in another order


def test_every_distance_has_the_bucket_that_transformers_gives_it():
    """At published sizes, where the logarithm matters."""
    fields: dict[str, Any] = {"position_buckets": 256, "max_position_embeddings": 512}
    model = plain_classifier("deberta-v2", **fields)
    form: Any = FORMS["deberta-v2"](model)
    buckets = model.deberta.encoder.get_rel_pos(torch.empty(1, 512, 1))[0]
    places = torch.arange(512)
    distances = places[:, None] - places + 511
    assert torch.equal(form.deberta.rows_of_keys[distances], (buckets + 256).clamp(0, 511))
    assert torch.equal(form.deberta.rows_of_queries[distances], (256 - buckets).clamp(0, 511))


@pytest.fixture(scope="module", params=["deberta-v2", *slow("xlnet")])
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, dict[str, Any]]:
    """Return (family, folder of model.onnx, info of the export)."""
    folder = tmp_path_factory.mktemp(request.param)
    plain_teacher(request.param, folder / "teacher", trained=True)
    return request.param, folder, export_onnx(folder / "teacher", folder, graph="plain", **TASK)


def test_its_graph_gives_its_logits(exported: tuple[str, Path, dict[str, Any]]):
    _, _, info = exported
    assert info["graph"] == "plain"
    assert len(info["parity_max_abs_error"]) == 4
    assert max(info["parity_max_abs_error"].values()) < 2e-6  # fp32 sums in another order


@pytest.mark.parametrize(("method", "int8_format"), [("dynamic", "dynamic"), ("static", "static"), ("static", "qdq")])
def test_all_matmuls_by_weights_are_int8_or_named(
    exported: tuple[str, Path, dict[str, Any]], method: Any, int8_format: str, tmp_path: Path
):
    family, folder, _ = exported
    ids = np.random.default_rng(0).integers(7, 80, (6, 14))
    mask = (np.arange(14) < np.array([14, 9, 3, 1, 14, 7])[:, None]).astype(np.int64)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    session = open_session(folder / "model.onnx")
    feed = {value.name: feed[value.name] for value in session.get_inputs()}
    info = quantize_onnx(
        folder / "model.onnx", tmp_path, Quantize(method=method), int8_format=int8_format, feeds=[feed]
    )
    # DeBERTa's queries, keys, values, output and feed-forward layers; in XLNet also the positions.
    assert info["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * LAYERS
    stacked = [name for name, why in info["stayed_fp32"].items() if why == STACKED]
    assert len(stacked) == {"deberta-v2": 2, "xlnet": 0}[family] * LAYERS  # keys and queries of positions
    assert info["weight_only_matmuls"] == len(stacked) + 1  # beside the head's first layer
    assert info["fp32_matmuls"] == 1
    assert info["int8_gathers"] == 1
    path = next(tmp_path.glob("*.onnx"))
    expected, int8 = (np.asarray(open_session(file).run(["logits"], feed)[0]) for file in (folder / "model.onnx", path))
    assert np.abs(int8 - expected).max() < 0.1 * max(1.0, np.abs(expected).max())
    assert np.abs(int8 - expected).max() > 0


def test_there_is_no_fast_graph(exported: tuple[str, Path, dict[str, Any]], tmp_path: Path):
    family, folder, _ = exported
    assert build_fast(plain_classifier(family)) is None
    with pytest.raises(CompressError, match=f"this {family} is of none of them: export with graph: plain"):
        export_onnx(folder / "teacher", tmp_path, graph="fast", **TASK)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "sizes"),
    [
        (
            "deberta-v2",
            {
                "hidden_size": 768,
                "num_hidden_layers": 6,
                "num_attention_heads": 12,
                "intermediate_size": 3072,
                "max_position_embeddings": 512,
                "position_buckets": 256,
            },
        ),
        ("xlnet", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}),
    ],
)
def test_at_real_dimensions_the_graph_gives_the_logits(family: str, sizes: dict[str, Any], tmp_path: Path):
    """The sizes of DeBERTa-v3-small and XLNet-base except for the vocabulary, with random weights."""
    plain_teacher(family, tmp_path / "teacher", trained=True, noise=0.01, **sizes)
    info = export_onnx(tmp_path / "teacher", tmp_path, graph="plain", **TASK)
    assert "2x512" in info["parity_max_abs_error"]
    assert max(info["parity_max_abs_error"].values()) < 1e-4  # fp32, of up to twelve layers
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    layers = {"deberta-v2": 6, "xlnet": 12}[family]
    assert int8["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * layers
