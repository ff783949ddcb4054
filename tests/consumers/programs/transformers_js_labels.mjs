// BUNDLE TEXTS FILE -> the score of each label of each text as JSON, by the text-classification pipeline of transformers.js in Node.
import fs from "node:fs";
import path from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const [folder, texts, file] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const options = { dtype: file === "model.onnx" ? "fp32" : "q8" };
const classify = await pipeline("text-classification", path.basename(folder), options);
const rows = [];
for (const text of JSON.parse(fs.readFileSync(texts, "utf-8"))) {
  rows.push(Object.fromEntries((await classify(text, { top_k: null })).map(({ label, score }) => [label, score])));
}
console.log(JSON.stringify(rows));
