"""ONNX graphs: analysing them, rewriting them, and writing them to files."""
