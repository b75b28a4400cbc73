// LZMA (the stream of `xz --format=lzma`): the modules are a quarter smaller than with gzip, which is all that every
// browser can unpack by itself. A range decoder: each bit is coded by the probability that those before it suggest, and
// a match copies `length` bytes from `distance` back. Format: doc/lzma-file-format.txt of XZ Utils.

const TOP = 2 ** 24;
const probabilities = (count) => new Uint16Array(count).fill(1024);

/** The bytes of an LZMA stream whose header has its size. */
export function unpack(input) {
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  const properties = input[0];
  const lc = properties % 9;
  const lp = Math.floor(properties / 9) % 5;
  const pb = Math.floor(properties / 45);
  const size = view.getUint32(5, true);
  const out = new Uint8Array(size);
  let range = 0xffffffff;
  let code = view.getUint32(14); // byte 13 is 0
  let at = 18;

  // One bit by the probability in table[i].
  function bit(table, i) {
    const probability = table[i];
    const bound = (range >>> 11) * probability;
    let answer = 0;
    if (code >>> 0 < bound) {
      range = bound;
      table[i] = probability + ((2048 - probability) >>> 5);
    } else {
      range = (range - bound) >>> 0;
      code = (code - bound) >>> 0;
      table[i] = probability - (probability >>> 5);
      answer = 1;
    }
    if (range < TOP) {
      range = (range << 8) >>> 0;
      code = ((code << 8) | input[at++]) >>> 0;
    }
    return answer;
  }
  // So many bits of even odds.
  function direct(count) {
    let value = 0;
    for (; count > 0; --count) {
      range >>>= 1;
      const answer = code >= range ? 1 : 0;
      if (answer) code = (code - range) >>> 0;
      if (range < TOP) {
        range = (range << 8) >>> 0;
        code = ((code << 8) | input[at++]) >>> 0;
      }
      value = (value << 1) | answer;
    }
    return value >>> 0;
  }
  function tree(table, from, bits) {
    let node = 1;
    for (let i = 0; i < bits; ++i) node = (node << 1) | bit(table, from + node);
    return node - (1 << bits);
  }
  function reverseTree(table, from, bits) {
    let node = 1;
    let value = 0;
    for (let i = 0; i < bits; ++i) {
      const one = bit(table, from + node);
      node = (node << 1) | one;
      value |= one << i;
    }
    return value;
  }

  const lengths = () => ({
    choice: probabilities(2),
    low: probabilities(16 << 3),
    mid: probabilities(16 << 3),
    high: probabilities(256),
  });
  function length(coder, position) {
    if (bit(coder.choice, 0) === 0) return 2 + tree(coder.low, position << 3, 3);
    if (bit(coder.choice, 1) === 0) return 10 + tree(coder.mid, position << 3, 3);
    return 18 + tree(coder.high, 0, 8);
  }

  const literals = probabilities(0x300 << (lc + lp));
  const isMatch = probabilities(12 << 4);
  const isRep = probabilities(12);
  const isRep0 = probabilities(12);
  const isRep1 = probabilities(12);
  const isRep2 = probabilities(12);
  const isRep0Long = probabilities(12 << 4);
  const slots = probabilities(4 << 6);
  const special = probabilities(115);
  const aligned = probabilities(16);
  const matchLengths = lengths();
  const repLengths = lengths();
  let state = 0;
  let rep0 = 0;
  let rep1 = 0;
  let rep2 = 0;
  let rep3 = 0;
  let done = 0;

  function literal() {
    const before = done > 0 ? out[done - 1] : 0;
    const from = 0x300 * (((done & ((1 << lp) - 1)) << lc) + (before >>> (8 - lc)));
    let symbol = 1;
    if (state >= 7) {
      let match = out[done - rep0 - 1];
      do {
        const matchBit = match >>> 7;
        match = (match << 1) & 0xff;
        const one = bit(literals, from + ((1 + matchBit) << 8) + symbol);
        symbol = (symbol << 1) | one;
        if (matchBit !== one) break;
      } while (symbol < 0x100);
    }
    while (symbol < 0x100) symbol = (symbol << 1) | bit(literals, from + symbol);
    out[done++] = symbol & 0xff;
    state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
  }
  function distance(size) {
    const slot = tree(slots, Math.min(size - 2, 3) << 6, 6);
    if (slot < 4) return slot;
    const bits = (slot >>> 1) - 1;
    const base = ((2 | (slot & 1)) << bits) >>> 0;
    if (slot < 14) return base + reverseTree(special, base - slot, bits);
    return base + direct(bits - 4) * 16 + reverseTree(aligned, 0, 4);
  }

  while (done < size) {
    const position = done & ((1 << pb) - 1);
    if (bit(isMatch, (state << 4) + position) === 0) {
      literal();
      continue;
    }
    let count;
    if (bit(isRep, state) === 0) {
      [rep3, rep2, rep1] = [rep2, rep1, rep0];
      count = length(matchLengths, position);
      state = state < 7 ? 7 : 10;
      rep0 = distance(count);
    } else {
      if (bit(isRep0, state) === 0) {
        if (bit(isRep0Long, (state << 4) + position) === 0) {
          state = state < 7 ? 9 : 11;
          out[done] = out[done - rep0 - 1];
          ++done;
          continue;
        }
      } else if (bit(isRep1, state) === 0) {
        [rep1, rep0] = [rep0, rep1];
      } else if (bit(isRep2, state) === 0) {
        [rep2, rep1, rep0] = [rep1, rep0, rep2];
      } else {
        [rep3, rep2, rep1, rep0] = [rep2, rep1, rep0, rep3];
      }
      count = length(repLengths, position);
      state = state < 7 ? 8 : 11;
    }
    if (rep0 >= done || done + count > size) throw new Error("the module is damaged");
    for (; count > 0; --count, ++done) out[done] = out[done - rep0 - 1];
  }
  return out;
}

/** The same from base64. A loop: `Uint8Array.from` with a function takes four times as long. */
export function unpackText(packed) {
  const characters = atob(packed);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return unpack(bytes);
}
