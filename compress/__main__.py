"""The entry point of `compress` and `python -m compress`, and so of `torchrun -m compress`."""

from __future__ import annotations

import sys

from .processes.garbage import collect_rarely


def main() -> None:
    """Run the command line. A missing library is reported in one line: where only bundles are used, little is installed."""
    collect_rarely()
    try:
        from .cli import main as command

        command()
    except ModuleNotFoundError as error:
        if not error.name or error.name.startswith("compress"):
            raise
        remedy = "pip install typer" if error.name == "typer" else "install the package without --no-deps"
        sys.stderr.write(f"error: {error.name}: not installed, and this command needs it; {remedy}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
