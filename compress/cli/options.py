"""Options that commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..files.paths import unambiguous_path
from ..machine import MOST_THREADS
from ..spec.limits import LARGEST_SEED, MOST_SEEDS
from .completion import complete_recipe, complete_student, complete_task, complete_teacher


def path_option(*names: str, metavar: str = "PATH", **words: Any) -> Any:
    """Return an option for a path, or for several. A leading `~` is expanded, also in quotes, where a shell leaves it."""
    return typer.Option(*names, metavar=metavar, parser=unambiguous_path, **words)


def path_argument(metavar: str, **words: Any) -> Any:
    """As `path_option`, for an argument."""
    return typer.Argument(metavar=metavar, parser=unambiguous_path, show_default=False, **words)


Recipes = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE", help="Recipe names or YAML files.", show_default=False, autocompletion=complete_recipe
    ),
]
OneOrMoreTasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        "-t",
        help="Task name or YAML file; repeatable, except in `search`. For your own files, use --train and --dev.",
        autocompletion=complete_task,
    ),
]
OWN_FILES = "Your own files, in place of a task"
Train = Annotated[
    Path | None,
    path_option(
        metavar="FILE",
        help="Labelled examples to train and tune on: .csv, .tsv, .jsonl, .parquet; .conll or .txt, one word per line; SQuAD's .json.",
        rich_help_panel=OWN_FILES,
    ),
]
Dev = Annotated[
    Path | None,
    path_option(
        metavar="FILE",
        help="Labelled examples to report scores on, with the same columns.",
        rich_help_panel=OWN_FILES,
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Text column; for choice also two, comma-separated: the context, and how each ending begins. "
        "Default: text; tokens for one word per line; question for SQuAD; query beside passage, document or doc.",
        rich_help_panel=OWN_FILES,
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of second texts, contexts or endings; for endings, also several columns, comma-separated.",
        rich_help_panel=OWN_FILES,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of labels or scores; for multilabel, also several columns of 0 and 1, comma-separated. Default: label; "
        "tags for one word per line; entities for spans; answers for SQuAD; relevance or score for passages.",
        rich_help_panel=OWN_FILES,
    ),
]
KindOfTask = Annotated[
    str | None,
    typer.Option(
        "--kind",
        help="classification, multilabel, tagging, span, ranking, choice, regression or embedding. Default: inferred from data. "
        "Answers with positions mean span, lists of words tagging, lists of labels multilabel, and lists of endings choice. Numbers "
        "beside a column query and one called passage, document or doc mean ranking; others with a decimal point, regression.",
        rich_help_panel=OWN_FILES,
    ),
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Length limit in tokens; longer texts are cut or read in windows. Default: 128; 384 for span.",
        rich_help_panel=OWN_FILES,
    ),
]
Teachers = Annotated[
    list[str] | None,
    typer.Option(
        "--teacher",
        help="Teacher card, checkpoint folder, or OWNER/NAME or OWNER/NAME@REVISION on the hub. Repeat for several: the student "
        "learns from the mean of their outputs. Default: the recipe's.",
        rich_help_panel="Models and stages",
        autocompletion=complete_teacher,
    ),
]
Student = Annotated[
    str | None,
    typer.Option(
        help="Student card; for a pre-trained student with its own tokenizer, a checkpoint folder, or OWNER/NAME or "
        "OWNER/NAME@REVISION on the hub. Default: the recipe's for the teacher's depth.",
        rich_help_panel="Models and stages",
        autocompletion=complete_student,
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, max=MOST_SEEDS, help="Number of seeds, starting at --seed.", rich_help_panel="Seeds")
]
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="The seed, or the first of --seeds.", rich_help_panel="Seeds")
]
BaseSeed = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=LARGEST_SEED,
        help="One seed for the teacher, the choice of its layers, the general stage and augmentation, shared by all --seeds.",
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
    path_option(help="Folder of GLUE's official files, or a saved `datasets` folder.", rich_help_panel="Data"),
]
Tuning = Annotated[
    Path | None,
    path_option(
        metavar="FILE",
        help="Examples for choosing checkpoints and settings, in the format of the task's files. Default: held out of the training data.",
        rich_help_panel="Data",
    ),
]
Out = Annotated[
    Path, path_option("--out", "-o", help="Folder for runs and the artefact store.", rich_help_panel="Output")
]
Precision = Annotated[
    str | None, typer.Option(help="fp32, bf16 or auto. Default: the recipe's.", rich_help_panel="Models and stages")
]
Refit = Annotated[
    bool,
    typer.Option(
        "--refit",
        help="Fine-tune a teacher that is already fine-tuned, or has a head for another kind of task.",
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
        help="Threads for training and evaluation. Default: the usable cores, shared among --jobs.",
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
        help="Parallel processes. They share the cores, unless --threads sets a number for each.",
        rich_help_panel="Machine",
    ),
]
Fsdp = Annotated[
    bool,
    typer.Option(
        "--fsdp",
        help="With torchrun, shard weights and optimizer state across training processes.",
        rich_help_panel="Machine",
    ),
]
BenchThreads = Annotated[
    int | None,
    typer.Option(min=1, max=MOST_THREADS, help="Threads for latency. Default: 1.", rich_help_panel="Machine"),
]
BenchRuns = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum timed runs per model and shape. For texts with the task's own lengths, it is rounded up to a multiple of 64. "
        "Default: 36.",
        rich_help_panel="Machine",
    ),
]
NoBench = Annotated[
    bool,
    typer.Option("--no-bench", help="Skip latency; measure accuracy, fidelity and sizes.", rich_help_panel="Machine"),
]
Rebench = Annotated[
    bool,
    typer.Option(
        "--rebench",
        help="Measure latency again, e.g. on a quieter machine. Earlier measurements are discarded.",
        rich_help_panel="Machine",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel="Output")]
UngroupedJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress but not notes.", rich_help_panel="Output")]
Report = Annotated[
    Path | None,
    path_option(
        help="Report folder. Default: the run's folder, or OUT/report for several runs.", rich_help_panel="Output"
    ),
]

LIMITS = "Limits"
MaxLatency = Annotated[
    float | None,
    typer.Option(
        "--max-latency-ms",
        help="Maximum CPU time on one thread for a text of 128 tokens, or for the longest text timed if the task's are shorter.",
        rich_help_panel=LIMITS,
    ),
]
MaxSize = Annotated[
    float | None, typer.Option("--max-size-mb", help="Maximum ONNX file size, in 10^6 bytes.", rich_help_panel=LIMITS)
]
MinScore = Annotated[
    float | None,
    typer.Option("--min-score", help="Minimum score on the tuning split, in points of 100.", rich_help_panel=LIMITS),
]

Bundle = Annotated[Path, path_argument("BUNDLE", help="A bundle's folder.")]
RuntimeThreads = Annotated[
    int | None, typer.Option(min=1, max=MOST_THREADS, help="Threads. Default: the usable cores.")
]
