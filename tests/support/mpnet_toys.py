"""A tokenizer like MPNet's: RoBERTa's special tokens around BERT's vocabulary, in which BERT's special tokens are ordinary
words."""

from __future__ import annotations

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["<s>", "<pad>", "</s>", "<unk>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS += [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
WORDS += ["good", "bad", "film", "the", "is", "not", "acting", "story", ".", "<mask>"]


def mpnet_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocab={word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "[UNK]", AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer
