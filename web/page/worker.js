// Builds and measures away from the page, which stays alive meanwhile.
import { Filter, loadFrom, randomKeys, ready, sizeTable } from "../core.js";
import { rateInterval, sizeCurves } from "./tools.js";

const PART = 1 << 16; // keys between two reports

async function measure({ family, keys, options }) {
  await ready();
  const present = await randomKeys(keys, 1);
  const absent = await randomKeys(keys, 2);
  const report = (done, doing) => postMessage({ progress: done, doing });
  report(0, "building");
  const start = performance.now();
  let filter;
  if (family === "fuse" || family === "ribbon") {
    filter = await Filter.build(present, { family, ...options });
  } else {
    filter = await Filter.create({ family, ...options });
    for (let from = 0; from < keys; from += PART) {
      filter.addMany(present.subarray(from, from + PART));
      report((0.5 * from) / keys, "building");
    }
  }
  const built = performance.now();
  report(0.5, "looking up");
  let lost = 0;
  for (const answer of filter.hasMany(present)) lost += answer === 0 ? 1 : 0;
  let hits = 0;
  let lookupTime = 0;
  for (let from = 0; from < keys; from += PART) {
    const part = absent.subarray(from, from + PART);
    const before = performance.now();
    const answers = filter.hasMany(part);
    lookupTime += performance.now() - before;
    for (const answer of answers) hits += answer;
    report(0.6 + (0.4 * from) / keys, "looking up");
  }
  const description = filter.describe();
  filter.free();
  postMessage({
    result: {
      family,
      keys,
      hits,
      lost,
      rate: hits / keys,
      interval: await rateInterval(hits, keys),
      buildNs: ((built - start) * 1e6) / keys,
      lookupNs: (lookupTime * 1e6) / keys,
      bytes: description.bytes,
      model: description.fpr_at_capacity ?? description.fpr,
    },
  });
}

addEventListener("message", async ({ data }) => {
  if (data.module !== undefined) {
    loadFrom(async () => data.module);
    return;
  }
  try {
    if (data.question !== undefined) postMessage({ rows: await sizeTable(data.question), id: data.id });
    else if (data.curves !== undefined) postMessage({ curves: await sizeCurves(data.curves), keys: data.curves });
    else await measure(data);
  } catch (error) {
    postMessage({ error: error.message, id: data.id });
  }
});
