"""BUNDLE QUESTIONS FILE -> the logits of each question's endings as JSON, by optimum-onnx, whose model takes rows of pairs here."""

import json
import sys
from pathlib import Path

from optimum.onnxruntime import ORTModelForMultipleChoice
from transformers import AutoTokenizer

folder, questions, file = sys.argv[1:]
model = ORTModelForMultipleChoice.from_pretrained(folder, subfolder="onnx", file_name=file)
tokenizer = AutoTokenizer.from_pretrained(folder)
rows = []
for context, endings in json.loads(Path(questions).read_text(encoding="utf-8")):
    pairs = tokenizer([context] * len(endings), endings, padding=True, truncation="only_first", return_tensors="pt")
    rows.append(model(**pairs).logits.flatten().tolist())
print(json.dumps(rows))
