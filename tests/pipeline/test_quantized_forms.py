"""The int8 files that a quantize stage plans, and what their keys depend on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from listeners import Notices
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForSequenceClassification
from worlds import TASK, encoder_world

from compress.errors import CompressError
from compress.pipeline import Plan, Request, plan_all, run_all
from compress.quantize.methods import int8_format, spec_of_file
from compress.spec.quantization import Quantize

pytestmark = pytest.mark.end_to_end

Planner = Callable[..., Plan]


@pytest.fixture
def planned(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Planner:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")

    def plan(*overrides: str) -> Plan:
        task = str(tmp_path / "task.yaml")
        return plan_all(Request(("int8",), (task,), teacher=str(teacher), overrides=overrides))[0]

    return plan


def test_the_portable_file_is_a_model_of_its_own_before_the_last(planned: Planner) -> None:
    assert planned().models == ("teacher-fp32", "teacher-int8")
    both = planned("quantize.portable=true")
    assert both.models == ("teacher-fp32", "teacher-qdq", "teacher-int8")
    assert both.keys["teacher-int8"] == planned().keys["teacher-int8"]  # the same file
    assert both.name != planned().name


def test_a_file_for_cpus_without_vnni_is_a_model_of_its_own(planned: Planner) -> None:
    both = planned("quantize.avx2=true")
    assert both.models == ("teacher-fp32", "teacher-avx2", "teacher-int8")
    assert both.keys["teacher-int8"] == planned().keys["teacher-int8"]
    seven = planned("quantize.reduce_range=true")
    assert both.keys["teacher-avx2"] != seven.keys["teacher-int8"]  # its file has another name
    static = planned("quantize.avx2=true", "quantize.method=static")
    assert static.keys["teacher-avx2"] != both.keys["teacher-avx2"]
    every = planned("quantize.avx2=true", "quantize.portable=true")
    assert every.models == ("teacher-fp32", "teacher-qdq", "teacher-avx2", "teacher-int8")
    with pytest.raises(CompressError, match="leave one of the two out"):
        planned("quantize.avx2=true", "quantize.reduce_range=true")


def test_the_key_of_a_calibrated_file_has_its_texts_and_settings(planned: Planner, tmp_path: Path) -> None:
    static = planned("quantize.method=static")
    assert static.keys["teacher-int8"] != planned().keys["teacher-int8"]
    fewer = planned("quantize.method=static", "quantize.calibration_examples=32")
    assert fewer.keys["teacher-int8"] != static.keys["teacher-int8"]
    dynamic = planned("quantize.method=dynamic", "quantize.calibration_examples=32")
    assert dynamic.keys == planned("quantize.method=dynamic").keys  # dynamic quantization needs no calibration
    (tmp_path / "task.yaml").write_text(TASK.replace("train: 40", "train: 48"))
    assert planned("quantize.method=static").keys["teacher-int8"] != static.keys["teacher-int8"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("quantize.method=fast", "dynamic"),
        ("quantize.calibration_examples=8", "expected a number at least 32 and at most 512, found the number 8"),
        ("quantize.percentile=50", "expected a number above 99"),
        ("quantize.portable=often", "quantize.portable"),
    ],
)
def test_a_wrong_setting_is_named(planned: Planner, override: str, message: str) -> None:
    with pytest.raises(CompressError, match=message) as error:
        planned(override)
    assert override.partition("=")[0] in str(error.value)


def test_words_of_4_bits_are_another_file_in_every_form(planned: Planner) -> None:
    forms = ("quantize.portable=true", "quantize.avx2=true")
    eight, four = planned(*forms, "quantize.word_bits=8").keys, planned(*forms, "quantize.word_bits=4").keys
    assert eight == planned(*forms).keys
    assert {name for name in eight if eight[name] != four[name]} == {"teacher-qdq", "teacher-avx2", "teacher-int8"}


def odd_rows(folder: Path, checkpoint: Path, tokenizer: Tokenizer, tokens: int) -> Request:
    """Return a request with a teacher of `tokens` tokens, each a row of 34 values."""
    config = AutoConfig.from_pretrained(checkpoint, hidden_size=34, num_attention_heads=2, vocab_size=tokens)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder / "odd")
    teacher = encoder_world(folder, folder / "odd", tokenizer, text="a film\n")
    return Request(
        ("int8",),
        (str(folder / "task.yaml"),),
        teacher=str(teacher),
        overrides=("quantize.word_bits=4", "quantize.method=dynamic", "finetune.max_steps=2"),
        root=folder / "runs",
        bench=None,
    )


def test_rows_that_no_block_divides_are_refused_before_anything_runs(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    request = odd_rows(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, 1024)
    with pytest.raises(
        CompressError, match=r"^quantize\.word_bits: 4 bits need .* from 8 to 32 divides, found 34 values a row"
    ):
        run_all(request)
    assert not (tmp_path / "runs").exists()


def test_rows_of_a_short_table_may_have_any_width(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    (result,) = run_all(odd_rows(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, 1023))
    assert (result.final.info["int8_gathers"], result.final.info["int4_gathers"]) == (2, 0)


def test_a_short_table_keeps_8_bits_and_the_run_says_so(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    heard = Notices()
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    overrides = ("finetune.max_steps=2", "quantize.method=dynamic", "quantize.word_bits=4")
    task, root = str(tmp_path / "task.yaml"), tmp_path / "runs"
    (result,) = run_all(
        Request(("int8",), (task,), teacher=str(teacher), overrides=overrides, root=root, bench=None), heard
    )
    assert (result.final.info["int8_gathers"], result.final.info["int4_gathers"]) == (2, 0)
    said = "teacher-int8: word_bits: 4 bits are not used here, as no table of 1,024 rows or more is quantized"
    assert said in heard.notices


def test_a_file_depends_on_what_its_method_reads_alone(planned: Planner) -> None:
    def key(*overrides: str) -> str:
        return planned(*(f"quantize.{word}" for word in overrides)).keys["teacher-int8"]

    methods = {name: key(f"method={name}") for name in ("dynamic", "static", "smoothquant", "auto")}
    assert len(set(methods.values())) == 4
    assert key("method=static", "alpha=0.5") == methods["static"]
    assert key("method=smoothquant", "alpha=0.5") != methods["smoothquant"]
    assert key("method=smoothquant", "max_flips=3") == methods["smoothquant"]
    assert key("method=auto", "max_flips=3") != methods["auto"]
    assert key("method=static", "calibration=minmax") != methods["static"]
    assert key("method=static", "calibration=minmax", "percentile=99.9") == key("method=static", "calibration=minmax")
    assert key("method=static", "bias_correction=true") != methods["static"]
    assert key("method=dynamic", "calibration=minmax", "bias_correction=true", "max_drop=1") == methods["dynamic"]


def test_a_search_is_for_the_int8_file_alone(planned: Planner) -> None:
    plan = planned("quantize.method=auto", "quantize.portable=true", "quantize.avx2=true")
    spec = plan.nodes[-1].spec
    assert isinstance(spec, Quantize)
    assert [spec_of_file(spec, precision).method for precision in spec.precisions] == [
        "smoothquant",
        "smoothquant",
        "auto",
    ]
    assert [int8_format(spec, precision) for precision in spec.precisions] == ["qdq", "static", "static"]
