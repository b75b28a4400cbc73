import { unpackText } from "../unpack.js";

let compiled;

// wasm.js is larger than everything else together and comes last: until then, the page is painted.
function arrived() {
  if (globalThis.perhapsWasm !== undefined || document.readyState === "complete") return Promise.resolve();
  return new Promise((resolve) => {
    addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(resolve)), { once: true });
  });
}

async function compile() {
  await arrived();
  if (globalThis.perhapsWasm === undefined) throw new Error("wasm.js, a file beside this page, did not load");
  return WebAssembly.compile(unpackText(globalThis.perhapsWasm));
}

/** The WebAssembly module, which wasm.js brings along as a text; compiled once, for the page and its worker. */
export function theModule() {
  compiled ??= compile();
  return compiled;
}
