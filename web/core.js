// Filters over the WebAssembly module. Nothing here hashes, probes or knows a format.
import { FullError, PerhapsError } from "./errors.js";
import { bytesOf, feed, isNumber, listOf, oneLarge, putInteger, putKey } from "./keys.js";
import {
  answers,
  bytesLeft,
  check,
  integers,
  jsonLeft,
  offsets,
  ready,
  ROOM,
  slot,
  text,
  textAt,
  u32,
  u64,
  u8,
  views,
  wasm,
  withBytes,
} from "./memory.js";

export { FormatError, FullError, PerhapsError, UnsupportedError } from "./errors.js";
export { loadFrom, ready } from "./memory.js";

const abandoned = new FinalizationRegistry((handle) => wasm.web_free(handle));
const token = Symbol("perhaps");
/** For web/page/tools.js, which calls what only the page's module has. */
export let handleOf;

// What is not given is 0.
function numbersOf(...values) {
  const numbers = Float64Array.from(values, (value) => Number(value ?? 0));
  if (numbers.some((n) => !(n >= 0 && n < 2 ** 63)))
    throw new RangeError("a size or a rate must be a number, 0 or more");
  return numbers;
}

function wanted(options, use) {
  if (options.fpr === 0) throw new RangeError("fpr: a rate lies between 0 and 1"); // 0 is the default, to the library
  const { keys, fpr, bitsPerKey, maxBytes, guardBits, arity } = options;
  const numbers = numbersOf(keys, fpr, bitsPerKey, maxBytes, guardBits, arity);
  const seed = options.seed === undefined ? null : new Uint8Array(new BigUint64Array([BigInt(options.seed)]).buffer);
  const items = [
    options.family,
    options.format,
    parametersOf(options.parameters),
    new Uint8Array(numbers.buffer),
    seed,
    secretOf(options.secret),
  ];
  return withBytes(items, (...pointers) => {
    wasm.web_want(...pointers);
    return use();
  });
}

function secretOf(secret) {
  if (secret === undefined || secret === null) return null;
  if (!(secret instanceof Uint8Array) || secret.length !== 16) throw new TypeError("a secret is 16 bytes");
  return secret;
}

function parametersOf(parameters) {
  if (parameters === undefined || parameters === null) return null;
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

// The handle that a call left in the slot.
function made(status) {
  check(status);
  views();
  return new Filter(token, u32[slot / 4]);
}

async function readAll(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (typeof source?.arrayBuffer === "function") return new Uint8Array(await source.arrayBuffer());
  throw new TypeError("open takes bytes, a File or a Blob");
}

export class Filter {
  #handle;

  static {
    handleOf = (filter) => filter.#at;
  }

  constructor(secret, handle) {
    if (secret !== token) throw new TypeError("use Filter.create, Filter.build or Filter.open");
    this.#handle = handle;
    abandoned.register(this, handle, this);
  }

  get #at() {
    if (this.#handle === 0) throw new PerhapsError("BAD_PARAMETER", "the filter was freed");
    return this.#handle;
  }

  static async create(options) {
    if (options?.keys === undefined && options?.maxBytes === undefined)
      throw new TypeError("create needs the number of keys; 0 for a family that grows");
    await ready();
    return wanted(options, () => made(wasm.web_new(slot)));
  }

  static async build(keys, options = {}) {
    const all = listOf(keys);
    await ready();
    // For as many as there are, unless told otherwise. A format of another system counts them itself.
    if (options.format === undefined && options.keys === undefined) options = { ...options, keys: all.length };
    if (ArrayBuffer.isView(all) || all.some(isNumber)) return buildNumbers(all, options);
    const encoded = all.map(bytesOf);
    const ends = new Uint32Array(encoded.length + 1);
    let total = 0;
    encoded.forEach((key, i) => {
      total += key.length;
      ends[i + 1] = total;
    });
    if (total >= 2 ** 31) throw new PerhapsError("NO_MEMORY", "keys of 2 GiB and more do not fit into memory");
    const data = new Uint8Array(total);
    encoded.forEach((key, i) => data.set(key, ends[i]));
    return withBytes([data, new Uint8Array(ends.buffer)], (at, where) =>
      wanted(options, () => made(wasm.web_build(at, where, encoded.length, slot))),
    );
  }

  static async open(source, options = {}) {
    const bytes = await readAll(source);
    await ready();
    const name = options.fileName ?? (typeof source.name === "string" ? source.name : null);
    const items = [bytes, name, options.format, parametersOf(options.parameters), secretOf(options.secret)];
    return withBytes(items, (at, ...rest) => made(wasm.web_open(at, bytes.length, ...rest, slot)));
  }

  add(key) {
    const handle = this.#at;
    try {
      this.#one(
        key,
        () => wasm.web_insert_integers(handle, integers, 1, slot),
        (data) => wasm.web_insert(handle, data, offsets, 1, slot),
      );
    } catch (error) {
      if (error instanceof FullError) error.message = "the filter is full";
      throw error;
    }
    return this;
  }

  // One key, without the loop of many.
  #one(key, number, bytes) {
    views();
    if (isNumber(key)) {
      putInteger(key, integers);
      return check(number());
    }
    const size = putKey(key, text, text + ROOM);
    if (size < 0) return oneLarge(key, (data) => check(bytes(data)));
    u32[offsets / 4] = 0;
    u32[offsets / 4 + 1] = size;
    return check(bytes(text));
  }

  addMany(keys) {
    const handle = this.#at;
    keys = listOf(keys);
    let before = 0;
    const insert = (status) => {
      views();
      before += u32[slot / 4];
      try {
        check(status);
      } catch (error) {
        if (error instanceof FullError) {
          error.inserted = before;
          error.message = `full after ${before} of ${keys.length} keys`; // not of those that went together
        }
        throw error;
      }
    };
    feed(
      keys,
      (data, count) => insert(wasm.web_insert(handle, data, offsets, count, slot)),
      (count) => insert(wasm.web_insert_integers(handle, integers, count, slot)),
    );
    return this;
  }

  has(key) {
    const handle = this.#at;
    this.#one(
      key,
      () => wasm.web_query_integers(handle, integers, 1, answers),
      (data) => wasm.web_query(handle, data, offsets, 1, answers),
    );
    views();
    return u8[answers] !== 0;
  }

  hasMany(keys, into) {
    const handle = this.#at;
    keys = listOf(keys);
    if (into !== undefined && !(into instanceof Uint8Array && into.length >= keys.length))
      throw new RangeError(`hasMany needs a Uint8Array of at least ${keys.length} bytes for its answers`);
    const out = into === undefined ? new Uint8Array(keys.length) : into.subarray(0, keys.length);
    const take = (status, count, from) => {
      check(status);
      views();
      out.set(u8.subarray(answers, answers + count), from);
    };
    feed(
      keys,
      (data, count, from) => take(wasm.web_query(handle, data, offsets, count, answers), count, from),
      (count, from) => take(wasm.web_query_integers(handle, integers, count, answers), count, from),
    );
    return out;
  }

  remove(key) {
    return this.removeMany([key]).removed === 1;
  }

  removeMany(keys) {
    const handle = this.#at;
    const counts = { removed: 0, absent: 0, kept: 0 };
    const erase = (call) => {
      views();
      u8.fill(0, slot, slot + 24);
      const status = call();
      views();
      const [removed, absent, kept] = new Float64Array(wasm.memory.buffer, slot, 3);
      counts.removed += removed;
      counts.absent += absent;
      counts.kept += kept;
      check(status);
    };
    feed(
      listOf(keys),
      (data, count) => erase(() => wasm.web_erase(handle, data, offsets, count, slot)),
      (count) => erase(() => wasm.web_erase_integers(handle, integers, count, slot)),
    );
    return counts;
  }

  merge(other) {
    check(wasm.web_merge(this.#at, other.#at));
    return this;
  }

  intersect(other) {
    check(wasm.web_intersect(this.#at, other.#at));
    return this;
  }

  copy() {
    return made(wasm.web_copy(this.#at, slot));
  }

  toBytes() {
    check(wasm.web_bytes(this.#at));
    return bytesLeft();
  }

  get byteSize() {
    return wasm.web_byte_size(this.#at);
  }

  get readOnly() {
    return wasm.web_read_only(this.#at) !== 0;
  }

  describe() {
    check(wasm.web_info(this.#at));
    return jsonLeft();
  }

  fill(cells, entry = 0) {
    if (!(Number.isInteger(cells) && cells >= 1 && cells <= 65536)) throw new RangeError("from 1 to 65536 cells");
    return withBytes([new Uint8Array(4 * cells)], (at) => {
      check(wasm.web_fill(this.#at, entry, cells, at));
      views();
      return new Float32Array(u8.slice(at, at + 4 * cells).buffer);
    });
  }

  table(from = 0, size = 4096) {
    check(wasm.web_table(this.#at, from, size));
    return bytesLeft();
  }

  free() {
    if (this.#handle === 0) return;
    abandoned.unregister(this);
    wasm.web_free(this.#handle);
    this.#handle = 0;
  }
}
if (Symbol.dispose !== undefined) Filter.prototype[Symbol.dispose] = Filter.prototype.free;

function buildNumbers(keys, options) {
  const numbers = new BigUint64Array(keys.length);
  let at = 0;
  feed(
    keys,
    () => {
      throw new TypeError("build takes texts and bytes, or numbers, not both");
    },
    (count) => {
      numbers.set(u64.subarray(integers / 8, integers / 8 + count), at);
      at += count;
    },
  );
  return withBytes([new Uint8Array(numbers.buffer)], (data) =>
    wanted(options, () => made(wasm.web_build_integers(data, numbers.length, slot))),
  );
}

// --------------------------------------------------------------------------------------------------- without a filter

/** The version of the library. */
export async function version() {
  await ready();
  return textAt(wasm.web_version());
}
function listed(which, ...numbers) {
  check(wasm[which](...numbers));
  return jsonLeft();
}
export async function families() {
  await ready();
  return listed("web_families");
}
export async function formats() {
  await ready();
  return listed("web_formats");
}
export async function sizeTable({ keys, fpr, bitsPerKey, maxBytes } = {}) {
  await ready();
  return listed("web_sizes", ...numbersOf(keys, fpr, bitsPerKey, maxBytes));
}
/** Numbers as good as random, the same ones for the same seed. */
export async function randomKeys(count, seed = 1) {
  await ready();
  return withBytes([new Uint8Array(8 * count)], (at) => {
    wasm.web_random(at, count, seed);
    views();
    return new BigUint64Array(u8.slice(at, at + 8 * count).buffer);
  });
}
/** Bytes that the module has taken from the system so far. */
export async function memoryInUse() {
  await ready();
  return wasm.memory.buffer.byteLength;
}
