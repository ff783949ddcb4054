"""Teachers with random weights and their own vocabulary: every token is trained, and the checkpoint is of their family."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from pretrain_toys import CARD, GROWN, plan, run_stages
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from compress.corpus import corpus_sources, train_vocabulary
from compress.errors import CompressError
from compress.models.checkpoints.folders import save_tokenizer
from compress.tokenization.special import special_ids


@pytest.fixture
def byte_world(world: Path) -> Path:
    """Return `world` with byte-level BPE, whose token 0 is <s>."""
    tokenizer = train_vocabulary(corpus_sources([str(world / "text.txt")]), kind="bpe", size=300)
    save_tokenizer(tokenizer, world / "words")
    return world


def test_the_first_token_trains_where_another_one_is_the_padding(byte_world: Path):
    planned = plan(byte_world, "pretrain.losses=[{name: next_sentence}]")  # no decoder trains the same table
    special = special_ids(planned.teacher.tokenizer)
    assert (special.cls, special.pad) == (0, 1)
    assert planned.teacher.config["pad_token_id"] == 1
    table = load_file(run_stages(byte_world, planned, "tokenize", "pretrain")["pretrained"].path / "model.safetensors")
    rows = next(tensor for name, tensor in table.items() if name.endswith("word_embeddings.weight"))
    assert rows[0].any()  # of <s>, which begins every text
    assert not rows[1].any()  # the padding row starts at zero and is not trained


def test_ids_with_gaps_have_rows_enough(world: Path):
    path = world / "words" / "tokenizer.json"
    document = json.loads(path.read_text())
    document["model"]["vocab"]["not"] = 90
    path.write_text(json.dumps(document))
    assert Tokenizer.from_file(str(path)).get_vocab_size() == 64
    assert plan(world).teacher.config["vocab_size"] == 91


def test_a_tokenizer_that_puts_nothing_around_a_text_is_refused_with_its_field(world: Path):
    from tokenizers import models, pre_tokenizers

    bare = Tokenizer(models.WordPiece(vocab={"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    bare.save(str(world / "words" / "tokenizer.json"))
    (world / "own.yaml").write_text(CARD.format(world / "words"))
    with pytest.raises(CompressError, match=r"teacher own: random\.tokenizer: the tokenizer turns 1 tokens of text"):
        plan(world)


LAYERWISE = "general.losses=[{name: hidden_mse}]"
STUDENT = "name: tiny\ntitle: tiny\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 4\ninit: random\n"


@pytest.fixture
def small(world: Path) -> Path:
    """Train a masked language model of 2 x 16, from which `own.yaml` grows to 2 x 32."""
    folder = run_stages(world, plan(world), "tokenize", "pretrain")["pretrained"].path
    (world / "own.yaml").write_text(GROWN.format(folder, 32, 4))
    (world / "tiny.yaml").write_text(STUDENT)
    return folder


def tinybert(world: Path, *overrides: str):
    brief = ("general.max_steps=2", "general.batch_size=4", "general.max_length=16", LAYERWISE)
    return plan(world, *brief, *overrides, recipe="tinybert-small", student=str(world / "tiny.yaml"))


def test_what_has_grown_is_read_before_the_fine_tuning(world: Path, small: Path):
    """Without pre-training, it keeps the small model's knowledge, and fine-tuning starts from the same weights."""
    planned = tinybert(world, "finetune.learning_rate=1e-12")
    reads = {node.id: node.inputs for node in planned.nodes}
    assert reads["encoder"]["pretrained"] == reads["augmented"]["pretrained"] == "grown"
    assert "masked-lm" not in reads  # it has the small model's head
    assert not planned.notes
    assert planned.checkpoint("teacher") == "teacher"
    (world / "again").mkdir()
    artifacts = run_stages(world / "again", planned, "tokenize", "grow", "finetune", "general")
    assert artifacts["grown"].info == {"masked_lm_head": True}
    grown, tuned = (load_file(artifacts[name].path / "model.safetensors") for name in ("grown", "teacher"))
    shared = [name for name in grown if name.startswith("bert.encoder")]
    assert len(shared) == 32
    assert all(torch.allclose(grown[name], tuned[name], atol=1e-9) for name in shared)
    assert artifacts["encoder"].info["steps"] == 2


def test_tables_are_the_small_models(world: Path, small: Path):
    """With more rows than its tokenizer has tokens, three segment types, and another padding token."""
    config = {
        **json.loads((small / "config.json").read_text()),
        "vocab_size": 72,
        "type_vocab_size": 3,
        "pad_token_id": 4,
    }
    (small / "config.json").write_text(json.dumps(config))
    state = load_file(small / "model.safetensors")
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        state[name] = torch.cat([state[name], state[name][:8]])
    name = "bert.embeddings.token_type_embeddings.weight"
    state[name] = torch.cat([state[name], state[name][:1]])
    state.pop("cls.predictions.decoder.bias", None)
    save_file(state, small / "model.safetensors", metadata={"format": "pt"})
    planned = plan(world)
    fields = {name: planned.teacher.config[name] for name in ("vocab_size", "type_vocab_size", "pad_token_id")}
    assert fields == {"vocab_size": 72, "type_vocab_size": 3, "pad_token_id": 4}
    (world / "again").mkdir()
    artifact = run_stages(world / "again", planned, "tokenize", "pretrain")["pretrained"]
    assert load_file(artifact.path / "model.safetensors")["bert.embeddings.word_embeddings.weight"].shape == (72, 32)


def test_nothing_grows_from_what_is_yet_to_grow_but_its_words_serve(world: Path, small: Path):
    card = (world / "own.yaml").read_text().replace("name: own", "name: next")
    (world / "next.yaml").write_text(card.replace(str(small), str(world / "own.yaml")))
    with pytest.raises(
        CompressError, match=r"random\.grow_from: .*own.yaml has weights that are yet to grow and no checkpoint"
    ):
        plan(world, teacher=str(world / "next.yaml"))
    (world / "next.yaml").write_text(CARD.format(world / "own.yaml").replace("name: own", "name: next"))
    assert plan(world, teacher=str(world / "next.yaml")).teacher.config["vocab_size"] == 64
