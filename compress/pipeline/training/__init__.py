"""Code shared by the stages that train. `run`, `initial_*`, `teacher_targets` and `throughput` import torch."""
