"""A tokenizer with enough whole words, and a tiny masked language model for it."""

from __future__ import annotations

from typing import Any

import pytest
from augment_texts import CONTENT, FUNCTION
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    vocabulary += [*CONTENT, *FUNCTION, ".", ",", "7"]
    wordpiece = Tokenizer(models.WordPiece(vocab={word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.add_special_tokens(vocabulary[:5])
    wordpiece.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return wordpiece


@pytest.fixture(scope="session")
def model(tokenizer: Tokenizer) -> Any:
    """A BERT of two layers with random weights, 40 positions."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(5)
    size: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    masked_lm = BertForMaskedLM(
        BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=40, initializer_range=0.5, **size)
    )
    return masked_lm.eval()
