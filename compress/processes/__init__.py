"""Processes: those that a command starts, those that `torchrun` starts together, and how all of them are stopped."""
