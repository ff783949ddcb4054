"""Processes: those that a command starts, those that `torchrun` starts as one, and how all of them are ended."""
