// The Bloom filters of npm beside this package, in one run: node bench/npm.mjs BUILD/npm FOLDER [KEYS]
// FOLDER has the packages in node_modules (make bench-npm installs them by name and version). Each makes a filter of
// KEYS keys at 1 %, adds them, and looks up as many absent ones: texts, one call each; ours also in batches and as
// numbers.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [npm, folder, count = "200000"] = process.argv.slice(2);
const require = createRequire(join(resolve(folder), "package.json"));
const { Filter, randomKeys } = await import(pathToFileURL(join(resolve(npm), "perhaps/perhaps.js")));

const N = Number(count);
const present = Array.from({ length: N }, (_, i) => `https://example.org/${i}`);
const absent = Array.from({ length: N }, (_, i) => `https://example.com/${i}`);
const BITS = Math.ceil((-N * Math.log(0.01)) / Math.log(2) ** 2);

const contenders = [
  [
    "perhaps",
    async () => {
      const f = await Filter.create({ keys: N, fpr: 0.01 });
      return { add: (k) => f.add(k), has: (k) => f.has(k), file: () => f.toBytes().length };
    },
  ],
  [
    "bloom-filters",
    async () => {
      const f = require("bloom-filters").BloomFilter.create(N, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.has(k), file: () => JSON.stringify(f.saveAsJSON()).length };
    },
  ],
  [
    "bloomfilter",
    async () => {
      const { BloomFilter } = require("bloomfilter");
      const f = new BloomFilter(BITS, 7);
      return {
        add: (k) => f.add(k),
        has: (k) => f.test(k),
        file: () => JSON.stringify([].slice.call(f.buckets)).length,
      };
    },
  ],
  [
    "bloom-filter",
    async () => {
      const f = require("bloom-filter").create(N, 0.01);
      return {
        add: (k) => f.insert(Buffer.from(k)),
        has: (k) => f.contains(Buffer.from(k)),
        file: () => JSON.stringify(f.toObject()).length,
      };
    },
  ],
  [
    "bloem",
    async () => {
      const { Bloem } = require("bloem");
      const f = new Bloem(BITS, 7);
      return {
        add: (k) => f.add(Buffer.from(k)),
        has: (k) => f.has(Buffer.from(k)),
        file: () => JSON.stringify(f).length,
      };
    },
  ],
  [
    "bloom-lite",
    async () => {
      const Lite = require("bloom-lite");
      const f = new Lite(N, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.exist(k) };
    },
  ],
  [
    "bloomxx",
    async () => {
      const f = require("bloomxx").createOptimal(N, 0.01);
      return { add: (k) => f.add(k), has: (k) => f.has(k) };
    },
  ],
  [
    "cuckoo-filter",
    async () => {
      const { CuckooFilter } = require("cuckoo-filter");
      const f = new CuckooFilter(N, 4, 2);
      return { add: (k) => f.add(k), has: (k) => f.contains(k), file: () => JSON.stringify(f.toJSON()).length };
    },
  ],
];

const perSecond = (ms, n = N) => Math.round((n / ms) * 1000).toLocaleString("en");
console.log("package | adds per s | lookups per s | rate | lost | file, bytes");
for (const [name, make] of contenders) {
  try {
    const f = await make();
    const limit = name === "cuckoo-filter" || name === "bloom-filters" ? Math.min(N, 50000) : N; // they take minutes
    let t = performance.now();
    for (let i = 0; i < limit; ++i) f.add(present[i]);
    const adding = performance.now() - t;
    let lost = 0;
    for (let i = 0; i < limit; ++i) lost += f.has(present[i]) ? 0 : 1;
    let best = Infinity;
    let hits = 0;
    for (let round = 0; round < 3; ++round) {
      hits = 0;
      t = performance.now();
      for (let i = 0; i < limit; ++i) hits += f.has(absent[i]) ? 1 : 0;
      best = Math.min(best, performance.now() - t);
    }
    console.log(
      [
        name,
        perSecond(adding, limit),
        perSecond(best, limit),
        `${((100 * hits) / limit).toFixed(2)} %`,
        lost,
        f.file?.() ?? "none",
      ].join(" | "),
    );
  } catch (error) {
    console.log(`${name} | does not run: ${error.message.split("\n")[0]}`);
  }
}
const batch = await Filter.create({ keys: N, fpr: 0.01 });
let t = performance.now();
batch.addMany(present);
const adding = performance.now() - t;
const best = (work) =>
  Math.min(
    ...Array.from({ length: 7 }, () => {
      const from = performance.now();
      work();
      return performance.now() - from;
    }),
  );
console.log(["perhaps, batches", perSecond(adding), perSecond(best(() => batch.hasMany(absent)))].join(" | "));
const numbers = await randomKeys(1e6, 1);
const others = await randomKeys(1e6, 2);
const wide = await Filter.create({ keys: 1e6, fpr: 0.01 });
t = performance.now();
wide.addMany(numbers);
console.log(
  [
    "perhaps, batches of 1e6 numbers",
    perSecond(performance.now() - t, 1e6),
    perSecond(
      best(() => wide.hasMany(others)),
      1e6,
    ),
  ].join(" | "),
);
