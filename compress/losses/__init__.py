"""Losses: for each, its formula, its recipe options, the features it reads and how it is reduced. No torch."""

from .attention_mse import ATTENTION_MSE
from .embedding_mse import EMBEDDING_MSE
from .hard_label import HARD_LABEL
from .hidden_cosine import HIDDEN_COSINE
from .hidden_mse import HIDDEN_MSE
from .loss import Loss
from .margin_mse import MARGIN_MSE
from .masked_lm import MASKED_LM
from .masked_soft_target import MASKED_SOFT_TARGET
from .relation_kl import RELATION_KL
from .segment_pairs import NEXT_SENTENCE, SENTENCE_ORDER
from .similarity_mse import SIMILARITY_MSE
from .soft_cross_entropy import SOFT_CROSS_ENTROPY
from .soft_target import SOFT_TARGET

LOSSES: dict[str, Loss] = {
    "soft_target": SOFT_TARGET,
    "hard_label": HARD_LABEL,
    "hidden_cosine": HIDDEN_COSINE,
    "soft_cross_entropy": SOFT_CROSS_ENTROPY,
    "embedding_mse": EMBEDDING_MSE,
    "hidden_mse": HIDDEN_MSE,
    "attention_mse": ATTENTION_MSE,
    "relation_kl": RELATION_KL,
    "margin_mse": MARGIN_MSE,
    "sentence_order": SENTENCE_ORDER,
    "next_sentence": NEXT_SENTENCE,
    "masked_lm": MASKED_LM,
    "masked_soft_target": MASKED_SOFT_TARGET,
    "similarity_mse": SIMILARITY_MSE,
}
