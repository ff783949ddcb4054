"""BUNDLE TEXTS FILE -> vectors as JSON, by FastEmbed as a custom model, which pools the graph's first output."""

import json
import sys
from pathlib import Path

from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType

folder, texts, file = sys.argv[1:]
pooling = json.loads(Path(folder, "config.json").read_text(encoding="utf-8"))["sentence_pooling"]
size = json.loads(Path(folder, "1_Pooling", "config.json").read_text(encoding="utf-8"))["word_embedding_dimension"]
TextEmbedding.add_custom_model(
    model="local/bundle",
    pooling=PoolingType[pooling.upper()],
    normalization=True,
    sources=ModelSource(hf="local/bundle"),
    dim=size,
    model_file=f"onnx/{file}",
)
model = TextEmbedding("local/bundle", specific_model_path=folder, threads=1)
documents = json.loads(Path(texts).read_text(encoding="utf-8"))
print(json.dumps([vector.tolist() for vector in model.embed(documents, batch_size=1)]))
