"""BUNDLE TEXTS FILE -> logits as JSON, by openvino, tokenizers and numpy, in fp32 where the graph is fp32."""

import json
import sys
from pathlib import Path

import numpy as np
import openvino
import tokenizers

folder, texts, file = sys.argv[1:]
settings = json.loads(Path(folder, "tokenizer_config.json").read_text(encoding="utf-8"))
tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.enable_truncation(settings["model_max_length"])
tokenizer.no_padding()
model = openvino.Core().compile_model(f"{folder}/onnx/{file}", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
rows = []
for text in json.loads(Path(texts).read_text(encoding="utf-8")):
    encoded = tokenizer.encode(text)
    arrays = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
    feed = {value.any_name: np.array([arrays[value.any_name]], np.int64) for value in model.inputs}
    rows.append(model(feed)[0][0].tolist())
print(json.dumps(rows))
