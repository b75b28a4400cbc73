// Filters over the WebAssembly module (web/module.cc): memory, keys and errors. Nothing here hashes, probes or knows a
// format. perhaps.js says where the module comes from.

const STATUS = [
  "OK",
  "TRUNCATED",
  "BAD_MAGIC",
  "BAD_VERSION",
  "BAD_CHECKSUM",
  "BAD_PARAMETER",
  "BAD_KEY",
  "MISMATCH",
  "FULL",
  "UNSUPPORTED",
  "IO",
  "NO_MEMORY",
  "TOO_SMALL",
  "INTERNAL",
];

/** What the library refuses. `code` is the status of perhaps.h without its prefix. */
export class PerhapsError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
    this.name = new.target.name;
  }
}
/** The bytes are not a filter, are cut short, damaged or newer than this library. */
export class FormatError extends PerhapsError {}
/** There is no room for another key. `inserted` keys of the call are in. */
export class FullError extends PerhapsError {
  inserted = 0;
}
/** The filter or the format cannot do that. */
export class UnsupportedError extends PerhapsError {}

const KINDS = {
  TRUNCATED: FormatError,
  BAD_MAGIC: FormatError,
  BAD_VERSION: FormatError,
  BAD_CHECKSUM: FormatError,
  FULL: FullError,
  UNSUPPORTED: UnsupportedError,
};

// ------------------------------------------------------------------------------------------------------------- module

let wasm; // the exports
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

// ------------------------------------------------------------------------------------------------------------- memory

// Keys of a call go through one scratch: their bytes, the offset of each, and a byte of answer for each.
const CHUNK = 1 << 15; // keys
const ROOM = 1 << 20; // bytes
let text, offsets, answers, integers, slot;
let u8 = new Uint8Array();
let u32, u64;

function reserve() {
  integers = wasm.malloc(CHUNK * 8);
  text = wasm.malloc(ROOM);
  offsets = wasm.malloc((CHUNK + 1) * 4);
  answers = wasm.malloc(CHUNK);
  slot = wasm.malloc(64);
}

// Views of the memory, made again whenever it has grown.
function views() {
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

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function textAt(at, size) {
  views();
  at >>>= 0;
  const end = size === undefined ? u8.indexOf(0, at) : at + size;
  return decoder.decode(u8.subarray(at, end));
}

// Calls use(pointers) with texts and other bytes in memory; null stays null.
function withBytes(list, use) {
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

function check(status) {
  if (status === 0) return;
  const code = STATUS[status] ?? "INTERNAL";
  throw new (KINDS[code] ?? PerhapsError)(code, textAt(wasm.web_error()));
}

// What the last call left.
function bytesLeft() {
  views();
  const at = wasm.web_result() >>> 0;
  const bytes = u8.slice(at, at + wasm.web_result_size());
  wasm.web_forget();
  return bytes;
}
function jsonLeft() {
  return JSON.parse(decoder.decode(bytesLeft()));
}

// --------------------------------------------------------------------------------------------------------------- keys

function isNumber(key) {
  return typeof key === "number" || typeof key === "bigint";
}

function putInteger(key, at) {
  if (typeof key === "bigint") {
    if (key < -(2n ** 63n) || key >= 2n ** 64n) throw new RangeError(`${key} does not fit into 64 bits`);
    u64[at / 8] = BigInt.asUintN(64, key);
    return;
  }
  if (!Number.isSafeInteger(key)) throw new RangeError(`${key} is not an integer below 2^53: use a bigint`);
  u32[at / 4] = key >>> 0;
  u32[at / 4 + 1] = Math.floor(key / 4294967296) >>> 0;
}

function bytesOf(key) {
  if (key instanceof Uint8Array) return key;
  if (key instanceof ArrayBuffer) return new Uint8Array(key);
  throw new TypeError("a key is a string, a Uint8Array, an integer or a bigint");
}

// Writes a text at `at`; returns its size, or -1 if it may not fit before `end`.
function putText(key, at, end) {
  const length = key.length;
  if (at + length > end) return -1;
  for (let i = 0; i < length; ++i) {
    const code = key.charCodeAt(i);
    if (code > 127) {
      if (at + 3 * length > end) return -1;
      return encoder.encodeInto(key, u8.subarray(at, end)).written;
    }
    u8[at + i] = code;
  }
  return length;
}

function putKey(key, at, end) {
  if (typeof key === "string") return putText(key, at, end);
  const bytes = bytesOf(key);
  if (at + bytes.length > end) return -1;
  u8.set(bytes, at);
  return bytes.length;
}

// One call for one key that does not fit into the scratch.
function oneLarge(key, use) {
  const bytes = typeof key === "string" ? encoder.encode(key) : bytesOf(key);
  return withBytes([bytes], (at) => {
    u32[offsets / 4] = 0;
    u32[offsets / 4 + 1] = bytes.length;
    return use(at, 1);
  });
}

// Writes a run of ASCII texts, with their offsets, in one call of the encoder: a third of the time of writing each.
// Returns how many; 0 if there are none, or others among them.
function putTexts(keys, from) {
  let end = from;
  let total = 0;
  for (; end < keys.length && end - from < CHUNK && typeof keys[end] === "string"; ++end) {
    if (total + keys[end].length > ROOM) break;
    total += keys[end].length;
    u32[offsets / 4 + end - from + 1] = total;
  }
  u32[offsets / 4] = 0;
  const { read, written } = encoder.encodeInto(keys.slice(from, end).join(""), u8.subarray(text, text + ROOM));
  return read === total && written === total ? end - from : 0;
}

// Hands keys to the module: texts(data, count) or numbers(count), with `from`, the index of the first of them. Runs of
// one kind go together.
function feed(keys, texts, numbers) {
  views();
  if (ArrayBuffer.isView(keys) && !(keys instanceof DataView)) return feedColumn(keys, numbers);
  if (!Array.isArray(keys)) keys = Array.from(keys);
  let from = 0;
  let plain = keys.length >= 16; // no text so far that is not ASCII
  while (from < keys.length) {
    const start = from;
    if (isNumber(keys[from])) {
      while (from < keys.length && from - start < CHUNK && isNumber(keys[from])) {
        putInteger(keys[from], integers + 8 * (from - start));
        ++from;
      }
      numbers(from - start, start);
    } else {
      const together = plain ? putTexts(keys, from) : 0;
      plain &&= together > 0;
      if (together > 0) {
        from += together;
        texts(text, together, start);
        views();
        continue;
      }
      let at = 0;
      u32[offsets / 4] = 0;
      while (from < keys.length && from - start < CHUNK && !isNumber(keys[from])) {
        const size = putKey(keys[from], text + at, text + ROOM);
        if (size < 0) break;
        at += size;
        ++from;
        u32[offsets / 4 + from - start] = at;
      }
      if (from === start) {
        oneLarge(keys[from], (data, count) => texts(data, count, start));
        ++from;
      } else {
        texts(text, from - start, start);
      }
    }
    views();
  }
  return keys.length;
}

// A typed array of numbers. Signed ones are sign-extended.
function feedColumn(keys, numbers) {
  if (keys instanceof Uint8Array || keys instanceof Int8Array || keys instanceof Uint8ClampedArray)
    throw new TypeError("is an array of bytes one key or many numbers? Put it into an array, or widen it");
  const wide =
    keys instanceof BigUint64Array
      ? keys
      : keys instanceof BigInt64Array
        ? new BigUint64Array(keys.buffer, keys.byteOffset, keys.length)
        : null;
  for (let from = 0; from < keys.length; from += CHUNK) {
    const count = Math.min(CHUNK, keys.length - from);
    if (wide !== null) {
      u64.set(wide.subarray(from, from + count), integers / 8);
    } else {
      for (let i = 0; i < count; ++i) putInteger(keys[from + i], integers + 8 * i);
    }
    numbers(count, from);
    views();
  }
  return keys.length;
}

// ------------------------------------------------------------------------------------------------------------- filter

/** For web/page/tools.js, which calls what only the page's module has. */
export const inside = {
  exports: () => wasm,
  check,
  withBytes,
  bytesLeft,
  jsonLeft,
  integerAt(key) {
    views();
    putInteger(key, integers);
    return integers;
  },
  bytesOfKey: (key) => (typeof key === "string" ? encoder.encode(key) : bytesOf(key)),
};

const abandoned = new FinalizationRegistry((handle) => wasm.web_free(handle));
const token = Symbol("perhaps");

function wanted(options, use) {
  const { keys = 0, fpr = 0, bitsPerKey = 0, maxBytes = 0, guardBits = 0, arity = 0 } = options;
  const numbers = new Float64Array([keys, fpr, bitsPerKey, maxBytes, guardBits, arity].map(Number));
  if (numbers.some((n) => !(n >= 0 && n < 2 ** 63)))
    throw new RangeError("a size or a rate is not a number from 0 on");
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
    inside.handleOf = (filter) => filter.#at;
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
    await ready();
    return wanted(options, () => made(wasm.web_new(slot)));
  }

  static async build(keys, options = {}) {
    await ready();
    const all = ArrayBuffer.isView(keys) ? keys : Array.isArray(keys) ? keys : Array.from(keys);
    // For as many as there are, unless told otherwise. A format of another system counts them itself.
    if (options.format === undefined && options.keys === undefined) options = { ...options, keys: all.length };
    if (all.length !== 0 && (ArrayBuffer.isView(all) || isNumber(all[0]))) return buildNumbers(all, options);
    const encoded = all.map((key) => (typeof key === "string" ? encoder.encode(key) : bytesOf(key)));
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
    this.#one(
      key,
      () => wasm.web_insert_integers(handle, integers, 1, slot),
      (data) => wasm.web_insert(handle, data, offsets, 1, slot),
    );
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
    let before = 0;
    const insert = (status) => {
      views();
      before += u32[slot / 4];
      try {
        check(status);
      } catch (error) {
        if (error instanceof FullError) error.inserted = before;
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
    if (!ArrayBuffer.isView(keys) && !Array.isArray(keys)) keys = Array.from(keys);
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
      keys,
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
    if (!(cells >= 1 && cells <= 65536)) throw new RangeError("from 1 to 65536 cells");
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
  views();
  let at = 0;
  feedOrRefuse(keys, (count) => {
    numbers.set(u64.subarray(integers / 8, integers / 8 + count), at);
    at += count;
  });
  return withBytes([new Uint8Array(numbers.buffer)], (data) =>
    wanted(options, () => made(wasm.web_build_integers(data, numbers.length, slot))),
  );
}
function feedOrRefuse(keys, numbers) {
  feed(
    keys,
    () => {
      throw new TypeError("build takes texts and bytes, or numbers, not both");
    },
    numbers,
  );
}

// --------------------------------------------------------------------------------------------------- without a filter

/** The version of the library. */
export async function version() {
  await ready();
  return textAt(wasm.web_version());
}
export async function families() {
  await ready();
  check(wasm.web_families());
  return jsonLeft();
}
export async function formats() {
  await ready();
  check(wasm.web_formats());
  return jsonLeft();
}
export async function sizeTable({ keys = 0, fpr = 0, bitsPerKey = 0, maxBytes = 0 } = {}) {
  await ready();
  check(wasm.web_sizes(keys, fpr, bitsPerKey, maxBytes));
  return jsonLeft();
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
