"""Folders of sentence-transformers: the settings of their embeddings, and modules that are not supported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plain_teachers import plain_config

from compress.errors import CompressError
from compress.models.dimensions import read_config
from compress.models.families import FAMILIES
from compress.models.sentence_encoders.folders import vector_notes
from compress.models.sentence_encoders.pooling import read_pooling
from compress.runtime.passages import THRESHOLD
from compress.tasks import byte_level, wordpiece

BERT = {"model_type": "bert"}


def folder_of(place: Path, **files: Any) -> Path:
    """Write the folder: `a__b` is the file b.json in the folder a."""
    for name, content in files.items():
        path = place.joinpath(*name.split("__")).with_suffix(".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return place


def modules(*names: str, pooling: str = "1_Pooling") -> list[dict[str, str]]:
    return [
        {"type": f"sentence_transformers.models.{name}", "path": pooling if name == "Pooling" else ""} for name in names
    ]


CLS = {"pooling_mode_cls_token": True}
ENCODER = modules("Transformer", "Pooling")


def test_the_pooling_is_where_the_list_of_modules_has_it(tmp_path: Path) -> None:
    listed = modules("Transformer", "Pooling", pooling="2_Pooling")
    folder = folder_of(tmp_path, modules=listed)
    assert read_pooling(folder, BERT) == ("mean", False)
    folder_of(folder, **{"2_Pooling__config": CLS})
    assert read_pooling(folder, BERT) == ("cls", True)


@pytest.mark.parametrize("place", ["../other_Pooling", "a/1_Pooling", "..\\1_Pooling", "weights"])
def test_another_place_is_refused_and_not_looked_into(tmp_path: Path, place: str) -> None:
    folder = folder_of(tmp_path / "in", modules=modules("Transformer", "Pooling", pooling=place))
    folder_of(tmp_path, other_Pooling__config=CLS, in__a__1_Pooling__config=CLS, in__weights__config=CLS)
    with pytest.raises(
        CompressError, match=r"modules\.json: Pooling: expected a folder beside it whose name ends with _Pooling"
    ):
        read_pooling(folder, BERT)


def test_a_mean_of_another_length_points_the_same_way(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **{"1_Pooling__config": {"pooling_mode_mean_sqrt_len_tokens": True}})
    assert read_pooling(folder, BERT) == ("mean", True)


def test_the_first_token_of_an_xlnet_is_refused_and_its_mean_taken(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **{"1_Pooling__config": CLS})
    message = "pooling: found cls, the first token, and XLNet has its own last"
    with pytest.raises(CompressError, match=rf"1_Pooling/config\.json: {message}"):
        read_pooling(folder, {"model_type": "xlnet"})
    with pytest.raises(CompressError, match=rf"{tmp_path.name}/config\.json: {message}"):
        read_pooling(folder, {"model_type": "xlnet", "sentence_pooling": "cls"})
    assert read_pooling(None, {"model_type": "xlnet"}) == ("mean", False)
    assert read_pooling(folder, BERT) == ("cls", True)


PROMPTED = {"prompts": {"query": "query: ", "none": ""}, "default_prompt_name": "query"}


@pytest.mark.parametrize(
    ("files", "notes"),
    [
        ({}, []),
        ({"modules": ENCODER, "sentence_bert_config": {"max_seq_length": 128, "do_lower_case": False}}, []),
        ({"sentence_bert_config": {"max_seq_length": 256}}, ["cuts texts to 256 tokens", "the task to 128"]),
        ({"sentence_bert_config": {"do_lower_case": True}}, ["lower-cases texts"]),
        ({"config_sentence_transformers": PROMPTED}, ["puts 'query: ' before texts"]),
        ({"config_sentence_transformers": PROMPTED | {"default_prompt_name": None}}, []),
        ({"config_sentence_transformers": PROMPTED | {"default_prompt_name": "none"}}, []),
        (
            {"config_sentence_transformers": {"similarity_fn_name": "dot"}, "modules": ENCODER},
            ["compares vectors by dot"],
        ),
        (
            {
                "config_sentence_transformers": {"similarity_fn_name": "dot"},
                "modules": [*ENCODER, *modules("Normalize")],
            },
            [],
        ),
        ({"config_sentence_transformers": {"similarity_fn_name": "cosine"}, "modules": ENCODER}, []),
        ({"config_sentence_transformers": {"prompts": None, "similarity_fn_name": None}, "modules": ENCODER}, []),
    ],
)
def test_what_sentence_transformers_does_beside_is_said(
    tmp_path: Path, files: dict[str, Any], notes: list[str]
) -> None:
    lines = list(vector_notes(folder_of(tmp_path, **files), byte_level(300), 128))
    assert len(lines) == bool(notes) and all(words in " ".join(lines) for words in notes)


def test_lower_case_is_not_spoken_of_where_the_tokenizer_makes_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, sentence_bert_config={"do_lower_case": True})
    assert not list(vector_notes(folder, wordpiece(300), 128))


@pytest.mark.parametrize("name", ["sentence_bert_config", "config_sentence_transformers"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    for content, message in (("{", "cannot be read"), ("[]", "expected a JSON object")):
        with pytest.raises(CompressError, match=rf"{name}\.json: {message}"):
            list(vector_notes(folder_of(tmp_path, **{name: content}), wordpiece(300), 128))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fields_that_this_package_writes_are_read_of_every_family(family: str, tmp_path: Path) -> None:
    """A bundle without the pooling is refused, and one without the threshold answers where the run did not."""
    own = {"sentence_pooling": "mean", THRESHOLD: 1.5}
    required = plain_config(family).to_dict() if family == "deberta-v2" else {}
    folder = folder_of(tmp_path, config={**required, "model_type": family, **own})
    assert own.items() <= read_config(folder).items()
