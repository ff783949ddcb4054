"""torchdistill imports torchvision, and the one of PyPI, built for CUDA, does not load beside a torch built for CPUs: it
registers functions for operators that its library was to define. With these declared it loads, without them, which texts do not need."""

from __future__ import annotations

import torch

if torch.version.cuda is None:
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
