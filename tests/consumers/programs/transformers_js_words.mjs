// BUNDLE TEXTS FILE -> logits of every word's first token as JSON, by transformers.js in Node; WordPiece marks the tokens that follow.
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
  const tokens = tokenizer.tokenize(text);
  rows.push(...logits.tolist()[0].slice(1, -1).filter((_, place) => !tokens[place].startsWith("##")));
  await tagger(text);
}
console.log(JSON.stringify(rows));
