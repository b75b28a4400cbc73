// The Bloom filters of npm beside this package, in one run: node bench/npm.mjs BUILD/npm FOLDER PEER [KEYS]
// FOLDER has the packages in node_modules (make bench-npm installs them by name and version). Each makes a filter of
// KEYS texts at 1 %, adds them, and looks up as many absent ones, one call each; then the same with 1e6 64-bit numbers.
// Ours also in batches. At the end PEER (bench/npm_peer.cc), the same library compiled for this machine, looks up the
// numbers in turns with the package. Times are CPU times of the process.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [npm, folder, peer, count = "200000"] = process.argv.slice(2);
const require = createRequire(join(resolve(folder), "package.json"));
const { Filter, randomKeys } = await import(pathToFileURL(join(resolve(npm), "perhaps/perhaps.js")));

const N = Number(count);
const present = Array.from({ length: N }, (_, i) => `https://example.org/${i}`);
const absent = Array.from({ length: N }, (_, i) => `https://example.com/${i}`);
const bits = (n) => Math.ceil((-n * Math.log(0.01)) / Math.log(2) ** 2);

const contenders = [
  [
    "perhaps",
    async (n) => {
      const f = await Filter.create({ keys: n, fpr: 0.01 });
      return { add: (k) => f.add(k), has: (k) => f.has(k), file: () => f.toBytes().length };
    },
  ],
  [
    "bloom-filters",
    async (n) => {
      const f = require("bloom-filters").BloomFilter.create(n, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.has(k), file: () => JSON.stringify(f.saveAsJSON()).length };
    },
  ],
  [
    "bloomfilter",
    async (n) => {
      const { BloomFilter } = require("bloomfilter");
      const f = new BloomFilter(bits(n), 7);
      return {
        add: (k) => f.add(k),
        has: (k) => f.test(k),
        file: () => JSON.stringify([].slice.call(f.buckets)).length,
      };
    },
  ],
  [
    "bloom-filter",
    async (n) => {
      const f = require("bloom-filter").create(n, 0.01);
      return {
        add: (k) => f.insert(Buffer.from(k)),
        has: (k) => f.contains(Buffer.from(k)),
        file: () => JSON.stringify(f.toObject()).length,
      };
    },
  ],
  [
    "bloem",
    async (n) => {
      const { Bloem } = require("bloem");
      const f = new Bloem(bits(n), 7);
      return {
        add: (k) => f.add(Buffer.from(k)),
        has: (k) => f.has(Buffer.from(k)),
        file: () => JSON.stringify(f).length,
      };
    },
  ],
  [
    "bloom-lite",
    async (n) => {
      const Lite = require("bloom-lite");
      const f = new Lite(n, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.exist(k) };
    },
  ],
  [
    "bloomxx",
    async (n) => {
      const f = require("bloomxx").createOptimal(n, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.has(k) };
    },
  ],
  [
    "cuckoo-filter",
    async (n) => {
      const { CuckooFilter } = require("cuckoo-filter");
      const f = new CuckooFilter(n, 4, 2);
      return { add: (k) => f.add(k), has: (k) => f.contains(k), file: () => JSON.stringify(f.toJSON()).length };
    },
  ],
];

// In ms.
const now = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const perMs = (ms) => N / ms;
const perSecond = (ms, n = N) => Math.round((n / ms) * 1000).toLocaleString("en");
console.log("package | adds per s | lookups per s | of 1e6 64-bit keys | rate | lost | file, bytes");
const best = (rounds, work) =>
  Math.min(
    ...Array.from({ length: rounds }, () => {
      const from = now();
      work();
      return now() - from;
    }),
  );
const MANY = 1e6;
const keys = await randomKeys(MANY, 1);
const others = await randomKeys(MANY, 2);
// The eight bytes of a number as a text of eight characters, made beforehand: what these packages hash fastest.
const SHIFTS = [0n, 8n, 16n, 24n, 32n, 40n, 48n, 56n];
const asText = (key) => String.fromCharCode(...SHIFTS.map((by) => Number((key >> by) & 255n)));
const keyTexts = Array.from(keys, asText);
const otherTexts = Array.from(others, asText);
for (const [name, make] of contenders) {
  try {
    const f = await make(N);
    const adding = best(1, () => present.forEach((key) => f.add(key)));
    const lost = present.filter((key) => !f.has(key)).length;
    let hits = 0;
    const asking = best(3, () => {
      hits = 0;
      for (let i = 0; i < N; ++i) hits += f.has(absent[i]) ? 1 : 0;
    });
    const row = [name, perSecond(adding), perSecond(asking)];
    // The slow ones are left out: minutes, and not the fastest.
    if (perMs(asking) > 300) {
      const large = await make(MANY);
      const own = name === "perhaps";
      const [inside, outside] = own ? [keys, others] : [keyTexts, otherTexts];
      for (let i = 0; i < MANY; ++i) large.add(inside[i]);
      let found = 0;
      const some = best(3, () => {
        for (let i = 0; i < MANY; ++i) found += large.has(outside[i]) ? 1 : 0;
      });
      // bloom-filter has a largest size, and answers perhaps to everything by then.
      row.push(found > 0.3 * 3 * MANY ? "full" : perSecond(some, MANY));
    } else {
      row.push("");
    }
    console.log([...row, `${((100 * hits) / N).toFixed(2)} %`, lost, f.file?.() ?? "none"].join(" | "));
  } catch (error) {
    console.log(`${name} | does not run: ${error.message.split("\n")[0]}`);
  }
}

const texts = await Filter.create({ keys: N, fpr: 0.01 });
const adding = best(1, () => texts.addMany(present));
console.log(`perhaps, batches of texts | ${perSecond(adding)} | ${perSecond(best(7, () => texts.hasMany(absent)))}`);

const wide = await Filter.create({ keys: MANY, fpr: 0.01 });
const filling = best(1, () => wide.addMany(keys));
const native = spawn(peer, [String(MANY)], { stdio: ["pipe", "pipe", "inherit"] });
const lines = native.stdout.setEncoding("utf8")[Symbol.asyncIterator]();
const nativeRound = async (n) => {
  native.stdin.write("\n");
  return Number((await lines.next()).value);
};
const answers = new Uint8Array(MANY);
const ours = [];
const theirs = [];
for (let round = 0; round < 24; ++round) {
  ours.push((best(1, () => wide.hasMany(others, answers)) * 1e6) / MANY);
  theirs.push(await nativeRound());
}
native.stdin.end();
// The first rounds run code that is still being optimised.
const median = (all) => all.slice(3).sort((a, b) => a - b)[10];
const lookups = perSecond((median(ours) * MANY) / 1e6, MANY);
console.log(`perhaps, batches of 1e6 numbers | ${perSecond(filling, MANY)} | | ${lookups}`);
console.log(
  `1e6 numbers, medians of 21 rounds in turns: ${median(ours).toFixed(2)} ns per key here, ` +
    `${median(theirs).toFixed(2)} natively: ${(median(theirs) / median(ours)).toFixed(2)} times as fast`,
);
