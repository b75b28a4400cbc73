// What the tests of the package and of the page share.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A variable that the test cannot do without. */
function needed(name) {
  assert.ok(process.env[name], `${name} is not set: scripts/test-web runs these tests`);
  return process.env[name];
}

export const CLI = needed("PERHAPS_CLI");
export const ROOT = needed("PERHAPS_ROOT");
export const NPM = needed("PERHAPS_NPM"); // the packed package, and the folder it was made of
export const PAGE = needed("PERHAPS_PAGE");
export const TOOLS = needed("PERHAPS_WEB_TOOLS"); // with node_modules

export const temporary = () => mkdtempSync(join(tmpdir(), "perhaps-web-"));

/** The command line; its output. */
export function cli(...args) {
  return execFileSync(CLI, args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, SOURCE_DATE_EPOCH: "0" },
  });
}
export const json = (...args) => JSON.parse(cli(...args));
/** Exit code and output, whatever they are. */
export const attempt = (...args) => spawnSync(CLI, args, { encoding: "utf8", maxBuffer: 1 << 28 });

/** One golden file of each system and kind, with its name. */
export function goldenFiles() {
  const folder = join(ROOT, "test/golden/formats");
  const { cases } = JSON.parse(readFileSync(join(folder, "manifest.json")));
  const seen = new Map();
  for (const one of cases) {
    const kind = `${one.system} ${one.params.kind} ${one.params.type ?? ""}`;
    // Not the smallest: a filter of no key shows little.
    const before = seen.get(kind);
    if (one.n_keys <= 10000 && (before === undefined || one.n_keys > before.n_keys)) seen.set(kind, one);
  }
  assert.ok(seen.size >= 15, `only ${seen.size} kinds of golden files`);
  return [...seen].map(([kind, one]) => ({ kind, path: join(folder, one.filter), keys: join(folder, one.keys) }));
}

/** u32 count, then for each key its u32 length and its bytes. */
export function readKeys(path) {
  const bytes = readFileSync(path);
  const keys = [];
  for (let at = 4, left = bytes.readUInt32LE(0); left > 0; --left) {
    const size = bytes.readUInt32LE(at);
    keys.push(new Uint8Array(bytes.subarray(at + 4, at + 4 + size)));
    at += 4 + size;
  }
  return keys;
}

/** Every file below a folder. */
export function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

/**
 * The same numbers, whatever the order of the fields: integers exactly, rates to six digits, because logarithms and
 * powers of two C libraries differ in their last bits, and sums of differences multiply that: the rates of `allocate`
 * by up to 8e-9 of themselves, between glibc and musl.
 */
export function assertSame(ours, theirs, where) {
  if (typeof theirs === "number" && typeof ours === "number" && !Number.isInteger(theirs)) {
    const close = Math.abs(ours - theirs) <= 1e-6 * Math.max(Math.abs(ours), Math.abs(theirs));
    assert.ok(close, `${where}: ${ours} is not ${theirs}`);
  } else if (theirs !== null && typeof theirs === "object") {
    assert.equal(typeof ours, "object", where);
    assert.deepEqual(Object.keys(ours).sort(), Object.keys(theirs).sort(), where);
    for (const name of Object.keys(theirs)) assertSame(ours[name], theirs[name], `${where}.${name}`);
  } else {
    assert.equal(ours, theirs, where);
  }
}
