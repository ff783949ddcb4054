"""BUNDLE TEXTS FILE -> logits of texts and pairs as JSON, by sentence-transformers' CrossEncoder."""

import json
import sys
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

folder, texts, file = sys.argv[1:]
model = CrossEncoder(folder, backend="onnx", model_kwargs={"file_name": f"onnx/{file}"})
rows = [
    model.predict(text, activation_fn=torch.nn.Identity()).tolist()
    for text in json.loads(Path(texts).read_text(encoding="utf-8"))
]
print(json.dumps(rows))
