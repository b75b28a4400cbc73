// Promises: the npm package makes the filters and files of the C++ library, refuses damage with typed errors, gives
// back memory, and works from its tarball in a fresh project and bundled. Would notice: a table, an answer, a number
// or a refusal that differs from the command line's, a leak, a missing file in the tarball, a module that has grown.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import {
  assertSame,
  attempt,
  cli,
  filesBelow,
  goldenFiles,
  json,
  NPM,
  readKeys,
  ROOT,
  temporary,
  TOOLS,
} from "./support.mjs";

const perhaps = await import(pathToFileURL(join(NPM, "perhaps/perhaps.js")));
const LOADED = ["perhaps.js", "core.js", "keys.js", "memory.js", "errors.js", "unpack.js", "simd128.js"];
const { Filter, FormatError, FullError, PerhapsError, UnsupportedError } = perhaps;
// The page's module has more functions. Here it runs in node.
const page = await import(pathToFileURL(join(ROOT, "web/core.js")));
const tools = await import(pathToFileURL(join(ROOT, "web/page/tools.js")));
page.loadFrom(() => WebAssembly.compile(readFileSync(join(ROOT, "build/wasm32/web/perhaps_web_page.wasm"))));
const folder = temporary();
const words = Array.from({ length: 3000 }, (_, i) => `key ${i} ü`);
writeFileSync(join(folder, "words"), words.map((word) => `${word}\n`).join(""));
const others = Array.from({ length: 3000 }, (_, i) => `absent ${i}`);
writeFileSync(join(folder, "others"), others.map((word) => `${word}\n`).join(""));
const families = (await perhaps.families()).map((family) => family.name);

const whole = (filter) => filter.table(0, 1 << 28);

test("the version is that of the library and of the build", async () => {
  const declared = /project\(perhaps VERSION ([\d.]+)/.exec(readFileSync(join(ROOT, "CMakeLists.txt"), "utf8"))[1];
  assert.equal(await perhaps.version(), declared);
  assert.equal(JSON.parse(readFileSync(join(NPM, "perhaps/package.json"))).version, declared);
});

test("what C++ wrote opens, answers the same and is written again byte for byte", async () => {
  for (const family of families) {
    const path = join(folder, family);
    cli("build", "--filter", family, "--fpr", "0.01", "-o", path, join(folder, "words"));
    const bytes = new Uint8Array(readFileSync(path));
    const filter = await Filter.open(bytes);
    assert.ok(
      filter.hasMany(words).every((answer) => answer === 1),
      family,
    );
    const said = attempt("query", "-c", path, join(folder, "others")).stdout.trim();
    assert.equal(String(filter.hasMany(others).reduce((a, b) => a + b)), said, family);
    assert.deepEqual(Buffer.from(filter.toBytes()), Buffer.from(bytes), family);
    filter.free();
  }
});

test("what JavaScript builds has the table that C++ builds, and C++ reads it", async () => {
  for (const family of families) {
    const theirs = await Filter.open(new Uint8Array(readFileSync(join(folder, family))));
    const ours = await Filter.build(words, { family, keys: family === "scalable" ? 0 : words.length, fpr: 0.01 });
    assert.deepEqual(Buffer.from(whole(ours)), Buffer.from(whole(theirs)), family);
    const path = join(folder, `${family}.js`);
    writeFileSync(path, ours.toBytes());
    assert.equal(attempt("query", "-v", "-c", path, join(folder, "words")).stdout.trim(), "0", family);
    const [info] = json("info", "--json", path);
    const description = ours.describe();
    for (const field of ["family", "hash", "keys", "bits", "bytes", "probes", "fill", "fpr", "more"])
      assertSame(description[field], info[field], `${family}.${field}`);
    ours.free();
    theirs.free();
  }
});

test("golden files of C++ open, also keyed ones with their secret", async () => {
  const files = filesBelow(join(ROOT, "test/golden/perhaps")).filter((path) => path.endsWith(".perhaps"));
  assert.ok(files.length >= 20);
  const refused = new Set();
  for (const path of files) {
    const bytes = new Uint8Array(readFileSync(path));
    // Maps, exact sets and ranges: the package refuses them by name, the page opens them.
    const [, other] = /(map|coded|exact|range)-/.exec(basename(path)) ?? [];
    if (other !== undefined && !/keyed/.test(path)) {
      await assert.rejects(
        Filter.open(bytes),
        (error) =>
          error instanceof UnsupportedError &&
          error.message.includes(`kind '${other}': this package opens filters`),
        path,
      );
      const opened = await page.Filter.open(bytes);
      assert.equal(opened.describe().family, json("info", "--json", path)[0].family, path);
      opened.free();
      refused.add(other);
      continue;
    }
    if (/keyed/.test(path)) {
      await assert.rejects(Filter.open(bytes), { code: "BAD_KEY" }, path);
      continue;
    }
    const filter = await Filter.open(bytes);
    assert.deepEqual(Buffer.from(filter.toBytes()), Buffer.from(bytes), path);
    filter.free();
  }
  assert.deepEqual([...refused].sort(), ["coded", "exact", "map", "range"]);
});

test("the golden filters are built again to the bit, plain and keyed", async () => {
  const keys = Array.from({ length: 300 }, (_, i) => `key${i}`);
  const secret = Uint8Array.from({ length: 16 }, (_, i) => i);
  for (const family of families) {
    for (const [suffix, hash] of [
      ["", { seed: 7 }],
      ["-keyed", { secret }],
    ]) {
      const size = { family, keys: family === "scalable" ? 0 : 300, fpr: 0.001 };
      const filter = await Filter.build(keys, { ...size, ...hash });
      const golden = readFileSync(join(ROOT, `test/golden/perhaps/${family}-300${suffix}.perhaps`));
      assert.deepEqual(Buffer.from(filter.toBytes()), golden, family + suffix);
    }
  }
});

test("a keyed filter opens with its secret and with no other", async () => {
  const secret = Uint8Array.from({ length: 16 }, (_, i) => i);
  const filter = await Filter.create({ keys: 100, secret });
  filter.addMany(words.slice(0, 100));
  const bytes = filter.toBytes();
  await assert.rejects(Filter.open(bytes), { code: "BAD_KEY" });
  await assert.rejects(Filter.open(bytes, { secret: new Uint8Array(16) }), { code: "BAD_KEY" });
  const again = await Filter.open(bytes, { secret });
  assert.ok(again.hasMany(words.slice(0, 100)).every((answer) => answer === 1));
});

test("golden files of other systems: the answers and figures of the command line", async () => {
  for (const { kind, path, keys } of goldenFiles()) {
    const said = attempt("info", "--json", path);
    const opening = Filter.open(new Uint8Array(readFileSync(path)), { fileName: basename(path) });
    if (said.status !== 0) {
      await assert.rejects(opening, PerhapsError, kind);
      continue;
    }
    const filter = await opening;
    const [info] = JSON.parse(said.stdout);
    const ours = filter.describe();
    for (const field of ["format", "family", "keys", "bits", "fill", "fpr", "entries", "notes"])
      assertSame(ours[field], info[field], `${kind}.${field}`);
    const wanted = readKeys(keys);
    const answers = filter.hasMany(wanted);
    writeFileSync(
      join(folder, "len32"),
      Buffer.concat(
        wanted.flatMap((key) => {
          const size = Buffer.alloc(4);
          size.writeUInt32LE(key.length);
          return [size, key];
        }),
      ),
    );
    const count = attempt("query", "-c", "--keys-as", "len32", path, join(folder, "len32")).stdout.trim();
    assert.equal(String(answers.reduce((a, b) => a + b, 0)), count, kind);
    assert.deepEqual(Buffer.from(filter.toBytes()), readFileSync(path), kind);
    filter.free();
  }
});

test("formats of other systems are written as the command line writes them", async () => {
  for (const format of ["guava", "cassandra", "leveldb", "rocksdb-fastlocal", "parquet", "redisbloom-bf"]) {
    const path = join(folder, format);
    cli("build", "--format", format, "-o", path, join(folder, "words"));
    const filter = await Filter.build(words, { format });
    assert.deepEqual(Buffer.from(filter.toBytes()), readFileSync(path), format);
    filter.free();
  }
});

test("the page's module: converted bytes are those of the command line, and refusals say why", async () => {
  const bytes = (await Filter.build(words, { format: "fuse8" })).toBytes();
  writeFileSync(join(folder, "fuse8"), bytes);
  const filter = await page.Filter.open(bytes, { format: "fuse8" });
  cli("convert", "--format", "fuse8", "--to", "fuse8", "-o", join(folder, "fuse8.again"), join(folder, "fuse8"));
  assert.deepEqual(Buffer.from(tools.convert(filter, "fuse8")), readFileSync(join(folder, "fuse8.again")));
  assert.throws(() => tools.convert(filter, "guava"), page.UnsupportedError);
  assert.throws(() => tools.convert(filter, "nonesuch"), { code: "BAD_PARAMETER" });
});

test("damaged files are refused, and nothing worse happens", async () => {
  const damaged = filesBelow(join(ROOT, "test/corrupt/perhaps")).filter((path) => path.endsWith(".perhaps"));
  assert.ok(damaged.length >= 30);
  for (const path of damaged) {
    await assert.rejects(
      Filter.open(new Uint8Array(readFileSync(path))),
      (error) => error instanceof FormatError || error instanceof UnsupportedError,
      path,
    );
  }
  let refused = 0;
  for (const path of filesBelow(join(ROOT, "test/corrupt")).filter((name) => name.endsWith(".refused"))) {
    const format = /corrupt\/([^/]+)\//.exec(path)[1].replace("_", "-");
    const known = (await perhaps.formats()).some((one) => one.name === format);
    if (!known) continue;
    await assert.rejects(
      Filter.open(new Uint8Array(readFileSync(path)), { format }),
      (error) => error instanceof FormatError || error instanceof UnsupportedError,
      path,
    );
    ++refused;
  }
  assert.ok(refused >= 100, `only ${refused} damaged files`);
  const good = (await Filter.build(words)).toBytes();
  for (let i = 0; i < good.length; i += 97) {
    const bad = good.slice();
    bad[i] ^= 0x10;
    await assert.rejects(Filter.open(bad), PerhapsError, `byte ${i}`);
  }
  await assert.rejects(Filter.open(good.subarray(0, 100)), FormatError);
  await assert.rejects(Filter.open(Buffer.concat([good, Buffer.alloc(1)])), FormatError);
  // What the caller has wrong is no damage.
  for (const options of [{ format: "nonesuch" }, { format: "guava", parameters: { nonesuch: 1 } }]) {
    await assert.rejects(
      Filter.open(good, options),
      (error) => error.code === "BAD_PARAMETER" && !(error instanceof FormatError),
    );
  }
});

test("texts, bytes and numbers are different keys, and numbers have 64 bits", async () => {
  const filter = await Filter.create({ keys: 1000, fpr: 1e-9 });
  filter.add("42");
  assert.ok(!filter.has(42) && !filter.has(42n));
  filter.add(42).add(-1);
  assert.ok(filter.has(42n) && filter.has(2n ** 64n - 1n) && filter.has(-1n));
  filter
    .addMany(new Int32Array([-7, 8]))
    .addMany(new BigInt64Array([-9n]))
    .addMany([2 ** 40, "x", new Uint8Array([1])]);
  assert.deepEqual(
    [...filter.hasMany([-7n, 8, -9, 2n ** 40n, "x", new Uint8Array([1]), "y"])],
    [1, 1, 1, 1, 1, 1, 0],
  );
  assert.ok(filter.has(new Uint8Array([120])), "a text is its UTF-8");
  const long = "ü".repeat(1 << 20);
  assert.ok(!filter.has(long));
  filter.add(long);
  assert.ok(filter.has(long) && filter.hasMany(["a", long, "b"])[1] === 1);
  assert.throws(() => filter.has(0.5), RangeError);
  assert.throws(() => filter.has(2 ** 53), RangeError);
  assert.throws(() => filter.has(2n ** 64n), RangeError);
  assert.throws(() => filter.has(undefined), TypeError);
  // Neither one key in the place of many, nor something that has none, is taken for an empty list.
  for (const keys of ["text", new Uint8Array(4), new ArrayBuffer(8), new DataView(new ArrayBuffer(8)), 5, {}, null])
    for (const call of [() => filter.addMany(keys), () => filter.hasMany(keys)]) assert.throws(call, TypeError);
  assert.deepEqual([...filter.hasMany(new Set(["x", "y"]))], [1, 0]);
});

test("a batch of texts is its texts one by one, ASCII or not", async () => {
  const ascii = Array.from({ length: 100 }, (_, i) => "x".repeat(i % 7) + i);
  const large = "y".repeat(3 << 19); // more than the scratch has room for
  for (const batch of [
    ascii,
    [...ascii, "", "ü", ...ascii.map((text) => `${text}€`), "\u{1f600}", "\ud800"],
    [...ascii, 7, 8n, ...ascii.map((text) => `${text}!`), new Uint8Array([1, 2]), "z"],
    [...ascii, large, ...ascii.map((text) => `${text}?`)],
    Array(40).fill(""),
    Array(100_000).fill("the same again and again, in more than one part"),
  ]) {
    const together = await Filter.create({ keys: 1000, fpr: 1e-9 });
    const apart = await Filter.create({ keys: 1000, fpr: 1e-9 });
    together.addMany(batch);
    for (const key of batch.slice(0, 1000)) apart.add(key);
    assert.deepEqual(Buffer.from(whole(together)), Buffer.from(whole(apart)));
    assert.ok(together.hasMany(batch).every((answer) => answer === 1));
    assert.deepEqual([...together.hasMany(["absent", ...Array(20).fill("no")])], Array(21).fill(0));
    together.free();
    apart.free();
  }
});

test("numbers are hashed as the command line hashes them", async () => {
  writeFileSync(
    join(folder, "numbers"),
    new Uint8Array(BigUint64Array.from({ length: 1000 }, (_, i) => BigInt(i * 7)).buffer),
  );
  cli("build", "--keys-as", "u64", "-o", join(folder, "numbers.perhaps"), join(folder, "numbers"));
  const theirs = await Filter.open(new Uint8Array(readFileSync(join(folder, "numbers.perhaps"))));
  const ours = await Filter.build(
    Uint32Array.from({ length: 1000 }, (_, i) => i * 7),
    { keys: 1000, fpr: 0.01 },
  );
  assert.deepEqual(Buffer.from(whole(ours)), Buffer.from(whole(theirs)));
});

test("filters merge, intersect, copy, remove and fill up", async () => {
  const one = (await Filter.create({ keys: 100, fpr: 1e-6 })).addMany(["a", "b"]);
  const two = (await Filter.create({ keys: 100, fpr: 1e-6 })).addMany(["b", "c"]);
  const both = one.copy().merge(two);
  assert.deepEqual([...both.hasMany(["a", "b", "c", "d"])], [1, 1, 1, 0]);
  assert.deepEqual([...one.copy().intersect(two).hasMany(["a", "b", "c"])], [0, 1, 0]);
  assert.throws(() => one.remove("a"), UnsupportedError);
  await assert.rejects(Filter.create({ keys: 10, family: "ribbon" }), UnsupportedError);
  const other = await Filter.create({ keys: 5000 });
  assert.throws(() => one.merge(other), { code: "MISMATCH" });
  const cuckoo = await Filter.create({ keys: 100, family: "cuckoo", fpr: 1e-6 });
  cuckoo.addMany(["a", 5n]);
  assert.ok(cuckoo.remove("a") && !cuckoo.has("a") && cuckoo.remove(5) && !cuckoo.remove("never"));
  assert.throws(
    () => cuckoo.addMany(words),
    (error) => {
      assert.ok(
        error instanceof FullError && error.code === "FULL" && error.inserted >= 100 && error.inserted < 3000,
      );
      assert.equal(error.message, `full after ${error.inserted} of 3000 keys`);
      return true;
    },
  );
});

test("what cannot be is refused in words", async () => {
  await assert.rejects(Filter.create({ keys: 1e15 }), { code: "NO_MEMORY" });
  await assert.rejects(Filter.create({ keys: 10, family: "nonesuch" }), /nonesuch.*line/);
  await assert.rejects(Filter.create({ keys: 10, fpr: 2 }), PerhapsError);
  await assert.rejects(Filter.create({ keys: NaN }), RangeError);
  await assert.rejects(Filter.create({ keys: 10, fpr: 0 }), RangeError);
  for (const options of [undefined, {}, { fpr: 0.01 }])
    await assert.rejects(Filter.create(options), /TypeError: create needs the number of keys/);
  for (const keys of [NaN, -5, "x"]) await assert.rejects(perhaps.sizeTable({ keys }), RangeError);
  for (const keys of ["text", new DataView(new ArrayBuffer(8))]) await assert.rejects(Filter.build(keys), TypeError);
  await assert.rejects(Filter.build(["a", 5]), /texts and bytes, or numbers, not both/);
  await assert.rejects(Filter.create({ keys: 10, secret: new Uint8Array(3) }), TypeError);
  await assert.rejects(Filter.open("text"), TypeError);
  assert.throws(() => new Filter(), TypeError);
  const filter = await Filter.create({ keys: 10 });
  filter.free();
  filter.free();
  assert.throws(() => filter.has("a"), PerhapsError);
});

test("memory is given back: at once by free, later by the garbage collector", async () => {
  const make = () => Filter.create({ keys: 8e6, fpr: 0.01 }); // 10 MB
  for (let i = 0; i < 10; ++i) (await make()).free();
  const before = await perhaps.memoryInUse();
  for (let i = 0; i < 200; ++i) (await make()).free();
  assert.equal(await perhaps.memoryInUse(), before);
  assert.ok(globalThis.gc, "run with --expose-gc");
  for (let i = 0; i < 200; ++i) {
    await make();
    if (i % 5 === 4) {
      globalThis.gc();
      await new Promise((done) => setImmediate(done)); // finalizers run between tasks
    }
  }
  assert.ok((await perhaps.memoryInUse()) < before + 60 * 10e6, "abandoned filters were not freed");
});

test("sizes are those of the command line", async () => {
  for (const [request, ...args] of [
    [{ keys: 1e6, fpr: 0.01 }, "--keys", "1e6", "--fpr", "0.01"],
    [{ keys: 12345, maxBytes: 20000 }, "--keys", "12345", "--max-bytes", "20000"],
    [{ maxBytes: 1 << 20, fpr: 0.001 }, "--max-bytes", "1Mi", "--fpr", "0.001"],
    [{ bitsPerKey: 12 }, "--bits-per-key", "12"],
  ]) {
    const theirs = json("size", "--json", ...args).map(({ kind, ...row }) => row);
    assertSame(await perhaps.sizeTable(request), theirs, args.join(" "));
  }
});

test("the page's module: budgets and explanations are those of the command line", async () => {
  for (const [tree, ...args] of [
    [{ keys: 1e9, budget: 1.25e9 }, "--keys", "1e9", "--budget", "1.25G"],
    [
      { keys: 1e8, budget: 1e8, ribbon: 2, ratio: 4, runs: 6, levels: 5 },
      "--keys",
      "1e8",
      "--budget",
      "100M",
      "--ribbon",
      "2",
      "--ratio",
      "4",
      "--runs",
      "6",
      "--levels",
      "5",
    ],
  ]) {
    const { present_reads, even_present_reads, ...ours } = await tools.allocateLevels(tree);
    assert.ok(present_reads >= 1 && even_present_reads >= 1);
    assertSame(ours, json("allocate", "--json", ...args), args.join(" "));
  }
  for (const family of families) {
    const filter = await page.Filter.open(new Uint8Array(readFileSync(join(folder, family))));
    for (const key of ["key 7 ü", "absent 1", "absent 2"]) {
      const { key: said, ...theirs } = JSON.parse(
        attempt("explain", "--json", join(folder, family), "-e", key).stdout,
      );
      assert.equal(said, key);
      assertSame(tools.explain(filter, key), theirs, `${family} ${key}`);
    }
  }
});

test("answers go into an array that is given, and into no shorter one", async () => {
  const filter = await Filter.create({ keys: 1e5, fpr: 0.01 });
  const keys = await perhaps.randomKeys(1e5, 1);
  filter.addMany(keys.subarray(0, 5e4));
  const into = new Uint8Array(1e5 + 3).fill(9);
  const answers = filter.hasMany(keys, into);
  assert.equal(answers.buffer, into.buffer);
  assert.deepEqual(answers, filter.hasMany(keys));
  assert.deepEqual([...into.subarray(1e5)], [9, 9, 9]);
  assert.deepEqual([...filter.hasMany(["a", 1], new Uint8Array(2))], [...filter.hasMany(["a", 1])]);
  assert.throws(() => filter.hasMany(keys, new Uint8Array(1e5 - 1)), RangeError);
  assert.throws(() => filter.hasMany(keys, []), RangeError);
});

test("parameters that are numbers are read as the command line reads them", async () => {
  const path = join(folder, "numbers.guava");
  for (const fpr of ["0.0123456789012345678", "1e-3", ".5", "2.5E-2"]) {
    const parameters = ["--set", "expected_insertions=3000", "--set", `fpp=${fpr}`];
    cli("build", "--format", "guava", ...parameters, "-o", path, join(folder, "words"));
    const filter = await Filter.build(words, { format: "guava", parameters: { expected_insertions: 3000, fpp: fpr } });
    assert.deepEqual(Buffer.from(filter.toBytes()), readFileSync(path), fpr);
  }
  for (const fpr of ["", "1e", "0.01x", "-", "1 ", "nan", "0x1"])
    await assert.rejects(
      Filter.build(words, { format: "guava", parameters: { fpp: fpr } }),
      { code: "BAD_PARAMETER" },
      fpr,
    );
});

test("the page's module chooses a family that can do what is asked, or says what it cannot", async () => {
  const able = new Map((await perhaps.families()).map((family) => [family.name, family]));
  const names = ["once", "remove", "recent", "unknown", "merge", "parquet"];
  for (let bits = 0; bits < 1 << names.length; ++bits) {
    const needs = Object.fromEntries(names.map((name, i) => [name, (bits >> i) % 2 === 1]));
    const { family, summary, reason, unmet } = await tools.chooseFamily(needs);
    const can = able.get(family);
    assert.equal(summary, can.summary);
    assert.ok(reason.length > 20);
    const missed = [
      needs.remove && !can.remove,
      needs.unknown && !can.grow && !can.forget,
      needs.merge && !can.merge,
      needs.parquet && family !== "block",
    ].filter(Boolean).length;
    assert.equal(unmet.length, missed, JSON.stringify(needs));
    if (needs.recent) assert.ok(can.forget);
    if (Object.values(needs).filter(Boolean).length <= 1) assert.deepEqual(unmet, [], JSON.stringify(needs));
  }
  assert.equal((await tools.chooseFamily({})).family, "line");
});

test("both modules give the same tables and answers", async () => {
  const copy = join(temporary(), "perhaps");
  cpSync(join(NPM, "perhaps"), copy, { recursive: true });
  const plain = await import(pathToFileURL(join(copy, "core.js")));
  const { default: packed } = await import(pathToFileURL(join(copy, "plain.js")));
  const { unpack } = await import(pathToFileURL(join(copy, "unpack.js")));
  plain.loadFrom(async () => WebAssembly.compile(unpack(new Uint8Array(Buffer.from(packed, "base64")))));
  const keys = await perhaps.randomKeys(20000, 1);
  const absent = await perhaps.randomKeys(20000, 2);
  for (const family of families) {
    const size = { family, keys: family === "scalable" ? 0 : 20000, fpr: 0.02 };
    const fast = await Filter.build(keys, size);
    const slow = await plain.Filter.build(keys, size);
    assert.deepEqual(Buffer.from(whole(fast)), Buffer.from(whole(slow)), family);
    assert.deepEqual(fast.hasMany(absent), slow.hasMany(absent), family);
    assert.ok(
      fast.hasMany(keys).every((answer) => answer === 1),
      family,
    );
  }
  // Tables behind the caches have a loop of their own, with fewer than eight probes, with eight and with more.
  for (const [fpr, seed] of [
    [0.1, 1],
    [0.01, undefined],
    [0.01, 2n ** 63n],
    [1e-4, 7],
  ]) {
    const size = { keys: 1.2e6, fpr, seed };
    const fast = await Filter.create(size);
    const slow = await plain.Filter.create(size);
    assert.ok(fast.byteSize > 1 << 19, "a table that is not far away");
    for (const filter of [fast, slow]) filter.addMany(keys);
    assert.ok(fast.hasMany(keys.subarray(0, 19999)).every((answer) => answer === 1));
    const some = absent.subarray(0, 19999);
    assert.deepEqual(fast.hasMany(some), slow.hasMany(some));
    const texts = Array.from(keys.subarray(0, 5000), String);
    assert.deepEqual(fast.hasMany(texts), slow.hasMany(texts));
  }
});

const USE = `
import { Filter } from "perhaps";
const seen = await Filter.create({ keys: 1e6, fpr: 0.01 });
seen.add("hello");
if (!seen.has("hello") || seen.has("world")) throw new Error("wrong");
const again = await Filter.open(seen.toBytes());
console.log(again.has("hello"), again.describe().family);
`;

test("a fresh project installs the tarball and uses it, plain and bundled", () => {
  const project = temporary();
  const [tarball] = readdirSync(NPM).filter((name) => name.endsWith(".tgz"));
  writeFileSync(join(project, "package.json"), '{"name": "fresh", "private": true, "type": "module"}');
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", join(NPM, tarball)], {
    cwd: project,
  });
  writeFileSync(join(project, "use.js"), USE);
  const run = (file) => execFileSync("node", [file], { cwd: project, encoding: "utf8" });
  assert.equal(run("use.js"), "true line\n");
  mkdirSync(join(project, "out"));
  for (const platform of ["node", "browser"]) {
    execFileSync(
      "esbuild",
      [
        "use.js",
        "--bundle",
        "--format=esm",
        `--platform=${platform}`,
        "--log-level=error",
        `--outfile=out/${platform}.mjs`,
      ],
      { cwd: project },
    );
    assert.equal(run(`out/${platform}.mjs`), "true line\n", platform);
  }
  const files = execFileSync("tar", ["tzf", join(NPM, tarball)], { encoding: "utf8" })
    .trim()
    .split("\n")
    .sort();
  assert.deepEqual(
    files,
    ["LICENSE", "README.md", "package.json", "perhaps.d.ts", "plain.js", ...LOADED]
      .map((name) => `package/${name}`)
      .sort(),
  );
});

test("every function and method has a type", () => {
  const types = readFileSync(join(NPM, "perhaps/perhaps.d.ts"), "utf8");
  for (const name of families) assert.ok(types.includes(`| "${name}"`), `${name} is no Family`);
  for (const name of Object.keys(perhaps))
    assert.match(types, new RegExp(`export (class|function) ${name}\\b`), name);
  for (const name of [...Object.getOwnPropertyNames(Filter), ...Object.getOwnPropertyNames(Filter.prototype)]) {
    if (["length", "name", "prototype", "constructor"].includes(name)) continue;
    assert.match(types, new RegExp(`^  (static |readonly )?${name}[(:]`, "m"), name);
  }
});

test("TypeScript accepts what the types promise, and refuses what they do not", () => {
  const project = temporary();
  const settings = { strict: true, noEmit: true, target: "es2022", lib: ["es2022", "dom"], types: [] };
  const modules = { module: "esnext", moduleResolution: "bundler" };
  const paths = { perhaps: [join(NPM, "perhaps/perhaps.d.ts")] };
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...settings, ...modules, paths }, files: ["use.ts"] }),
  );
  writeFileSync(
    join(project, "use.ts"),
    `import { Filter, FullError, families, sizeTable } from "perhaps";
     const f: Filter = await Filter.create({ keys: 1e6, fpr: 0.01, family: "cuckoo" });
     f.add("a").add(1).add(2n).addMany(new BigUint64Array(2)).addMany(["x", 3, new Uint8Array(1)]);
     const one: boolean = f.has("a"); const many: Uint8Array = f.hasMany([1n]);
     const again = await Filter.open(new Blob([]), { format: "guava" }); again.free();
     const built = await Filter.build(["a"], { family: "ribbon", secret: new Uint8Array(16) });
     const { removed }: { removed: number } = f.removeMany(["a"]);
     const text: string = built.describe().family; const bytes: Uint8Array = built.toBytes();
     const rows: number[] = (await sizeTable({ keys: 10 })).map((row) => row.bits_per_key);
     const names = (await families()).map((family) => family.name satisfies string);
     try { f.add("b"); } catch (error) { if (error instanceof FullError) console.log(error.inserted, error.code); }
     export { one, many, removed, text, bytes, rows, names };
     // @ts-expect-error
     await Filter.create({ keys: 10, family: "nonesuch" });
     // @ts-expect-error
     new Filter();
     // @ts-expect-error
     f.add({});
     // @ts-expect-error
     f.explain("a");
     // @ts-expect-error
     await Filter.open("text");`,
  );
  const tsc = join(TOOLS, "node_modules/typescript/bin/tsc");
  const done = spawnSync("node", [tsc, "-p", project], { encoding: "utf8" });
  assert.equal(done.stdout + done.stderr, "");
  assert.equal(done.status, 0);
});

test("make bench-npm measures every package that it names", () => {
  const said = execFileSync("make", ["--no-print-directory", "bench-npm", "BENCH_ARGS=500"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const { dependencies } = JSON.parse(readFileSync(join(ROOT, "bench/npm/package.json")));
  for (const name of ["perhaps", ...Object.keys(dependencies)])
    assert.match(said, new RegExp(`^${name} \\| (does not run: |[\\d,]+ \\| [\\d,]+ \\|)`, "m"));
  assert.match(said, /1e6 numbers, medians of 21 rounds in turns: [\d.]+ ns per key here, [\d.]+ natively/);
});

test("what is loaded is at most 250 KB, compressed", (t) => {
  const sizes = LOADED.map(
    (name) => gzipSync(readFileSync(join(NPM, "perhaps", name)), { level: 9 }).length,
  );
  const sum = sizes.reduce((a, b) => a + b);
  t.diagnostic(`${sum} bytes: ${sizes.join(" + ")}`);
  assert.ok(sum <= 250_000, `${sum} bytes: ${sizes.join(" + ")}`);
});
