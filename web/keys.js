// Keys on their way into the module: texts and bytes one behind the other, or integers.
import { CHUNK, encoder, integers, offsets, ROOM, text, u32, u64, u8, views, withBytes } from "./memory.js";

export function isNumber(key) {
  return typeof key === "number" || typeof key === "bigint";
}

export function putInteger(key, at) {
  if (typeof key === "bigint") {
    if (key < -(2n ** 63n) || key >= 2n ** 64n) throw new RangeError(`${key} does not fit into 64 bits`);
    u64[at / 8] = BigInt.asUintN(64, key);
    return;
  }
  if (!Number.isSafeInteger(key)) throw new RangeError(`${key} is not an integer below 2^53: use a bigint`);
  u32[at / 4] = key >>> 0;
  u32[at / 4 + 1] = Math.floor(key / 4294967296) >>> 0;
}

/** The bytes of a key that is no number. */
export function bytesOf(key) {
  if (typeof key === "string") return encoder.encode(key);
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

export function putKey(key, at, end) {
  if (typeof key === "string") return putText(key, at, end);
  const bytes = bytesOf(key);
  if (at + bytes.length > end) return -1;
  u8.set(bytes, at);
  return bytes.length;
}

/** One call for one key that does not fit into the scratch. */
export function oneLarge(key, use) {
  const bytes = bytesOf(key);
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

/** Many keys as an array or a typed array of numbers. */
export function listOf(keys) {
  if (Array.isArray(keys)) return keys;
  if (ArrayBuffer.isView(keys) || keys instanceof ArrayBuffer) {
    if (keys.BYTES_PER_ELEMENT > 1) return keys;
    throw new TypeError("bytes may be one key or many numbers: put them into an array, or widen them");
  }
  // A text is iterable, too, but nobody means its letters.
  if (typeof keys === "string" || typeof keys?.[Symbol.iterator] !== "function")
    throw new TypeError("keys come as an array, a typed array of numbers or another iterable");
  return Array.from(keys);
}

/**
 * Hands a list of keys to the module: texts(data, count) or numbers(count), with `from`, the index of the first of
 * them. Runs of one kind go together.
 */
export function feed(keys, texts, numbers) {
  views();
  if (ArrayBuffer.isView(keys)) return feedColumn(keys, numbers);
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
}

// A typed array of numbers. Signed ones are sign-extended.
function feedColumn(keys, numbers) {
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
}
