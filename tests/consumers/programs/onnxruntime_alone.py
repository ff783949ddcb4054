"""BUNDLE TEXTS FILE -> logits as JSON, by onnxruntime, tokenizers and numpy."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import tokenizers

folder, texts, file = sys.argv[1:]
settings = json.loads(Path(folder, "tokenizer_config.json").read_text(encoding="utf-8"))
tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.enable_truncation(settings["model_max_length"])
tokenizer.no_padding()
session = onnxruntime.InferenceSession(f"{folder}/onnx/{file}", providers=["CPUExecutionProvider"])
rows = []
for text in json.loads(Path(texts).read_text(encoding="utf-8")):
    encoded = tokenizer.encode(text)
    arrays = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    feed = {value.name: np.array([arrays[value.name]], np.int64) for value in session.get_inputs()}
    rows.append(session.run(["logits"], feed)[0][0].tolist())
print(json.dumps(rows))
