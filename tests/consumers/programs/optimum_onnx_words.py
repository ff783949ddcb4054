"""BUNDLE TEXTS FILE -> logits of every word's first token as JSON, by optimum-onnx and transformers; texts have only known words."""

import json
import sys
from pathlib import Path

from optimum.onnxruntime import ORTModelForTokenClassification
from transformers import AutoTokenizer, pipeline

folder, texts, file = sys.argv[1:]
model = ORTModelForTokenClassification.from_pretrained(folder, subfolder="onnx", file_name=file)
tokenizer = AutoTokenizer.from_pretrained(folder)
rows = []
for text in json.loads(Path(texts).read_text(encoding="utf-8")):
    encoded = tokenizer(text, truncation=True, return_tensors="pt")
    words = encoded.word_ids()
    first = [place for place, word in enumerate(words) if word is not None and words[place - 1] != word]
    rows += model(**encoded).logits[0, first].tolist()
    pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="simple")(text)
print(json.dumps(rows))
