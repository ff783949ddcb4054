"""BUNDLE TEXTS FILE -> the score of each label of each text as JSON, by the text-classification pipeline on optimum-onnx."""

import json
import sys
from pathlib import Path

from optimum.onnxruntime import ORTModelForSequenceClassification
from transformers import AutoTokenizer, pipeline

folder, texts, file = sys.argv[1:]
model = ORTModelForSequenceClassification.from_pretrained(folder, subfolder="onnx", file_name=file)
classify = pipeline("text-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder))
rows = [
    {one["label"]: one["score"] for one in classify(text, top_k=None)}
    for text in json.loads(Path(texts).read_text(encoding="utf-8"))
]
print(json.dumps(rows))
