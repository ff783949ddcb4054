"""BUNDLE TEXTS FILE -> vectors as JSON, by sentence-transformers with its ONNX backend, which pools token states itself."""

import json
import sys
from pathlib import Path

from sentence_transformers import SentenceTransformer

folder, texts, file = sys.argv[1:]
model = SentenceTransformer(folder, backend="onnx", model_kwargs={"file_name": f"onnx/{file}"})
rows = [model.encode(text).tolist() for text in json.loads(Path(texts).read_text(encoding="utf-8"))]
print(json.dumps(rows))
