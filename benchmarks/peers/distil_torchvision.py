"""Declare the torchvision operators that it needs to load beside a torch for CPUs.

torchdistill imports torchvision. PyPI's build is for CUDA and does not load beside a torch built for CPUs, because it registers functions
for operators that its library was to define. With these declarations it loads without them; texts do not need them.
"""

from __future__ import annotations

import torch

if torch.version.cuda is None:
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
