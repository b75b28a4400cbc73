// The WebAssembly module (web/module.cc) and its memory. perhaps.js says where the module comes from.
import { errorOf, PerhapsError } from "./errors.js";

export let wasm; // what the module exports
let load; // () => Promise<WebAssembly.Module>
let starting;

/** Where the module comes from. Before the first filter. */
export function loadFrom(loader) {
  load = loader;
}

/** Resolves once filters can be made; every function that needs the module awaits it. */
export function ready() {
  starting ??= load().then(start);
  return starting;
}

async function start(module) {
  // What C++'s library wants of a system. Nothing here reads a file or writes to one.
  const word = (at, value) => new DataView(wasm.memory.buffer).setUint32(at, value, true);
  const known = {
    emscripten_notify_memory_growth() {},
    environ_sizes_get: (count, size) => (word(count, 0), word(size, 0), 0),
    environ_get: () => 0,
    proc_exit() {
      throw new PerhapsError("INTERNAL", "the module ended");
    },
    abort() {
      throw new PerhapsError("INTERNAL", "the module aborted");
    },
    number_of: (at) => Number(textAt(at)), // NaN: no number
    getentropy(at, size) {
      crypto.getRandomValues(new Uint8Array(wasm.memory.buffer, at, size));
      return 0;
    },
  };
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = known[name] ?? (() => (from === "env" ? -52 : 52)); // ENOSYS
  }
  const instance = await WebAssembly.instantiate(module, imports);
  wasm = instance.exports;
  wasm._initialize();
  reserve();
}

// Keys of a call go through one scratch: their bytes, the offset of each, and a byte of answer for each.
export const CHUNK = 1 << 15; // keys
export const ROOM = 1 << 20; // bytes
export let text, offsets, answers, integers, slot;
export let u8 = new Uint8Array();
export let u32, u64;

function reserve() {
  integers = wasm.malloc(CHUNK * 8);
  text = wasm.malloc(ROOM);
  offsets = wasm.malloc((CHUNK + 1) * 4);
  answers = wasm.malloc(CHUNK);
  slot = wasm.malloc(64);
}

/** Views of the memory, made again whenever it has grown. */
export function views() {
  if (u8.buffer === wasm.memory.buffer) return;
  u8 = new Uint8Array(wasm.memory.buffer);
  u32 = new Uint32Array(wasm.memory.buffer);
  u64 = new BigUint64Array(wasm.memory.buffer);
}

function allocate(size) {
  const at = wasm.malloc(Math.max(size, 1));
  if (at === 0) throw new PerhapsError("NO_MEMORY", `not enough memory for ${size} bytes`);
  return at >>> 0;
}

export const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function textAt(at, size) {
  views();
  at >>>= 0;
  const end = size === undefined ? u8.indexOf(0, at) : at + size;
  return decoder.decode(u8.subarray(at, end));
}

/** Calls use(pointers) with texts and other bytes in memory; null stays null. */
export function withBytes(list, use) {
  const taken = [];
  try {
    const pointers = list.map((item) => {
      if (item === undefined || item === null) return 0;
      const bytes = typeof item === "string" ? encoder.encode(item + "\0") : item;
      const at = allocate(bytes.length);
      taken.push(at);
      views();
      u8.set(bytes, at);
      return at;
    });
    return use(...pointers);
  } finally {
    for (const at of taken) wasm.free(at);
  }
}

/** Throws what a call has refused. */
export function check(status) {
  if (status !== 0) throw errorOf(status, textAt(wasm.web_error()));
}

/** What the last call left. */
export function bytesLeft() {
  views();
  const at = wasm.web_result() >>> 0;
  const bytes = u8.slice(at, at + wasm.web_result_size());
  wasm.web_forget();
  return bytes;
}
export function jsonLeft() {
  return JSON.parse(decoder.decode(bytesLeft()));
}
