"""ONNX Runtime sessions: untrusted files are checked first, and every session has the same options."""
