"""Tiny random models of each family: checkpoints, made once per test process, and exported graphs, made once for all processes.
And the modules of benchmarks/peers.

No test reaches the network or a GPU (results are compared bit by bit, on the CPU). Shapes in the losses' signatures are checked at run
time.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jaxtyping import install_import_hook

from compress.processes.garbage import collect_rarely

if TYPE_CHECKING:
    from tokenizers import Tokenizer

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")
os.fsync = lambda fd: None  # tests need no durability, and each of thousands of calls takes milliseconds
install_import_hook("compress.losses", "beartype.beartype")
collect_rarely()

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
LABELS = ("no", "maybe", "yes")


def _config(family: str):
    from transformers import AutoConfig

    size = {"vocab_size": 120, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    size |= {"intermediate_size": 64, "max_position_embeddings": 24, "num_labels": len(LABELS)}
    if family == "distilbert":
        size = {"vocab_size": 120, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
        size |= {"max_position_embeddings": 24, "num_labels": len(LABELS)}
    elif family == "roberta":  # positions start at padding_idx + 1 = 2
        size |= {"max_position_embeddings": 26, "type_vocab_size": 1}
    elif family == "mpnet":
        size |= {"max_position_embeddings": 26}
    elif family == "ernie":
        size |= {"use_task_id": True}
    elif family in ("electra", "albert"):
        size |= {"embedding_size": 16}
    names = dict(enumerate(LABELS))
    return AutoConfig.for_model(family, **size, id2label=names, label2id={name: i for i, name in names.items()})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that no core waits for another at the end."""
    places = ("tests/pipeline/test_gpu_stages.py", "tests/training/test_parallel.py", "tests/test_extending.py")
    places += ("tests/test_examples.py", "tests/recipes/", "tests/bench/", "tests/export/", "tests/faults/")
    places += (
        "tests/models/",
        "tests/pipeline/",
        "tests/cli/",
        "tests/test_campaign.py",
        "tests/stats/test_coverage.py",
    )
    order = {place: number for number, place in enumerate(places)}
    items.sort(
        key=lambda item: min((order[place] for place in places if item.nodeid.startswith(place)), default=len(places))
    )


@pytest.fixture(autouse=True)
def one_thread_again() -> Iterator[None]:
    """Reset torch to one thread: a run in this process leaves it one per core, which the next test would share with all workers."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from family to checkpoint folder (config.json, model.safetensors), with every weight and bias random and dropout
    on. All tests share it: to change one, copy it."""
    checkpoints: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in checkpoints:
            import torch
            from transformers import AutoModelForSequenceClassification

            torch.manual_seed(7)
            model = AutoModelForSequenceClassification.from_config(_config(family))
            with torch.no_grad():
                for parameter in model.parameters():  # larger than the default, so that every part matters
                    parameter.add_(torch.randn_like(parameter) * 0.1)
            checkpoints[family] = tmp_path_factory.mktemp(f"checkpoint-{family}")
            model.save_pretrained(checkpoints[family])
        assert {path.name for path in checkpoints[family].iterdir()} == {"config.json", "model.safetensors"}
        return checkpoints[family]

    return make


@pytest.fixture(scope="session")
def toy_tokenizer() -> Tokenizer:
    """Return a lower-casing BERT tokenizer of 64 tokens: the special ones, letters and a few words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    words += ["good", "bad", "film", "the", "is", "not", "."]
    tokenizer = Tokenizer(models.WordPiece(vocab={word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(words[:5])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


@pytest.fixture(scope="session")
def tiny_onnx(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path]) -> Callable[..., Path]:
    """Return a function from family, graph and opset to an exported fp32 model.onnx; its info is in info.json beside it. All tests in
    all processes share it: to change one, copy it."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def make(family: str, graph: str = "plain", opset: int = 20) -> Path:
        import json

        from filelock import FileLock

        from compress.export import export_onnx

        out = shared / f"onnx-{family}-{graph}-{opset}"
        with FileLock(shared / f"{out.name}.lock"):
            if not (out / "info.json").exists():  # written last
                named: dict[str, Any] = {"task_name": "toy", "labels": LABELS, "kind": "classification"}
                info = export_onnx(tiny_checkpoint(family), out, graph=graph, opset=opset, **named)
                (out / "info.json").write_text(json.dumps(info))
        return out / "model.onnx"

    return make


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return a function from name to module of benchmarks/peers."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "benchmarks/peers")
    return importlib.import_module
