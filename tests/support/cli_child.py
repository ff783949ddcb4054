"""The child process behind recipe_runs.compress: imports the libraries once, then forks for each command line.

Each command is a line of JSON, `[arguments, working directory, file of stdin, file for stdout, file for stderr]`; the reply is
its exit code. What a command imports by itself is tested in tests/pipeline/test_cached_run.py.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import NoReturn

import vl_convert
from drawing_child import Drawer
from transformers.conversion_mapping import get_checkpoint_conversion_mapping

import compress
from compress.report.render import template
from compress.tasks import wordpiece

# The slowest imports of a run: with these done, a run of a tiny model takes half the time.
for library in (
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.onnx._internal.exporter._core",
    "transformers.modeling_utils",
    "transformers.models.albert.modeling_albert",
    "transformers.models.bert.modeling_bert",
    "transformers.models.distilbert.modeling_distilbert",
    "transformers.models.roberta.modeling_roberta",
    "onnxruntime",
    "optimum.utils",
    "rich.console",
    "scipy.optimize",
    *(module.name for module in walk_packages(compress.__path__, "compress.") if module.name != "compress.__main__"),
):
    import_module(library)

os.fsync = lambda fd: None  # as in conftest.py
wordpiece(300)  # the vocabulary of recipe_runs.TEACHER
get_checkpoint_conversion_mapping("bert")
for page in ("report.md.j2", "report.html.j2"):
    template(page)
vl_convert.vegalite_to_svg = Drawer().vegalite_to_svg
gc.collect()
gc.freeze()  # so that reference counting does not copy memory shared between the forks


def command(arguments: list[str], folder: str, stdin: str, stdout: str, stderr: str) -> int:
    """Run `compress` as the console script does, with these files as its standard streams; return the exit code."""
    for number, (path, flags) in enumerate(((stdin, os.O_RDONLY), (stdout, os.O_WRONLY), (stderr, os.O_WRONLY))):
        file = os.open(path, flags | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)  # drops input that the server has already buffered
    os.chdir(folder)
    sys.argv = ["compress", *arguments]
    from compress.cli import main

    try:
        main()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(bool(error.code))
    return 0


def _end(code: int) -> NoReturn:
    """Exit like the interpreter, but skip C++ destructors, which would wait for threads that a fork does not have."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    print("ready", flush=True)
    while line := sys.stdin.readline():
        process = os.fork()
        if process == 0:
            _end(command(*json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    serve()
