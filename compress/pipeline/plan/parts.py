"""What a run is made of: what a plan has from the start, while stages still add nodes to it."""

from __future__ import annotations

from dataclasses import dataclass

from ...models.cards import StudentCard
from ...models.dimensions import Dimensions
from ...spec.kinds import KINDS
from ...spec.recipe import Recipe
from .sources import TaskSource, TextSource
from .teachers import TeacherSource, by_model


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """A recipe, a task, the models and the seeds of one run. `others`: the teachers besides the first, `teacher`. `pretrained`: the
    checkpoint that the student starts from, if it has its own. `sizes`: of each model, by its name in plans."""

    recipe: Recipe
    task: TaskSource
    teacher: TeacherSource
    others: tuple[TeacherSource, ...] = ()
    student: StudentCard | None
    pretrained: TeacherSource | None = None
    corpus: TextSource | None
    seed: int
    base_seed: int
    precision: str
    sizes: dict[str, Dimensions]

    @property
    def teachers(self) -> dict[str, TeacherSource]:
        """Model name of each teacher in the plan -> its source."""
        return by_model(self.teacher, self.others)

    def source(self, model: str) -> TeacherSource:
        """The checkpoint that gives a model its tokenizer, and its config except for sizes."""
        if model == "student" and self.pretrained is not None:
            return self.pretrained
        return self.teachers.get(model, self.teacher)

    @property
    def shares_tokenizer(self) -> bool:
        """Whether teacher and student tokenize texts alike."""
        return self.teacher.shares_tokenizer(self.pretrained)

    @property
    def learns_labels(self) -> bool:
        """Whether the task's labels train models."""
        return KINDS[self.task.spec.kind].learnt
