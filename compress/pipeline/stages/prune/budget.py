"""Whether a budget of `prune` can be met, as far as that is known without measuring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from ....errors import CompressError
from ....models.dimensions import Dimensions
from ....quantize.word_blocks import row_bytes
from ....spec.stages import Prune
from ....tasks import encode
from ...plan import Node, Plan
from ..vocabulary import largest_dimensions, smallest_dimensions
from .later_stages import later_vocabulary
from .layer_costs import int8_of

_SAMPLE = 512  # training texts whose mean length a plan is checked with
# What a file has beyond its weights: the graph, and a factor for scales and what stays fp32.
_GRAPH_MB, _MOST_BESIDE = (
    0.1,
    1.1,
)


def check(plan: Plan, node: Node[Prune]) -> None:
    """Check that the budget allows the narrowest layers, and is less than the model has, as far as that is known without measuring."""
    from ....pruning.budget import flops_costs, narrowest

    spec, sizes = node.spec, plan.sizes[node.model]
    if spec.budget == "flops":
        train = plan.task.data.train
        sample = train.select(np.unique(np.linspace(0, len(train) - 1, _SAMPLE).astype(int)))
        length = encode(plan.source_of(node).tokenizer, sample, plan.task.spec.max_length).lengths.mean()
        costs = flops_costs(sizes, float(length))
        before = {stage: other.budgets[-1] for stage, other in _earlier_prunes(plan, node) if other.budget == "flops"}
        check_least(plan, node, costs.least / costs.whole / math.prod(before.values()), after=list(before))
    elif spec.budget == "size_mb":
        least, most = _with_tokens_left(plan, sizes)
        whole = _most_mb(plan, most)
        check_least(plan, node, least_mb(plan, narrowest(least)), vocabulary=least.vocabulary)
        if spec.budgets[0] >= _GRAPH_MB + _MOST_BESIDE * whole:
            raise CompressError(
                f"recipe {plan.recipe.name}, stage {node.stage}: size_mb: expected less than the model has, about "
                f"{whole:.3g}{_tokens(plan, most.vocabulary)}; found {spec.budgets[0]:g}"
            )
        _check_falls(plan, node)


def _with_tokens_left(plan: Plan, sizes: Dimensions) -> tuple[Dimensions, Dimensions]:
    """Return the sizes with the fewest and with the most tokens that a `vocabulary` stage may leave, as far as train shows."""
    node = later_vocabulary(plan)
    if node is None:
        return sizes, sizes
    least = smallest_dimensions(plan, node, sizes)
    most = least if not node.spec.corpus else largest_dimensions(node.spec, sizes)  # plain text may keep more
    return least, most


def _tokens(plan: Plan, vocabulary: int) -> str:
    node = later_vocabulary(plan)
    return "" if node is None else f" with the {vocabulary:,} tokens that stage {node.stage} may leave"


def _earlier_prunes(plan: Plan, node: Node[Prune]) -> list[tuple[str, Prune]]:
    """Return the prune stages before this one, with their names."""
    earlier = takewhile(lambda other: other is not node, plan.nodes)
    return [(other.stage, other.spec) for other in earlier if isinstance(other.spec, Prune)]


def _check_falls(plan: Plan, node: Node[Prune]) -> None:
    """Check that no earlier stage has made the file as small already."""
    for stage, other in _earlier_prunes(plan, node):
        if other.budget == "size_mb":
            least, budget = other.budgets[-1], node.spec.budgets[0]
            if budget >= least:
                raise CompressError(
                    f"recipe {plan.recipe.name}, stage {node.stage}: size_mb: expected less than the {least:g} of stage {stage} "
                    f"before it; found {budget:g}"
                )


def least_mb(plan: Plan, sizes: Dimensions) -> float:
    """Bytes of the weights in a file, in units of 1,000,000: a lower bound for any file."""
    int8 = int8_of(plan.recipe)
    if int8 is None:
        return 4 * sizes.parameters / 1e6
    word = row_bytes(sizes.vocabulary, sizes.embedding, bits=int8.word_bits if int8.embeddings else 32)
    return (sizes.parameters - sizes.word_parameters + sizes.vocabulary * word) / 1e6


def _most_mb(plan: Plan, sizes: Dimensions) -> float:
    """As `least_mb`, if all that `quantize` can leave in fp32 stays fp32."""
    int8 = int8_of(plan.recipe)
    return 4 * sizes.parameters / 1e6 if int8 is not None and int8.exclude else least_mb(plan, sizes)


def check_least(
    plan: Plan, node: Node[Prune], least: float, *, after: Sequence[str] = (), vocabulary: int | None = None
) -> None:
    """Raise `CompressError` if the budget is below `least`, in its units; a share is relative to what the stages `after` leave, if any are
    named. `vocabulary`: the number of tokens of the model that costs `least`."""
    tokens = _tokens(plan, vocabulary) if vocabulary is not None and node.spec.budget == "size_mb" else ""
    share = f" of what is left by stage {' and '.join(after)}" if after else ""
    if (budget := node.spec.budgets[-1]) < least:
        rounded = math.ceil(1000 * least) / 1000
        raise CompressError(
            f"recipe {plan.recipe.name}, stage {node.stage}: {node.spec.budget}: expected at least {rounded:g}{share}, "
            f"which one head in one layer and no neurons cost{tokens}; found {budget:g}; for less, prune a narrower student"
        )
