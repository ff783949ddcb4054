"""Teacher folders with one damaged file, used as `compress plan` and `compress run` use them."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mpnet_toys import mpnet_tokenizer
from mutations import bytes_, documents
from tokenizers import Tokenizer

from compress.corpus.vocabulary import byte_level
from compress.errors import CompressError
from compress.models.checkpoints.folders import label_fields, load_classifier, load_tokenizer, pad_id
from compress.pipeline import Plan, plan_all
from compress.pipeline.preflight import preflight
from compress.pipeline.request import Request
from compress.tasks import Split, collate, encode

LABELS = ("negative", "positive")
TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 16
synthetic: {generator: sentiment, train: 40, dev: 8}
"""
TEXTS = ["The FILM is not bad. ", "é 漢字\u200d [MASK] </s> zebra-7\x00 \ud7ff", "", "x" * 300, "a film " * 100]
# Further fields in files from the hub.
CONFIG = {"torch_dtype": "float32", "position_embedding_type": "absolute", "use_cache": True, "_name_or_path": "a/b"}
TOKENIZER_CONFIG = {
    "tokenizer_class": "BertTokenizer",
    "do_lower_case": True,
    "strip_accents": None,
    "model_max_length": 512,
    "unk_token": "[UNK]",
    "mask_token": {"content": "[MASK]", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False},
    "additional_special_tokens": ["[NEW]"],
    "added_tokens_decoder": {"0": {"content": "[PAD]", "special": True}},
}
SPECIAL_MAP = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
SLOW = 20.0  # seconds of CPU time for one case


@dataclass(frozen=True)
class Finding:
    case: str
    problem: str


class Teachers:
    """Checkpoint folders of every family and file format under `root`, undamaged to begin with."""

    def __init__(self, root: Path, tiny: Callable[[str], Path], wordpiece: Tokenizer) -> None:
        self.root = root
        (root / "task.yaml").write_text(TASK)
        bpe = byte_level(["the film is not bad", "a good film"], 300)
        for family in ("bert", "distilbert", "electra", "albert", "ernie"):
            self._make(family, tiny(family), lambda folder: wordpiece.save(str(folder / "tokenizer.json")))
        roberta = _more_words(tiny("roberta"), root / "more-words", bpe.get_vocab_size())
        self._make("roberta", roberta, lambda folder: bpe.save(str(folder / "tokenizer.json")))
        self._make("mpnet", tiny("mpnet"), lambda folder: mpnet_tokenizer().save(str(folder / "tokenizer.json")))
        self._make("vocabulary", tiny("bert"), lambda folder: _vocabulary(folder, wordpiece))
        self._make("merges", roberta, lambda folder: bpe.model.save(str(folder)))
        self._make("sharded", tiny("bert"), lambda folder: _sharded(folder, wordpiece))
        shutil.rmtree(roberta)
        self.names = sorted(path.parent.name for path in root.glob("*/config.json"))

    def _make(self, name: str, source: Path, tokenize: Callable[[Path], object]) -> None:
        folder = self.root / name
        shutil.copytree(source, folder)
        path = folder / "config.json"
        fields = {key: value for key, value in label_fields("classification", LABELS).items() if key != "num_labels"}
        path.write_text(json.dumps({**json.loads(path.read_text()), **CONFIG, **fields}))
        tokenize(folder)

    def plan(self, folder: Path) -> list[Plan]:
        request = Request(("int8",), (str(self.root / "task.yaml"),), teacher=str(folder), root=self.root / "runs")
        return plan_all(request)

    def use(self, name: str, *, weights: bool) -> None:
        """Do what a run does before its first training step; only with `weights` is it slow."""
        folder = self.root / name
        preflight(self.plan(folder), self.root / "runs")
        tokenizer = load_tokenizer(folder)
        encoded = encode(tokenizer, Split((TEXTS,), torch.zeros(len(TEXTS)).long().numpy()), 16)
        if not weights:
            return
        model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=False)
        batch = collate(encoded, torch.arange(len(TEXTS)).numpy(), pad_id(model.config.to_dict()))
        with torch.no_grad():
            model(**{key: torch.as_tensor(batch[key]) for key in ("input_ids", "attention_mask")})


def _more_words(source: Path, target: Path, words: int) -> Path:
    model: Any = load_classifier(source, kind="classification", labels=LABELS, trained=False)
    model.resize_token_embeddings(words)
    model.save_pretrained(target)
    return target


def _vocabulary(folder: Path, wordpiece: Tokenizer) -> None:
    words = sorted(wordpiece.get_vocab(), key=wordpiece.get_vocab().__getitem__)
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    for name, document in (("tokenizer_config.json", TOKENIZER_CONFIG), ("special_tokens_map.json", SPECIAL_MAP)):
        (folder / name).write_text(json.dumps(document))
    (folder / "added_tokens.json").write_text(json.dumps({"[NEW]": len(words)}))


def _sharded(folder: Path, wordpiece: Tokenizer) -> None:
    model: Any = load_classifier(folder, kind="classification", labels=LABELS, trained=False)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="30KB")
    wordpiece.save(str(folder / "tokenizer.json"))


def damage(teachers: Teachers, seed: int, first: int, count: int) -> Iterator[tuple[str, str, Path, bytes]]:
    """Yield (case, teacher, damaged file, its bytes) for `count` cases numbered from `first` on."""
    for number in range(first, first + count):
        rng = random.Random(f"{seed}/{number}")
        name = teachers.names[number % len(teachers.names)]
        files = sorted(path for path in (teachers.root / name).iterdir() if path.is_file())
        path = rng.choice([*files, teachers.root / name / "config.json", *(f for f in files if f.suffix == ".json")])
        whole = path.read_bytes()
        if path.suffix == ".json" and rng.random() < 0.8:
            (said, changed), *_ = documents(json.loads(whole), number, 1)
            data = json.dumps(changed).encode()
        else:
            (said, data), *_ = bytes_(whole, number, 1)
        yield f"{number}: {name}/{path.name}: {said}", name, path, data


def findings(teachers: Teachers, seed: int, first: int, count: int) -> tuple[int, list[Finding]]:
    """Return how many damaged teachers were refused, and those that were neither used nor refused cleanly."""
    refused, failures = 0, []
    for case, name, path, data in damage(teachers, seed, first, count):
        whole, started = path.read_bytes(), time.process_time()
        path.write_bytes(data)
        try:
            teachers.use(name, weights=path.suffix == ".safetensors" or int(case.split(":")[0]) % 4 == 0)
        except CompressError as error:
            refused += 1
            if error.exit_code != 2 or "\n" in str(error) or len(str(error)) > 5000:
                failures.append(Finding(case, f"no clean refusal: {error!r:.300}"))
        except BaseException as error:  # a panic in a Rust library is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(Finding(case, f"{type(error).__name__}: {error!s:.300}"))
        finally:
            path.write_bytes(whole)
        if (took := time.process_time() - started) > SLOW:
            failures.append(Finding(case, f"took {took:.0f} s"))
    return refused, failures
