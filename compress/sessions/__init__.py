"""ONNX Runtime sessions: files that may not be ours are checked first, and every session has the same options."""
