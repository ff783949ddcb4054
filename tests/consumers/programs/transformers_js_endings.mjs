// BUNDLE QUESTIONS FILE -> the logit of each question's endings as JSON, by transformers.js in Node, which has no class for multiple choice.
import fs from "node:fs";
import path from "node:path";
import { AutoModel, AutoTokenizer, env } from "@huggingface/transformers";

const [folder, questions, file] = process.argv.slice(2);
const name = path.basename(folder);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const tokenizer = await AutoTokenizer.from_pretrained(name);
const model = await AutoModel.from_pretrained(name, { dtype: file === "model.onnx" ? "fp32" : "q8" });
const rows = [];
for (const [context, endings] of JSON.parse(fs.readFileSync(questions, "utf-8"))) {
  const contexts = endings.map(() => context);
  const { logits } = await model(await tokenizer(contexts, { text_pair: endings, padding: true }));
  rows.push(Array.from(logits.data));
}
console.log(JSON.stringify(rows));
