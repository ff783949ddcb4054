"""`compress`, `python -m compress`, and so `torchrun -m compress`."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line. Beside a bundle, where little is installed, a missing `typer` is one line."""
    try:
        from .cli import main as command
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write("error: typer: not installed; the command line needs it: pip install typer\n")
        sys.exit(2)
    command()


if __name__ == "__main__":
    main()
