"""Finished runs -> report.md, report.html and plot.svg, next to the results. Never imports torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from ..errors import CompressError
from ..files.atomic import write_bytes, write_text
from ..model_choice import Limits
from ..provenance import running_code
from ..results import (
    LOG,
    MODELS,
    PER_EXAMPLE,
    PREDICTIONS,
    REPORT,
    RESULT,
    SEVERAL,
    Result,
    is_report,
    read_result,
    write_result,
)
from .grouping.collect import collect
from .grouping.groups import Task, group
from .grouping.predictions import find_predictions, identity, load_answers, own_file, packed_answers
from .grouping.recorded_scores import metric_giving
from .page import tasks_of
from .pictures.plot_points import shape_of
from .recommendation import Recommendation, recommend, ship_command
from .sections import pruned_picture, reliability, similarity
from .shipment import shipment_of
from .summary import doubts_latency, markdown_table, summary_table

__all__ = [
    "Recommendation", "check_report_folder", "collect", "doubts_latency", "find_predictions", "load_answers", "markdown_table",
    "metric_giving", "recommendation_of", "ship_command", "shipment_of", "summary_table", "tasks_of", "write_report",
]  # fmt: skip


*_PAGES, _SIZES, _SEARCHED, _PRUNED, _RELIABILITY, _SIMILARITY = REPORT


def write_report(
    results: Sequence[Result],
    out: Path,
    *,
    folders: Sequence[Path] = (),
    recommended: Recommendation | None = None,
    tasks: Sequence[Task] | None = None,
) -> list[Path]:
    """Write `report.md`, `report.html`, `plot.svg` and the other pictures that there are (`sizes.svg` if time was measured,
    `sensitivity.svg` if a mix was searched, `pruned.svg` if a stage pruned, `reliability.svg` if enough answers have probabilities,
    `similarity.svg` if layers were compared), and `result.json` (several results: `results.json`) to `out`; and `per_example.npz`, every
    model's answers without texts, unless `out` is the run's own folder.

    `folders`: where predictions are, as `find_predictions` takes them; intervals over seeds are computed from them. `recommended`: the
    report's advice on which model to ship. `tasks`: `tasks_of(results, folders)`, if already computed.

    The same results give the same bytes. An existing report of the same results is kept: its dates and commands are those of the first run,
    and a fully cached run draws nothing.

    Raises `CompressError` if results do not fit in one report, or if `out` cannot be written, is another run's folder, or has files of
    these names that are not ours.
    """
    check_report_folder(out)
    own = any((out / name).exists() for name in (MODELS, PREDICTIONS))
    if (out / MODELS).exists() and list(map(identity, results)) != [_identity_in(out)]:
        raise CompressError(f"{out}: is the folder of another run; choose another folder for the report")
    files = [out / name for name in (*_PAGES, *_pictures(results))]
    data = out / (RESULT if len(results) == 1 else SEVERAL)
    places = [*folders, out]  # an existing report's copy of the answers serves its own runs again
    answers = [out / PER_EXAMPLE] if _has_answers(results, places, out) else []
    digest = _digest(results, folders, recommended)
    try:
        out.mkdir(parents=True, exist_ok=True)
        current = all(path.is_file() for path in answers) and _current(files, digest)
        # Before the data are written: the existing data tell whose answers a copy has.
        copied = [] if current else [(path, packed_answers(results, places)) for path in answers]
        _write_data(results, data)
        _delete_previous(out, [path.name for path in (*files, data, *answers)], keep_results=own)
        for path, content in copied:
            write_bytes(path, content)
        if not current:
            _draw(tasks or tasks_of(results, folders), folders, recommended, files, digest)
    except OSError as error:
        raise CompressError(
            f"{out}: cannot be written: {error.strerror}; choose another folder for the report"
        ) from None
    return [*files, data, *answers]


def recommendation_of(
    tasks: Sequence[Task], limits: Limits | None, folders: Sequence[Path] = ()
) -> Recommendation | None:
    """As `recommend`; None without limits."""
    return None if limits is None else recommend(tasks, limits, folders)


def _has_answers(results: Sequence[Result], folders: Sequence[Path], out: Path) -> bool:
    """Whether some answers can be copied, and are worth copying: a run's own folder has all of them."""
    at_hand = any(find_predictions(result, folders) for result in results)
    return at_hand and not (out / PREDICTIONS).exists()


def check_report_folder(out: Path) -> None:
    """Raise `CompressError` if a report in `out` would replace a file that is neither a report's nor a run's."""
    file_name = next((name for name in (*REPORT, RESULT, SEVERAL, PER_EXAMPLE) if (out / name).exists()), None)
    if file_name is None or is_report(out) or (file_name != REPORT[0] and _has_results(out)):
        return
    raise CompressError(
        f"{out / file_name}: is no report of this tool's and is not replaced; choose another folder for the report"
    )


def _has_results(out: Path) -> bool:
    """Whether the folder has the results of a run or a report, which are written before the report's pages."""
    try:
        return bool(collect([next(out / name for name in (RESULT, SEVERAL) if (out / name).exists())]))
    except (StopIteration, CompressError):
        return False


def _identity_in(out: Path) -> str | None:
    try:
        return identity(read_result(out))
    except CompressError:
        return None


def _pictures(results: Sequence[Result]) -> list[str]:
    """Names of the pictures besides the plot: sizes, if time was measured; searched models; pruned models; models with decisions; compared
    layers.

    Raises `CompressError` if results do not fit in one report.
    """
    tasks = group(results, lambda *_: None, lambda _: None)
    searched = any(model.info.get("divergence") for result in results for model in result.models)
    pictures = (
        (_SIZES, any(map(shape_of, tasks))),
        (_SEARCHED, searched),
        (_PRUNED, any(map(pruned_picture.is_drawn, results))),
        (_RELIABILITY, any(map(reliability.is_drawn, tasks))),
        (_SIMILARITY, any(map(similarity.is_drawn, results))),
    )
    return [name for name, there in pictures if there]


def _draw(
    tasks: Sequence[Task],
    folders: Sequence[Path],
    recommended: Recommendation | None,
    files: list[Path],
    digest: str,
) -> None:
    from . import render
    from .page import page_of
    from .pictures.parallel_drawing import drawn_ahead

    page = page_of(tasks, folders, recommended)
    report, html, plot, *others = files
    draw = {
        _SIZES: render.sizes,
        _SEARCHED: render.sensitivity,
        _PRUNED: render.pruned_svg,
        _RELIABILITY: render.reliability,
        _SIMILARITY: render.similarity,
    }
    with drawn_ahead(render.every_chart(tasks)):
        write_text(plot, render.plot(tasks))
        for path in others:
            write_text(path, draw[path.name](tasks))
        write_text(html, render.html_report(page, tasks))
    # Last: it marks the other files as complete.
    write_text(report, render.markdown_report(page, _mark(digest, files[1:])))


def _delete_previous(out: Path, names: Sequence[str], *, keep_results: bool) -> None:
    """Delete what a previous report wrote and this one does not, which writes the files `names`."""
    previous = {_SIZES, _SEARCHED, _PRUNED, _RELIABILITY, _SIMILARITY}
    if not keep_results:
        previous |= {RESULT, SEVERAL}
    if not (out / PREDICTIONS).exists():
        previous.add(PER_EXAMPLE)
    for name in previous.difference(names):
        (out / name).unlink(missing_ok=True)


def _write_data(results: Sequence[Result], path: Path) -> None:
    if len(results) == 1:
        write_result(results[0], path.parent)
    else:
        documents = [result.model_dump(mode="json") for result in results]
        write_text(path, json.dumps(documents, indent=1, ensure_ascii=False) + "\n")


def _current(files: list[Path], digest: str) -> bool:
    """Whether the report shows what `digest` stands for, and its page and pictures are as they were written."""
    try:
        return _mark(digest, files[1:]) in files[0].read_text(encoding="utf-8")[-200:]
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _mark(digest: str, files: Sequence[Path]) -> str:
    """Return a hash of what a report shows, and of the files that it is written with."""
    mark = hashlib.sha256(digest.encode())
    for file in files:
        mark.update(file.read_bytes())
    return mark.hexdigest()[:16]


def _digest(results: Sequence[Result], folders: Sequence[Path], recommended: Recommendation | None) -> str:
    """Hash of all that the report shows, and of the code that renders it, except whether stages were cached."""
    digest = hashlib.sha256(running_code().source.encode())
    digest.update(str(recommended).encode())
    for result in results:
        document = result.model_dump(mode="json", exclude={"created": True, "stages": {"__all__": {"cached"}}})
        digest.update(json.dumps(document, sort_keys=True).encode())
        log = own_file(result, folders, LOG)
        digest.update(log.read_bytes() if log else b"")
        digest.update(str(find_predictions(result, folders) is not None).encode())
    return digest.hexdigest()[:16]
