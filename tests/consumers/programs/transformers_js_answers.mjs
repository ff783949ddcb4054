// BUNDLE PAIRS FILE -> per question and context start and end logits of all tokens, and the answer, as JSON, by transformers.js in Node.
import fs from "node:fs";
import path from "node:path";
import { AutoModelForQuestionAnswering, AutoTokenizer, env, pipeline } from "@huggingface/transformers";

const [folder, texts, file] = process.argv.slice(2);
const name = path.basename(folder);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const tokenizer = await AutoTokenizer.from_pretrained(name);
const options = { dtype: file === "model.onnx" ? "fp32" : "q8" };
const model = await AutoModelForQuestionAnswering.from_pretrained(name, options);
const reader = await pipeline("question-answering", name, options);
const rows = [];
for (const [question, context] of JSON.parse(fs.readFileSync(texts, "utf-8"))) {
  const { start_logits, end_logits } = await model(await tokenizer(question, { text_pair: context, truncation: true }));
  const logits = [Array.from(start_logits.data), Array.from(end_logits.data)];
  rows.push({ logits, answer: (await reader(question, context)).answer });
}
console.log(JSON.stringify(rows));
