"""The largest numbers that a command or a call may ask for; a module of its own, since the command line's help needs them without
pydantic."""

LARGEST_SEED = 2**32 - 1  # numpy's
MOST_SEEDS = 1000  # of one command
LARGEST_WHOLE = 2**63 - 1  # in a file or on the command line: libraries do not take larger ones
