"""Options that commands share, and what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CompressError
from ..spec.limits import LARGEST_SEED, MOST_SEEDS, MOST_THREADS

if TYPE_CHECKING:
    from ..candidates import Limits
    from ..pipeline import Request

Recipes = Annotated[list[str], typer.Argument(metavar="RECIPE", help="Recipe names or YAML files.", show_default=False)]
OneOrMoreTasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task", "-t", help="Task name or YAML file; repeat for several. Your own files instead: --train and --dev."
    ),
]
OWN_FILES = "Your own files, in place of a task"
Train = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Labelled examples (.csv, .tsv, .jsonl, .parquet; .conll or .txt of a word a line; SQuAD's .json) to train and choose on.",
        rich_help_panel=OWN_FILES,
    ),
]
Dev = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Labelled examples to report scores on, with the same columns.", rich_help_panel=OWN_FILES
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the texts. Default: text; tokens, of a word a line; question, of SQuAD's; query, beside passage.",
        rich_help_panel=OWN_FILES,
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the second texts of pairs, of contexts, or of endings, also several with commas between.",
        rich_help_panel=OWN_FILES,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the labels or scores; for multilabel also several columns of 0 and 1, with commas between. Default: label; "
        "tags, of a word a line; answers, of SQuAD's; relevance or score, of passages.",
        rich_help_panel=OWN_FILES,
    ),
]
KindOfTask = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="classification, multilabel, tagging, span, ranking, choice, regression or embedding. Default: as labels and texts are. "
        "Answers with places make span, lists of words tagging, lists of labels multilabel, and lists of endings choice. Numbers "
        "beside columns query and passage make ranking; others with a decimal point regression.",
        rich_help_panel=OWN_FILES,
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Tokens; longer texts are cut, or read in windows. Default: 128; 384 for answers to questions.",
        rich_help_panel=OWN_FILES,
    ),
]
Teachers = Annotated[
    list[str] | None,
    typer.Option(
        "--teacher",
        help="Teacher card, checkpoint folder, or the hub's OWNER/NAME or OWNER/NAME@REVISION; repeat for several, of which the "
        "student learns the mean. Default: the recipe's.",
        rich_help_panel="Models and stages",
    ),
]
Student = Annotated[
    str | None,
    typer.Option(
        help="Student card; or, for a pre-trained student with its own tokenizer, a checkpoint folder or the hub's OWNER/NAME or "
        "OWNER/NAME@REVISION. Default: the recipe's for the teacher's depth.",
        rich_help_panel="Models and stages",
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_SEEDS, help="Run with this many seeds, from --seed on.", rich_help_panel="Seeds")
]
Seed = Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="First seed.", rich_help_panel="Seeds")]
BaseSeed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=LARGEST_SEED,
        help="Seed of the teacher, the choice of its layers, the general stage and the augmentation, which all seeds then share.",
        rich_help_panel="Seeds",
    ),
]
Corpus = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Plain text for the stages that need it: files (.txt, .xz, .gz, .zst), folders, or "
        "hub:OWNER/NAME@REVISION; repeat for several.",
        rich_help_panel="Models and stages",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Folder of GLUE's official files, or a saved `datasets` folder.", rich_help_panel="Data"),
]
Tuning = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Examples to choose checkpoints and settings on, in the format of the task's files. Default: held out of train.",
        rich_help_panel="Data",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="Where runs and the store of artefacts are kept.", rich_help_panel="Output")
]
Precision = Annotated[
    str | None, typer.Option(help="fp32, bf16 or auto. Default: the recipe's.", rich_help_panel="Models and stages")
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit",
        help="Fine-tune a teacher that is fine-tuned already, or has a head for another kind of task.",
        rich_help_panel="Models and stages",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a field of the recipe, e.g. distill.epochs=5.",
        rich_help_panel="Models and stages",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_THREADS,
        help="Threads for training and evaluation. Default: the usable cores.",
        rich_help_panel="Machine",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        max=MOST_THREADS,
        help="Processes that share the work, and the cores unless --threads says how many each has.",
        rich_help_panel="Machine",
    ),
]
Fsdp = Annotated[
    bool,
    typer.Option(
        "--fsdp",
        help="Under torchrun: split weights and optimizer among the processes that train.",
        rich_help_panel="Machine",
    ),
]
BenchThreads = Annotated[
    int, typer.Option(min=1, max=MOST_THREADS, help="Threads for latency.", rich_help_panel="Machine")
]
BenchRuns = Annotated[int, typer.Option(min=1, help="Most timed runs per model and shape.", rich_help_panel="Machine")]
NoBench = Annotated[
    bool,
    typer.Option(
        "--no-bench", help="Leave latency out: accuracy, fidelity and sizes alone.", rich_help_panel="Machine"
    ),
]
Rebench = Annotated[
    bool,
    typer.Option(
        "--rebench",
        help="Measure latency anew, for instance on a quieter machine; what an earlier run measured goes.",
        rich_help_panel="Machine",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel="Output")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress; notes are still shown.", rich_help_panel="Output")
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="Where the report goes. Default: the run's folder, or OUT/report for several.", rich_help_panel="Output"
    ),
]

LIMITS = "Limits"
MaxLatency = Annotated[
    float | None,
    typer.Option(
        "--max-latency-ms",
        help="CPU time of one text of 128 tokens, or of the longest that was timed, where the task's are shorter; one thread.",
        rich_help_panel=LIMITS,
    ),
]
MaxSize = Annotated[
    float | None, typer.Option("--max-size-mb", help="Of the ONNX file, in 10^6 bytes.", rich_help_panel=LIMITS)
]
MinScore = Annotated[
    float | None, typer.Option("--min-score", help="Points on the tuning split.", rich_help_panel=LIMITS)
]


def seed_range(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


def limits_of(max_latency_ms: float | None, max_size_mb: float | None, min_score: float | None) -> Limits | None:
    """What a report recommends a model under, where anything is given. Raises `CompressError`."""
    from ..candidates import Limits

    values = (max_latency_ms, max_size_mb, min_score)
    return None if values == (None, None, None) else Limits(*values)


def checked_precision(precision: str | None) -> str | None:
    """Raises `CompressError` for one that training does not know."""
    if precision not in (None, "auto", "fp32", "bf16"):
        raise CompressError(f"--precision: expected fp32, bf16 or auto; found {precision!r}")
    return precision


def request_of(words: Mapping[str, Any]) -> Request:
    """What `run` or `plan` is asked for. `words`: the values of its parameters. Raises `CompressError`."""
    from ..pipeline import Request
    from ..tasks import own_files

    files = ("train", "dev", "text", "pair", "label", "kind", "max_length")
    lists = ("recipes", "tasks", "corpus", "overrides")
    plain = ("student", "base_seed", "data_dir", "tuning", "refit", "threads", "jobs", "fsdp")
    return Request(
        own=own_files(**{name: words[name] for name in files}, corpus=tuple(words["corpus"] or ())),
        seeds=seed_range(words["seed"], words["seeds"]),
        root=words["out"],
        precision=checked_precision(words["precision"]),
        teacher=tuple(words["teacher"]) if words["teacher"] else None,
        **{name: tuple(words[name] or ()) for name in lists},
        **{name: words[name] for name in plain if name in words},
    )
