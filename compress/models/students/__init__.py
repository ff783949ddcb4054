"""Students: their sizes, and building one from its teacher. Importing this does not import torch."""

from .activations import evaluating, thin_sample
from .build import build_encoder, build_student
from .conversion import CONVERSION
from .copying import load_body
from .factorising import table_errors
from .notes import layer_norm_epsilon, not_kept
from .sizes import PRETRAINED, check_has_students, sample_tokens, student_dimensions
from .static import build_static

__all__ = [
    "CONVERSION",
    "PRETRAINED",
    "build_encoder",
    "build_static",
    "build_student",
    "check_has_students",
    "evaluating",
    "layer_norm_epsilon",
    "load_body",
    "not_kept",
    "sample_tokens",
    "student_dimensions",
    "table_errors",
    "thin_sample",
]
