"""Results grouped for reading: by task, then by what was run, then over seeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from ...errors import CompressError
from ...machine import usable_cores
from ...results import Latency, Machine, ModelResult, Result, Runtime
from ...results.fidelity import Delta
from ...results.timing import doubts_of, uses_cpu_time
from ..text.words import join_words
from .collect import check_together
from .conditions import identities, timed_threads, trainings
from .labels import is_timed, machine_of, row_labels
from .machines import by_task, lettered_machines
from .multiple_comparisons import Corrected, as_family

Shape = tuple[int, int]
MAIN_SHAPES: tuple[Shape, ...] = ((1, 32), (1, 128), (0, 0))
DeltaOf = Callable[["Variant", str], Delta | None]
GuessOf = Callable[[Sequence["Variant"]], float | None]


@dataclass(frozen=True)
class Variant:
    """One recipe with its teacher and student on one task: a run per seed, in order of seed. No more than one machine timed them.
    `teachers`: equal for recipes that started from the same fine-tuned teachers, timed alike on the same machines, which share one row."""

    label: str
    runs: tuple[Result, ...]
    teachers: tuple[object, ...]

    @property
    def first(self) -> Result:
        return self.runs[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    def models(self, name: str) -> list[ModelResult]:
        """Return the model called `name` (see `title`), for every seed."""
        return [model for run in self.runs for model in run.models if title(model) == name]


@dataclass(frozen=True)
class Row:
    """One model on one runtime, over seeds. `recipe` is empty for a baseline that recipes share, or could. `teachers`: equal for rows with
    the same baseline, and for that baseline."""

    recipe: str
    name: str
    models: tuple[ModelResult, ...]
    runtimes: tuple[Runtime, ...]
    delta: Delta | None
    teachers: tuple[object, ...]
    eager: bool = False
    corrected: Corrected | None = None  # with the task's other differences to the teacher

    @property
    def model(self) -> ModelResult:
        return self.models[0]

    @property
    def headline(self) -> float:
        return sum(model.headline for model in self.models) / len(self.models)

    @property
    def label(self) -> str:
        """The name in plots and sentences."""
        return ", ".join(part for part in (self.recipe, self.name, "PyTorch eager" if self.eager else "") if part)

    def latency(self, shape: Shape) -> Latency | None:
        """Return the median over seeds, field by field."""
        return median_latency(self.latencies(shape))

    def latencies(self, shape: Shape) -> list[Latency]:
        """Return the latencies of the seeds that were timed."""
        return [latency for runtime in self.runtimes for latency in runtime.latency if _shape(latency) == shape]


@dataclass(frozen=True)
class Task:
    """All that was run on one task. The first row is the baseline: the fp32 teacher on ONNX Runtime."""

    variants: tuple[Variant, ...]
    rows: tuple[Row, ...]
    guess: float | None = None  # points of the best constant answer, if known

    @property
    def is_guessed(self) -> bool:
        """Whether no teacher beats the best constant answer, so that scores say little about compression."""
        return self.guess is not None and all(row.headline <= self.guess for row in self.baselines)

    @property
    def first(self) -> Result:
        return self.variants[0].first

    @property
    def baseline(self) -> Row:
        return self.rows[0]

    @cached_property
    def results(self) -> list[Result]:
        return [run for variant in self.variants for run in variant.runs]

    @cached_property
    def shapes(self) -> list[Shape]:
        """The measured shapes, small to large, the task's own lengths last."""
        shapes = {_shape(latency) for row in self.rows for runtime in row.runtimes for latency in runtime.latency}
        return sorted(shapes, key=lambda shape: (shape == (0, 0), shape))

    @cached_property
    def cpu_time(self) -> bool:
        """Whether CPU time on one thread is the headline of all its times; else wall time."""
        return uses_cpu_time(runtime for row in self.rows for runtime in row.runtimes)

    @property
    def teacher(self) -> str:
        """The name in headings of the model that others are compared with."""
        return baseline_word(self.variants)

    def baseline_of(self, row: Row) -> Row:
        """Return the teacher that `row` is compared with: its recipe's own, or the one that all recipes share."""
        # It precedes the models that it taught.
        return next(other for other in self.rows if other.teachers == row.teachers)

    def is_baseline(self, row: Row) -> bool:
        return self.baseline_of(row) is row

    @property
    def baselines(self) -> list[Row]:
        """The baseline, or those of different teachers."""
        return list({row.teachers: self.baseline_of(row) for row in self.rows}.values())

    def teacher_of(self, recipe: str) -> str:
        """As `teacher`, for one recipe; the teacher's name, where recipes have different ones."""
        own = [variant for variant in self.variants if variant.label == recipe]
        names = {variant.first.teacher for variant in self.variants}
        return own[0].first.teacher if own and len(names) > 1 else baseline_word(own)

    def variant_of(self, row: Row) -> Variant:
        """Return the recipe's runs that made `row`; for a baseline, those of the first recipe that it is the teacher of."""
        return next(
            variant
            for variant in self.variants
            if (variant.label == row.recipe if row.recipe else variant.teachers == row.teachers)
        )

    def models_of(self, row: Row) -> list[tuple[Result, ModelResult]]:
        """Return the models of `row`, each with the run that made it."""
        return [(run, model) for model in row.models for run in self.results if any(model is own for own in run.models)]

    def in_doubt(self, row: Row) -> set[Shape]:
        """Return the shapes whose headline time is not to be trusted: the machine was busy in a run that made `row`."""
        return {shape for run, _ in self.models_of(row) for shape in doubts_of(run).of_headline(cpu=self.cpu_time)}

    def noise(self, shape: Shape) -> Latency | None:
        return median_latency([latency for run in self.results for latency in run.noise if _shape(latency) == shape])


def baseline_word(variants: Iterable[Variant]) -> str:
    """Return the baseline's name. A student of several teachers learnt their mean, and is compared with the first of them."""
    return "the first teacher" if any(variant.first.ensemble for variant in variants) else "the teacher"


def title(model: ModelResult) -> str:
    """Return e.g. `student int8`."""
    return f"{model.name} {model.precision}"


def median_latency(latencies: Sequence[Latency]) -> Latency | None:
    """Return the median over seeds of each figure that all have; without intervals, which belong to one seed's runs."""
    if len(latencies) < 2:
        return latencies[0] if latencies else None
    shared = {name: getattr(latencies[0], name) for name in ("batch", "length", "runs", "starts")}
    names = [name for name in Latency.model_fields if name not in shared and not name.endswith("_interval")]
    columns = {name: [getattr(latency, name) for latency in latencies] for name in names}
    fields = {name: None if None in values else median(values) for name, values in columns.items()}
    return Latency.model_validate(fields | shared)


def group(results: Sequence[Result], delta_of: DeltaOf, guess_of: GuessOf) -> list[Task]:
    """Return tasks in the order in which they first appear. Raises `CompressError` if results do not go together."""
    if not results:
        raise CompressError("no results to report; name at least one finished run")
    check_together(results)
    letters = lettered_machines(results)
    known = [_variants(part, letters) for part in by_task(results).values()]
    pairs = [(variant, name) for variants in known for variant in variants for name in _names(variant)[1:]]
    # Resampling examples takes most of a report's time, and NumPy does it without blocking Python's other threads.
    with ThreadPoolExecutor(usable_cores()) as pool:
        deltas = pool.map(lambda each: delta_of(*each), pairs)
        rows = [tuple(_correct_rows(list(_task_rows(variants, deltas)))) for variants in known]
    return [Task(variants, own, guess_of(variants)) for variants, own in zip(known, rows, strict=True)]


def _variants(results: list[Result], known: list[Machine]) -> tuple[Variant, ...]:
    runs: dict[Hashable, dict[int, Result]] = {}
    for result, identity in zip(results, identities(results), strict=True):
        seeds = runs.setdefault(identity, {})
        other = seeds.setdefault(result.seed, result)
        if other is not result:
            names = [other.run, result.run]
            if other.run == result.run:
                names = [f"{run.run} (made {run.created})" for run in (other, result)]
            raise CompressError(
                f"runs {join_words(names)} are the same recipe, task and seed {result.seed}; leave one out"
            )
    ordered = [tuple(seeds[seed] for seed in sorted(seeds)) for seeds in runs.values()]
    labels = row_labels(ordered, known)
    numbers = dict(zip(map(id, results), trainings(results), strict=True))
    variants = []
    for label, seed_runs in zip(labels, ordered, strict=True):
        teachers = sorted(numbers[id(run)] for run in seed_runs)  # seeds that share one teacher count once
        own = teachers[:1] if len(set(teachers)) == 1 else teachers
        variants.append(Variant(label, seed_runs, (*_teacher_conditions(seed_runs), *own)))
    return tuple(variants)


def _names(variant: Variant) -> list[str]:
    """Return the titles of its models, the baseline's first."""
    return list(dict.fromkeys(title(model) for model in variant.first.models))


def _task_rows(variants: tuple[Variant, ...], deltas: Iterator[Delta | None]) -> Iterator[Row]:
    """Yield every baseline once, then what each recipe made of it, with the next of `deltas` for each model."""
    baselines = {variant.teachers: tuple(variant.seeds) for variant in reversed(variants)}
    alike = len({_teacher_conditions(variant.runs) for variant in variants}) == 1
    by_seeds_alone = alike and len(set(baselines.values())) == len(baselines)
    by_teachers_alone = len({variant.first.teacher for variant in variants}) == len(baselines) > 1
    written = set()
    for variant in variants:
        names = _names(variant)
        if variant.teachers not in written:
            is_shared = len(baselines) == 1 or by_seeds_alone or by_teachers_alone
            what = (
                variant.first.teacher if by_teachers_alone else seeds_in_words(variant.seeds) if by_seeds_alone else ""
            )
            name = f"{names[0]} ({what})" if what and len(baselines) > 1 else names[0]
            yield from _of_model(variant, names[0], "" if is_shared else variant.label, None, shown=name)
        written.add(variant.teachers)
        for name in names[1:]:
            yield from _of_model(variant, name, variant.label, next(deltas))


def seeds_in_words(seeds: Sequence[int]) -> str:
    """Return e.g. `seed 0` or `seeds 0 and 1`."""
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {join_words([str(seed) for seed in seeds])}"


def _correct_rows(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows with all differences to the teacher corrected together, each model's once."""
    members = iter(as_family([row for row in rows if not row.eager]))
    for row in rows:
        yield row if row.eager else next(members)


def _of_model(variant: Variant, name: str, recipe: str, delta: Delta | None, *, shown: str = "") -> Iterator[Row]:
    """Yield the rows of the model called `name`, as `shown` if that is given."""
    models = tuple(variant.models(name))
    teachers, shown = variant.teachers, shown or name
    yield Row(recipe, shown, models, tuple(model.onnx for model in models if model.onnx), delta, teachers)
    eager = tuple(model.torch_eager for model in models if model.torch_eager)
    if eager:
        yield Row(recipe, shown, models, eager, delta, teachers, eager=True)


def _teacher_conditions(runs: Sequence[Result]) -> tuple[object, ...]:
    """Return what the rows of one teacher have in common, whatever its seeds: the machines, the one that timed it, how, and its card."""
    places = sorted({machine_of(run) for run in runs})
    clocks = sorted({machine_of(run) for run in runs if is_timed(run)})
    return *places, *clocks, *timed_threads(runs), runs[0].teacher


def _shape(latency: Latency) -> Shape:
    return latency.batch, latency.length
