"""Child processes: each has a time limit, and is stopped together with everything that it started."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import CheckFailed

_GRACE = 10.0  # seconds to wait for a killed process; one that the kernel holds is abandoned
_COMMAND, _LAST_WORDS = 120, 300  # characters of a message


def run(command: Sequence[str | Path], seconds: float, *, environment: Mapping[str, str] | None = None) -> str:
    """Run `command` and return its stdout. `environment`: its complete environment; default: ours.

    CheckFailed: its exit status is not 0, or it has not ended in `seconds`. Its output goes through files, because a process
    that it leaves behind could hold a pipe open forever.
    """
    words = [str(word) for word in command]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=environment, process_group=0
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise CheckFailed(
                f"{_format_command(words)}: it did not end within {seconds:g} s; it was stopped, with all that it started"
            ) from None
        finally:
            kill_process(process)
        written, complaint = (_read(file) for file in (out, errors))
    if code:
        raise CheckFailed(
            f"{_format_command(words)}: {how_it_ended(code)}: {_last_words(complaint) or _last_words(written)}"
        )
    return written


def kill_process(process: subprocess.Popen[Any]) -> int | None:
    """Kill `process`, its descendants, and the rest of its group if it leads one; return its exit status.

    None: the kernel did not release it.
    """
    import psutil

    started = []
    with suppress(psutil.Error):
        started = psutil.Process(process.pid).children(recursive=True) if process.returncode is None else []
    if not _shares_our_group(process.pid):
        with suppress(ProcessLookupError, PermissionError):  # the latter on macOS, for a group of zombies
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for child in started:
        with suppress(psutil.Error):
            child.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    return process.returncode


def how_it_ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def _shares_our_group(pid: int) -> bool:
    try:
        return os.getpgid(pid) == os.getpgrp()
    except ProcessLookupError:  # it is gone, but its children may not be
        return False


def _format_command(words: Sequence[str]) -> str:
    text = shlex.join(words)
    return text if len(text) <= _COMMAND else f"{text[:_COMMAND]}…"


def _read(file: Any) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _last_words(text: str) -> str:
    return " ".join(text.split())[-_LAST_WORDS:]
