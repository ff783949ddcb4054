"""Students: their sizes, and building one from its teacher. Importing this brings in no torch."""

from .body import load_body
from .build import build_encoder, build_student
from .sizes import needs_sample, student_dimensions
from .table import STUDENTS, Architecture

__all__ = [
    "STUDENTS",
    "Architecture",
    "build_encoder",
    "build_student",
    "load_body",
    "needs_sample",
    "student_dimensions",
]
