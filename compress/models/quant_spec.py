"""What of a classifier becomes int8: said by the graph, done to the model. No torch."""

from __future__ import annotations

from dataclasses import dataclass

POSITIONS, SEGMENTS = "position_embeddings", "token_type_embeddings"  # what transformers calls these tables
TASKS = "task_type_embeddings"
LARGEST = 127  # level of a table's row, on either side of zero
CODES = 255  # of a row's scale: each stands for its square
LEAST_SCALE = 1e-30  # of a table that is all zeros


@dataclass(frozen=True)
class MatmulUse:
    """One of the times that a forward multiplies by a module's weight.

    `name`: of the matmul in the graph; `number`: which of the module's calls it is, from 0; `source`: the tensor that is
    multiplied in integers, None where the weight alone is int8. Matmuls that read one tensor have one range. `first`:
    the graph computes the matmul for the first token of a text alone.
    """

    name: str
    module: str
    number: int
    source: str | None
    first: bool = False


@dataclass(frozen=True)
class QuantSpec:
    """All that becomes int8, and how. `tables`: the modules that look up rows; `one_segment`: the graph has the segment's row
    in the table of positions, where the model has two tables. `long`: those of `tables` whose scales are coded; of the others
    each row is int8 less the mean of all."""

    uses: tuple[MatmulUse, ...]
    tables: tuple[str, ...]
    per_channel: bool = True
    bits: int = 8
    one_segment: bool = False
    long: tuple[str, ...] = ()
