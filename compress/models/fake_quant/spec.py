"""Which parts of a classifier become int8: described by the graph, applied to the model. No torch."""

from __future__ import annotations

from dataclasses import dataclass

POSITIONS, SEGMENTS = "position_embeddings", "token_type_embeddings"  # transformers' names of these tables
TASKS = "task_type_embeddings"
LARGEST = 127  # quantized value in a table's row, on both sides of zero
CODES = 255  # of a row's scale: the scale is proportional to the code's square
LEAST_SCALE = 1e-30  # of a table that is all zeros


@dataclass(frozen=True)
class MatmulUse:
    """One use of a module's weight in a forward.

    `name`: of the matmul in the graph; `number`: index of the module's call, from 0; `source`: the tensor that is multiplied in integers,
    None if only the weight is int8. Matmuls that read one tensor share a range. `first`: the graph computes the matmul only for the first
    token of a text.
    """

    name: str
    module: str
    number: int
    source: str | None
    first: bool = False


@dataclass(frozen=True)
class QuantSpec:
    """Everything that becomes int8, and how. `tables`: the look-up modules. `one_segment`: the graph has merged the segment's row into the
    position table, where the model has two tables. `long`: those of `tables` with coded scales; rows of the others are int8 after
    subtraction of the mean of all rows."""

    uses: tuple[MatmulUse, ...]
    tables: tuple[str, ...]
    per_channel: bool = True
    bits: int = 8
    one_segment: bool = False
    long: tuple[str, ...] = ()
