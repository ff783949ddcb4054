"""Code shared by the stages that train. `run`, `initial_*`, `held_out`, `teacher_targets` and `throughput` import torch."""
