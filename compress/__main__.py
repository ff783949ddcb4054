"""`python -m compress`, and so `torchrun -m compress`."""

from .cli import main

main()
