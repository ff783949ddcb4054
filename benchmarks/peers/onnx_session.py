"""An ONNX Runtime session as a function of ids and mask; peers open theirs with ONNX Runtime's defaults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from heads import side_by_side


def default_options(threads: int) -> Any:
    """Return the documented defaults, with two exceptions that all candidates share: `threads`, and no spinning of waiting threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def open_default(path: Path, threads: int) -> Any:
    """Open a session with `default_options`."""
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), default_options(threads), providers=["CPUExecutionProvider"])


def predictor(session: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return a function that feeds the graph's inputs, by their usual names."""
    names = [value.name for value in session.get_inputs()]

    def predict(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        full = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in names:
            full["token_type_ids"] = np.zeros_like(ids)
        return side_by_side(session.run(None, {name: full[name] for name in names}))

    return predict
