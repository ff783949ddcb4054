"""Encoder families that can be teachers or students, one file each; importing them does not import torch."""

from .albert import ALBERT
from .bert import BERT
from .counts import Counts
from .deberta import DEBERTA
from .distilbert import DISTILBERT
from .electra import ELECTRA
from .ernie import ERNIE
from .modernbert import MODERNBERT
from .mpnet import MPNET
from .parts import RELATIVE_BUCKETS
from .record import Family
from .roberta import CAMEMBERT, ROBERTA, XLM_ROBERTA
from .static import STATIC
from .xlnet import XLNET

__all__ = ["FAMILIES", "RELATIVE_BUCKETS", "Counts", "Family"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        *(BERT, DISTILBERT, ROBERTA, XLM_ROBERTA, CAMEMBERT, ELECTRA, ALBERT, MPNET, ERNIE),
        *(MODERNBERT, DEBERTA, XLNET, STATIC),
    )
}
