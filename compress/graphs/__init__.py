"""ONNX graphs: what they compute, how they are changed, and how they are written to files."""
