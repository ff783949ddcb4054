"""What the specs of all stages share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ..fields import Spec

Stages = Sequence[tuple[str, Any]]  # (kind, spec) of a recipe's stages, in order


class StageSpec(Spec):
    """What a recipe says of a stage. A field `enabled`, where it has one, switches it off, or says `auto`.

    `repeats`: it may come several times, each with a `name` of its own. `serves_distill`: it is for a distill stage after it. `recovered`:
    distill stages may stand behind it too, and recover what it makes. `activation`: of the feed-forward layers of the model that it leaves,
    where it is another than before.
    `reserved`: what plans call what it makes; no other stage may be called so. `files`: a field that names a file or a
    checkpoint -> what plans call its hash.
    """

    repeats: ClassVar[bool] = False
    serves_distill: ClassVar[bool] = False
    recovered: ClassVar[bool] = False
    activation: ClassVar[str | None] = None
    reserved: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[Mapping[str, str]] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether it is not switched off. One that is on `auto` may yet be left out."""
        return getattr(self, "enabled", True) is not False

    @classmethod
    def problems(cls, stages: Stages) -> Iterator[Any]:
        """What is wrong with the stages of a recipe, of which this kind may be one, as `problem` gives it."""
        yield from ()


def problem(where: tuple[int | str, ...], kind: str, value: Any, context: dict[str, Any] | None = None) -> Any:
    """One of a `ValidationError`'s, so that a check over several fields says which one is wrong."""
    return {"type": kind, "loc": where, "input": value, "ctx": context or {}}


def misfit(where: tuple[int | str, ...], text: str) -> Any:
    """A `problem` of several stages, in words, below `stages`."""
    return problem(("stages", *where), "value_error", None, {"error": ValueError(text)})
