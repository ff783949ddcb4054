"""What the stages that train share. Torch comes in with `run`, `initial_*`, `teacher_targets` and `throughput`."""
