"""Nothing in a teacher's folder makes transformers look for code, adapters or settings, in the folder or elsewhere."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from compress.models.checkpoints.folders import load_classifier, load_encoder, load_tokenizer
from compress.models.masked_lm import new_masked_lm_head

LABELS = ("no", "maybe", "yes")
CODE = {
    "AutoModel": "evil.Model",
    "AutoModelForSequenceClassification": "owner/repo--evil.Model",
    "AutoConfig": "evil.C",
}
HOSTILE = {
    "config.json": {
        "auto_map": CODE,
        "_attn_implementation": "owner/repo:function",
        "_attn_implementation_internal": "owner/repo:function",
        "attn_implementation": "owner/repo:function",
        "_experts_implementation": "owner/repo",
        "_name_or_path": "owner/repo",
        "transformers_weights": "adapter_model.bin",
        "fusion_config": {"patch_embeddings": True},
        "custom_pipelines": {"x": {"impl": "evil.P"}},
    },
    "adapter_config.json": {"base_model_name_or_path": "owner/repo", "peft_type": "LORA"},
    "generation_config.json": {"transformers_version": "0", "custom_generate": "owner/repo"},
    "tokenizer_config.json": {
        "auto_map": {"AutoTokenizer": ["evil.Slow", "owner/repo--evil.Fast"]},
        "chat_template": "{{ cycler.__init__.__globals__.os.system('x') }}",
        "tokenizer_file": "/etc/passwd",
        "name_or_path": "owner/repo",
    },
    "special_tokens_map.json": {"unk_token": "[UNK]"},
}

opened: list[str] | None = None  # a list while a test listens, since an audit hook cannot be removed


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if opened is not None and event == "open" and isinstance(arguments[0], str):
        opened.append(arguments[0])


sys.addaudithook(_hook)


@pytest.fixture
def files_opened() -> Iterator[list[str]]:
    global opened
    opened = []
    yield opened
    opened = None


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record network requests, with the hub's offline mode turned off."""
    requests: list[str] = []

    def called(name: str) -> Callable[..., Any]:
        def refuse(*arguments: Any, **named: Any) -> Any:
            requests.append(name)
            raise OSError(f"{name} is blocked")

        return refuse

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("transformers.utils.hub.is_offline_mode", lambda: False)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, called(name))
    monkeypatch.setattr(socket, "getaddrinfo", called("getaddrinfo"))
    for name in ("hf_hub_download", "snapshot_download"):
        monkeypatch.setattr(f"huggingface_hub.{name}", called(name))
    monkeypatch.setattr("transformers.dynamic_module_utils.get_class_from_dynamic_module", called("dynamic module"))
    monkeypatch.setattr("transformers.models.auto.auto_factory.get_class_from_dynamic_module", called("dynamic module"))
    monkeypatch.setattr("transformers.models.auto.auto_factory.is_peft_available", lambda: True)
    monkeypatch.setattr("transformers.integrations.hub_kernels.get_kernel", called("kernel"), raising=False)
    return requests


@pytest.fixture
def teacher(tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    folder = tmp_path / "teacher"
    shutil.copytree(tiny_checkpoint("bert"), folder)
    for name, document in HOSTILE.items():
        path = folder / name
        there = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**there, **document}))
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / "adapter_model.safetensors").write_bytes(b"no weights")
    words = sorted(toy_tokenizer.get_vocab().items(), key=lambda item: item[1])
    (folder / "vocab.txt").write_text("\n".join(word for word, _ in words) + "\n")
    return folder


def test_only_config_weights_and_vocabulary_are_opened(teacher: Path, calls: list[str], files_opened: list[str]):
    model: Any = load_classifier(teacher, kind="classification", labels=LABELS, trained=True)
    assert model.config._attn_implementation == "sdpa"
    load_encoder(teacher)
    new_masked_lm_head(teacher)
    assert load_tokenizer(teacher).encode("good film").tokens == ["[CLS]", "good", "film", "[SEP]"]
    names = {Path(name).name for name in files_opened if Path(name).is_relative_to(teacher)}
    weights = {"model.safetensors"}
    assert names == {*weights, "config.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json"}
    assert calls == []
    assert not [name for name in sys.modules if "evil" in name]


def test_with_a_tokenizer_of_its_own_only_configs_are_read_beside_it(
    teacher: Path, toy_tokenizer: Tokenizer, calls: list[str], files_opened: list[str]
):
    toy_tokenizer.save(str(teacher / "tokenizer.json"))
    files_opened.clear()
    load_tokenizer(teacher)
    names = {Path(name).name for name in files_opened if Path(name).is_relative_to(teacher)}
    assert names == {"tokenizer.json", "tokenizer_config.json", "config.json"}
    assert calls == []
