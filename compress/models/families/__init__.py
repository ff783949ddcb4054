"""The families of encoders that can be teachers or students. One file each; importing them brings in no torch."""

from .albert import ALBERT
from .bert import BERT
from .counts import Counts
from .deberta import DEBERTA
from .distilbert import DISTILBERT
from .electra import ELECTRA
from .ernie import ERNIE
from .modernbert import MODERNBERT
from .mpnet import MPNET
from .record import RELATIVE_BUCKETS, Family
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
