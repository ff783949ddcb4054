// BUNDLE TEXTS FILE -> logits as JSON of texts and pairs, by transformers.js in Node; it opens the file that its dtype stands for.
import fs from "node:fs";
import path from "node:path";
import { AutoModelForSequenceClassification, AutoTokenizer, env } from "@huggingface/transformers";

const [folder, texts, file] = process.argv.slice(2);
const name = path.basename(folder);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const tokenizer = await AutoTokenizer.from_pretrained(name);
const options = file === "default" ? {} : { dtype: file === "model.onnx" ? "fp32" : "q8" };
const model = await AutoModelForSequenceClassification.from_pretrained(name, options);
const rows = [];
for (const text of JSON.parse(fs.readFileSync(texts, "utf-8"))) {
  const [first, second = null] = [text].flat();
  const { logits } = await model(await tokenizer(first, { text_pair: second, truncation: true }));
  rows.push(Array.from(logits.data));
}
console.log(JSON.stringify(rows));
