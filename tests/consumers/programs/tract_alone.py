"""BUNDLE TEXTS FILE -> logits as JSON, by tract."""

import json
import sys
from pathlib import Path

import numpy
import tokenizers
import tract

folder, texts, file = sys.argv[1:]
tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
graph = tract.onnx().load(f"{folder}/onnx/{file}")
names = [graph.input_name(index) for index in range(graph.input_count())]
model = graph.into_model().into_runnable()
rows = []
for text in json.loads(Path(texts).read_text(encoding="utf-8")):
    encoding = tokenizer.encode(text)
    columns = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
    }
    outputs = model.run([numpy.array([columns[name]], numpy.int64) for name in names])
    rows.append(outputs[0].to_numpy()[0].tolist())
print(json.dumps(rows))
