"""The stage `vocabulary`: its keys, what it refuses before any work, and what it reports about a vocabulary that lacks
characters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from family_teachers import teacher_of
from tokenizers import Tokenizer, models
from transformers import AutoConfig, AutoModel
from vocabulary_runs import classes, recipe, record, run, vocabulary_world
from vocabulary_toys import tokenizer

from compress.errors import CompressError
from compress.models.checkpoints.folders import save_checkpoint
from compress.pipeline import Plan, Request, plan_all


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = vocabulary_world(tmp_path_factory.mktemp("vocabulary"))
    own = Tokenizer.from_file(str(teacher_of("bert", folder / "word-level") / "tokenizer.json"))
    own.model = models.WordLevel(own.get_vocab(), unk_token="[UNK]")
    own.save(str(folder / "word-level/tokenizer.json"))
    recipe(folder, "own", "  - vocabulary:")
    return folder


def plan(world: Path, *overrides: str, name: str = "vocabulary-int8", teacher: str = "tiny.yaml", **more: Any) -> Plan:
    request = Request((name,), (str(world / "texts.yaml"),), teacher=str(world / teacher), overrides=overrides, **more)
    return plan_all(request)[0]


def test_keys_are_of_what_the_stage_depends_on(world: Path) -> None:
    text, name = (str(world / "text.txt"),), "teacher-vocabulary"
    before = plan(world).keys
    assert plan(world, "quantize.method=dynamic").keys[name] == before[name]
    assert plan(world, "vocabulary.corpus=false", corpus=text).keys[name] == before[name]
    others = [
        plan(world, "vocabulary.most=200").keys,
        plan(world, corpus=text).keys,
        plan(world, "vocabulary.min_count=2", corpus=text).keys,
        plan(world, "finetune.max_steps=1").keys,
    ]
    assert len({variant[name] for variant in others} | {before[name]}) == 5
    off = plan(world, "vocabulary.enabled=false")
    assert off.models == ("teacher-fp32", "teacher-int8")
    assert off.keys == plan(world, name="int8").keys


@pytest.mark.parametrize(
    ("overrides", "options", "message"),
    [
        (
            ["vocabulary.most=61"],
            {},
            r"most: expected more than the 61 special tokens and single characters, which are always kept; found 61",
        ),
        (["vocabulary.corpus=true"], {}, r"corpus: true: no plain text was given; add it with --corpus PATH, or leave it out"),
        (["vocabulary.min_count=2"], {}, r"min_count: 2 applies to plain text, and none is read: no plain text was given"),
        (["vocabulary.min_count=2", "vocabulary.corpus=false"], {}, r"none is read: corpus is false; or leave min_count out"),
        (["vocabulary.min_count=0"], {}, r"vocabulary.min_count"),
        (["vocabulary.most=many"], {}, r"vocabulary.most"),
        ([], {"teacher": "word-level"}, r"tokenizer.json of word-level: model.type: expected .*; found WordLevel; leave the stage out"),
        (["distill.enabled=false"], {"name": "own.yaml"}, r"stage vocabulary: every distill stage is switched off"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name_before_any_work(
    world: Path, overrides: list[str], options: dict[str, str], message: str
) -> None:
    if "name" in options:
        options = {"name": str(world / options["name"])}
    with pytest.raises(CompressError, match=message):
        plan(world, *overrides, **options)


def test_where_smaller_pieces_lack_a_character_it_says_that_more_is_unknown(tmp_path: Path) -> None:
    """`abcd` is ab + ##cd. Without `ab` it begins with a + ##bc, and no token inside words begins with d."""
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "c", "ab", "##b", "##c", "##bc", "##cd"]
    own = Tokenizer.from_str(tokenizer("WordPiece").to_str())
    own.model = models.WordPiece({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = AutoConfig.for_model("bert", vocab_size=len(tokens), max_position_embeddings=32, **sizes)
    model: Any = AutoModel.from_config(config)
    with torch.no_grad():
        model.get_input_embeddings().weight[5] = 9.0  # the largest row stays
    save_checkpoint(model.eval(), own, tmp_path / "lacking")
    classes(tmp_path, "own", ["a", "a cbc"] * 30, ["a a", "abcd a"])
    (tmp_path / "tuning.csv").write_text("sentence,label\na a a,negative\nabcd,positive\n")
    tuning = {"tuning": str(tmp_path / "tuning.csv")}
    result = run(tmp_path, "vocabulary-int8", "quantize.method=dynamic", task="own", teacher="lacking", **tuning)
    assert record(result).tokens == len(tokens) - 1
    rates = record(result).reported["dev"]
    assert rates.unknown == 0 < rates.unknown_after
    assert any("1 more words of tuning are unknown" in notice for notice in result.settings["notices"])
