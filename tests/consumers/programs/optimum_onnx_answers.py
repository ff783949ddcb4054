"""BUNDLE PAIRS FILE -> the logits of all tokens and the answer, per question and context, as JSON, by optimum-onnx and transformers."""

import json
import sys
from pathlib import Path

from optimum.onnxruntime import ORTModelForQuestionAnswering
from transformers import AutoTokenizer, pipeline

folder, texts, file = sys.argv[1:]
model = ORTModelForQuestionAnswering.from_pretrained(folder, subfolder="onnx", file_name=file)
tokenizer = AutoTokenizer.from_pretrained(folder)
reader = pipeline("question-answering", model=model, tokenizer=tokenizer)
rows = []
for question, context in json.loads(Path(texts).read_text(encoding="utf-8")):
    outputs = model(**tokenizer(question, context, truncation="only_second", return_tensors="pt"))
    logits = [outputs.start_logits[0].tolist(), outputs.end_logits[0].tolist()]
    answer = reader(question=question, context=context, max_answer_len=30, align_to_words=False)
    rows.append({"logits": logits, "answer": answer["answer"], "start": answer["start"], "end": answer["end"]})
print(json.dumps(rows))
