// In a browser: the logits of texts, by transformers.js on ONNX Runtime Web; it opens the file that its dtype stands for.
import { AutoModelForSequenceClassification, AutoTokenizer, env } from "/js/@huggingface/transformers/dist/transformers.min.js";

export async function answers(texts, file) {
  env.allowRemoteModels = false;
  env.allowLocalModels = true;
  env.localModelPath = "/models/";
  env.backends.onnx.wasm.wasmPaths = "/js/onnxruntime-web/dist/";
  const tokenizer = await AutoTokenizer.from_pretrained("bundle");
  const options = file === "default" ? {} : { dtype: file === "model.onnx" ? "fp32" : "q8" };
  const model = await AutoModelForSequenceClassification.from_pretrained("bundle", { device: "wasm", ...options });
  const rows = [];
  for (const text of texts) {
    const { logits } = await model(await tokenizer(text, { truncation: true }));
    rows.push(Array.from(logits.data));
  }
  return JSON.stringify(rows);
}
