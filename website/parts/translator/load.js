// The stored translator, which the translators and the film of a page share.

import { Transformer } from "./model.js";

const WEIGHTS = new URL("weights.safetensors", import.meta.url);
let loading;

/** The model, which is fetched once; after a failure the next call tries anew. */
export function load() {
  loading ??= fetchModel().catch((error) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function fetchModel() {
  const response = await fetch(WEIGHTS);
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new Transformer(await response.arrayBuffer());
}
