"""What the specs of all stages share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ..fields import Spec

Stages = Sequence[tuple[str, Any]]  # (kind, spec) of a recipe's stages, in order


class StageSpec(Spec):
    """A stage's settings in a recipe. If it has a field `enabled`, this switches it off, or is `auto`.

    `repeats`: may come several times, each with a `name` of its own. `serves_distill`: serves a later distill stage. `recovered`: may be
    followed by distill stages that recover what it makes. `activation`: the activation that it sets in the model's feed-forward layers, if
    it changes it. `reserved`: names of its nodes in plans; no other stage may have such a name. `files`: a field that names a file or a
    checkpoint -> the name of its hash in plans.
    """

    repeats: ClassVar[bool] = False
    serves_distill: ClassVar[bool] = False
    recovered: ClassVar[bool] = False
    activation: ClassVar[str | None] = None
    reserved: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[Mapping[str, str]] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether it is not switched off. With `auto` it may still be left out."""
        return getattr(self, "enabled", True) is not False

    @classmethod
    def problems(cls, stages: Stages) -> Iterator[Any]:
        """Yield the mistakes among the stages of a recipe that concern this kind, as `problem` makes them."""
        yield from ()


def problem(where: tuple[int | str, ...], kind: str, value: Any, context: dict[str, Any] | None = None) -> Any:
    """Return an error for a `ValidationError`, so that a check over several fields can name the wrong one."""
    return {"type": kind, "loc": where, "input": value, "ctx": context or {}}


def misfit(where: tuple[int | str, ...], text: str) -> Any:
    """Return a `problem` among several stages, in words, below `stages`."""
    return problem(("stages", *where), "value_error", None, {"error": ValueError(text)})
