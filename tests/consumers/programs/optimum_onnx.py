"""BUNDLE TEXTS FILE -> logits of texts and pairs as JSON, by optimum-onnx and transformers."""

import json
import sys
from pathlib import Path

from optimum.onnxruntime import ORTModelForSequenceClassification
from transformers import AutoTokenizer

folder, texts, file = sys.argv[1:]
model = ORTModelForSequenceClassification.from_pretrained(folder, subfolder="onnx", file_name=file)
tokenizer = AutoTokenizer.from_pretrained(folder)
rows = []
for text in json.loads(Path(texts).read_text(encoding="utf-8")):
    parts = [text] if isinstance(text, str) else text
    rows.append(model(**tokenizer(*parts, truncation=True, return_tensors="pt")).logits[0].tolist())
print(json.dumps(rows))
