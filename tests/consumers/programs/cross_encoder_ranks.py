"""BUNDLE QUERIES FILE -> [place, score] of each query's passages, best first, as JSON, by sentence-transformers' CrossEncoder.rank."""

import json
import sys
from pathlib import Path

from sentence_transformers import CrossEncoder

folder, queries, file = sys.argv[1:]
model = CrossEncoder(folder, backend="onnx", model_kwargs={"file_name": f"onnx/{file}"})
rows = [
    [[one["corpus_id"], float(one["score"])] for one in model.rank(query, passages)]
    for query, passages in json.loads(Path(queries).read_text(encoding="utf-8"))
]
print(json.dumps(rows))
