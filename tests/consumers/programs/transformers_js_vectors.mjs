// BUNDLE TEXTS FILE -> vectors as JSON, by transformers.js in Node; it opens the file that its dtype stands for.
import fs from "node:fs";
import path from "node:path";
import { env, pipeline } from "@huggingface/transformers";

const [folder, texts, file] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const pooling = JSON.parse(fs.readFileSync(path.join(folder, "config.json"), "utf-8")).sentence_pooling;
const options = { dtype: file === "model.onnx" ? "fp32" : "q8" };
const extract = await pipeline("feature-extraction", path.basename(folder), options);
const rows = [];
for (const text of JSON.parse(fs.readFileSync(texts, "utf-8"))) {
  rows.push(Array.from((await extract(text, { pooling, normalize: true })).data));
}
console.log(JSON.stringify(rows));
