// Approximate membership: could this key be in that set? A filter answers *perhaps* or *no*, and *no* is certain.
//
//   import { Filter } from "perhaps";
//   const seen = await Filter.create({ keys: 1e6, fpr: 0.01 });
//   seen.add("hello");
//   seen.has("world");                      // false: certainly absent
//
// The C++ library, compiled to WebAssembly: the same filters, the same files. The module is a text in a file beside
// this one, so that bundlers need no setting and nothing is fetched.
import { loadFrom } from "./core.js";
import { unpackText } from "./unpack.js";

// A function with one instruction of SIMD128.
const VECTORS = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

loadFrom(async () => {
  const { default: packed } = WebAssembly.validate(VECTORS)
    ? await import("./simd128.js")
    : await import("./plain.js");
  return WebAssembly.compile(unpackText(packed));
});

export {
  families,
  Filter,
  FormatError,
  formats,
  FullError,
  memoryInUse,
  PerhapsError,
  randomKeys,
  ready,
  sizeTable,
  UnsupportedError,
  version,
} from "./core.js";
