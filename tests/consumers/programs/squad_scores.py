"""FOLDER ANSWERS FILE -> exact match and F1 of each answer against its gold ones, as JSON, by transformers' copy of SQuAD's script."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

from transformers.data.metrics.squad_metrics import get_raw_scores

rows = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
examples = [
    SimpleNamespace(qas_id=number, answers=[{"text": each} for each in gold]) for number, (_, gold) in enumerate(rows)
]
scores = get_raw_scores(examples, {number: answer for number, (answer, _) in enumerate(rows)})
print(json.dumps([[each[number] for each in scores] for number in range(len(rows))]))
