"""The widths that a `prune` stage sets, checked against the layers of the model that it receives."""

from __future__ import annotations

from dataclasses import replace

from ....models.dimensions import Dimensions
from ....models.pruned.shape import PrunedShape
from ....spec.recipe import Stage
from ....spec.stages import Prune
from ...plan import Draft, Node, Plan


def widths_of(spec: Prune, sizes: Dimensions) -> list[tuple[int, int]]:
    """Return the heads and the neurons to keep in each layer. ValueError naming the field: a model of these sizes cannot have them."""
    from ....pruning.budget import unit_counts

    heads, neurons = zip(*unit_counts(sizes), strict=True)
    kept_heads, kept_neurons = _each_layer("heads", spec.heads, heads), _each_layer("neurons", spec.neurons, neurons)
    if not any(kept_heads):
        raise ValueError(
            "heads: expected a head in at least one layer, since without any, tokens cannot attend to each "
            "other; found none; give a layer one"
        )
    _check_multiples(spec, kept_neurons, neurons)
    return list(zip(kept_heads, kept_neurons, strict=True))


def _each_layer(name: str, setting: int | tuple[int, ...] | None, unpruned: tuple[int, ...]) -> tuple[int, ...]:
    """Return the width of each layer, as set. `unpruned`: the number of units that each layer has."""
    if setting is None:
        return unpruned
    widths = setting if isinstance(setting, tuple) else (setting,) * len(unpruned)
    if len(widths) != len(unpruned):
        raise ValueError(
            f"{name}: expected one number, or a list of {len(unpruned)}, one for each layer; found a list of {len(widths)}"
        )
    for number, (width, most) in enumerate(zip(widths, unpruned, strict=True)):
        if width > most:
            raise ValueError(
                f"{_field_place(name, setting, number)}: expected at most {most}, as many as layer {number + 1} has; found {width}"
            )
    return widths


def _check_multiples(spec: Prune, kept: tuple[int, ...], unpruned: tuple[int, ...]) -> None:
    from ....pruning.unit_choice import MULTIPLE

    for number, (width, most) in enumerate(zip(kept, unpruned, strict=True)):
        if width % MULTIPLE and width != most:
            below = width - width % MULTIPLE
            raise ValueError(
                f"{_field_place('neurons', spec.neurons, number)}: expected a multiple of {MULTIPLE}, or all {most} of "
                f"layer {number + 1}; found {width}; give {below} or {min(below + MULTIPLE, most)}"
            )


def _field_place(name: str, setting: int | tuple[int, ...] | None, number: int) -> str:
    return f"{name}[{number}]" if isinstance(setting, tuple) else name


def pruned_dimensions(spec: Prune, sizes: Dimensions) -> Dimensions | None:
    """Return the sizes with these widths; None if the run chooses them, by the importance of heads and neurons."""
    if spec.budget != "widths":
        return None
    widths = widths_of(spec, sizes)
    neurons = [width for _, width in widths]
    if len(set(neurons)) == 1 and neurons[0] and all(heads == sizes.heads for heads, _ in widths):
        return replace(sizes, intermediate=neurons[0], pruned=None)
    # Which heads are kept is decided by the run; the sizes depend only on how many.
    return replace(sizes, pruned=PrunedShape(tuple(tuple(range(heads)) for heads, _ in widths), tuple(neurons)))


def smallest(plan: Plan, node: Node[Prune], sizes: Dimensions) -> Dimensions:
    """Return the sizes with these widths; for a budget the narrowest sizes, since a budget is an upper limit, and heads and neurons that do
    not matter are removed even if it allows them."""
    from ....pruning.budget import narrowest

    known = pruned_dimensions(node.spec, sizes)
    return narrowest(sizes) if known is None else known


def planned_widths(draft: Draft, stage: Stage) -> list[tuple[int, int]]:
    """As `widths_of`, for the model that the stage receives. CompressError naming recipe, stage and field: it cannot have them, or its
    widths are known only in the run."""
    sizes = draft.sizes[draft.current]
    for node in draft.nodes:
        if isinstance(node.spec, Prune):
            after = pruned_dimensions(node.spec, sizes)
            if after is None:
                name = "neurons" if stage.spec.heads is None else "heads"
                raise draft.fails(
                    stage.id,
                    f"{name}: expected a model whose widths are known; found one that stage {node.stage} before it prunes to a budget of "
                    f"{node.spec.budget}; give that stage widths too, or this one a budget",
                )
            sizes = after
    try:
        return widths_of(stage.spec, sizes)
    except ValueError as error:
        raise draft.fails(stage.id, str(error)) from None
