// BUNDLE TEXTS FILE -> logits of every token but the special ones as JSON, by transformers.js in Node; texts have words of one token alone.
import fs from "node:fs";
import path from "node:path";
import { AutoModelForTokenClassification, AutoTokenizer, env, pipeline } from "@huggingface/transformers";

const [folder, texts, file] = process.argv.slice(2);
const name = path.basename(folder);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const tokenizer = await AutoTokenizer.from_pretrained(name);
const options = { dtype: file === "model.onnx" ? "fp32" : "q8" };
const model = await AutoModelForTokenClassification.from_pretrained(name, options);
const tagger = await pipeline("token-classification", name, options);
const rows = [];
for (const text of JSON.parse(fs.readFileSync(texts, "utf-8"))) {
  const { logits } = await model(await tokenizer(text, { truncation: true }));
  rows.push(...logits.tolist()[0].slice(1, -1));
  await tagger(text);
}
console.log(JSON.stringify(rows));
