// What only the page's module has (web/page.cc): explanations, conversions, curves, budgets, intervals, shards and the
// choice of a family.
import { handleOf, ready } from "../core.js";
import { bytesOf, isNumber, putInteger } from "../keys.js";
import { bytesLeft, check, integers, jsonLeft, views, wasm, withBytes } from "../memory.js";

/** As `perhaps explain --json`: every bit, slot or parity that a lookup of the key reads. */
export function explain(filter, key) {
  const handle = handleOf(filter);
  if (isNumber(key)) {
    views();
    putInteger(key, integers);
    check(wasm.web_explain(handle, 0, 0, integers));
  } else {
    const bytes = bytesOf(key);
    withBytes([bytes], (at) => check(wasm.web_explain(handle, at, bytes.length, 0)));
  }
  return jsonLeft();
}

/** The bytes of the same filter in another format, or an error that says why not. `entry`: one of many in the file. */
export function convert(filter, format, entry = -1) {
  withBytes([format], (at) => check(wasm.web_convert(handleOf(filter), at, entry)));
  return bytesLeft();
}

/** Bits per key of each family, by name, over rates from 10 % to 0.001 %. */
export async function sizeCurves(keys = 1e6) {
  await ready();
  check(wasm.web_curves(keys));
  return jsonLeft();
}

/** A memory budget over the levels of an LSM tree: `perhaps allocate --json`. */
export async function allocateLevels({
  levels = 4,
  ratio = 10,
  keys,
  budget,
  family = "line",
  ribbon = 0,
  runs = 1,
}) {
  await ready();
  withBytes([family], (at) => check(wasm.web_allocate(levels, ratio, keys, budget, at, ribbon, runs)));
  return jsonLeft();
}

/** Where the true rate lies at 95 % confidence, if `hits` of `tries` lookups of absent keys answered *perhaps*. */
export async function rateInterval(hits, tries) {
  await ready();
  check(wasm.web_interval(hits, tries));
  return jsonLeft();
}

const NEEDS = ["once", "remove", "recent", "unknown", "merge", "parquet"]; // of web/choose.h

/** {family, summary, reason, unmet} for needs that are true or false. */
export async function chooseFamily(needs) {
  await ready();
  check(wasm.web_choose(NEEDS.reduce((bits, name, i) => bits | (needs[name] ? 1 << i : 0), 0)));
  return jsonLeft();
}

/** Of a file of shards {count, here: [{index, offset, size}]}; of another null. */
export async function shardsIn(bytes, name) {
  await ready();
  return withBytes([bytes, name], (at, text) => {
    if (wasm.web_is_shards(at, bytes.length) === 0) return null;
    check(wasm.web_shards(at, bytes.length, text));
    return jsonLeft();
  });
}
/** Which of so many shards has a key. */
export function shardOf(key, count) {
  const bytes = bytesOf(key);
  return withBytes([bytes], (at) => wasm.web_shard_of(at, bytes.length, count));
}
