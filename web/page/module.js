import { unpack } from "../unpack.js";

let compiled;

/** The WebAssembly module, which wasm.js has brought along as a text; compiled once, for the page and its worker. */
export function theModule() {
  compiled ??= WebAssembly.compile(unpack(Uint8Array.from(atob(globalThis.perhapsWasm), (c) => c.charCodeAt(0))));
  return compiled;
}
