"""torchdistill imports torchvision, and the one of PyPI, built for CUDA, does not load beside a torch built for CPUs: it
registers a function for an operator that its library was to define. Declared here, it loads, without operators, which texts do not need."""

from __future__ import annotations

import torch

if torch.version.cuda is None:
    LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
    LIBRARY.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
