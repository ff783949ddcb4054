"""Students: their sizes, and building one from its teacher. Importing this brings in no torch."""

from .activations import evaluating, thinned
from .build import build_encoder, build_student
from .conversion import CONVERSION
from .copying import load_body
from .factorising import table_errors
from .notes import not_kept
from .sizes import sample_tokens, student_dimensions

__all__ = [
    "CONVERSION",
    "build_encoder",
    "build_student",
    "evaluating",
    "load_body",
    "not_kept",
    "sample_tokens",
    "student_dimensions",
    "table_errors",
    "thinned",
]
