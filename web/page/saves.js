// What it saves: the filters of an LSM tree, each level with the same bits per key or with the best ones, and a lookup
// on its way down through real small filters of these sizes.
import { Filter } from "../core.js";
import { bytesText, field, fill, grouped, h, percent, table, writeState } from "./dom.js";
import { allocateLevels } from "./tools.js";

const SLIDERS = {
  levels: { label: "Levels", min: 1, max: 7, step: 1, value: 4, text: (v) => String(v) },
  ratio: { label: "Size ratio of neighbouring levels", min: 2, max: 20, step: 1, value: 10, text: (v) => String(v) },
  keys: { label: "Keys", min: 5, max: 12, step: 0.25, value: 9, of: (v) => Math.round(10 ** v), text: grouped },
  bits: { label: "Memory for filters, bits per key", min: 1, max: 20, step: 0.5, value: 10, text: (v) => String(v) },
  runs: { label: "Overlapping tables on the first level", min: 1, max: 8, step: 1, value: 4, text: (v) => String(v) },
  value: {
    label: "Bytes of a key and its value",
    min: 4,
    max: 14,
    step: 1,
    value: 7,
    of: (v) => 2 ** v,
    text: grouped,
  },
  absent: {
    label: "Lookups of absent keys",
    min: 0,
    max: 100,
    step: 5,
    value: 50,
    text: (v) => `${v}\u00a0%`,
  },
};
const SMALL = 256; // keys of a filter that the animation queries
const TRIES = 20_000; // absent keys, until one is read in vain
const keyOf = (number) => `key ${number}`;

const inputs = {};
const parts = {};
let result = null;
let walk = null; // {number}, of the lookup that is shown

const valueOf = (name) => (SLIDERS[name].of ?? Number)(Number(inputs[name].value));
const treeOf = () => ({
  levels: valueOf("levels"),
  ratio: valueOf("ratio"),
  keys: valueOf("keys"),
  runs: valueOf("runs"),
  budget: Math.round((valueOf("keys") * valueOf("bits")) / 8),
});

const reads = (n) => (n === 0 ? "0" : n >= 0.001 ? String(Number(n.toPrecision(3))) : n.toExponential(1));

async function update({ push = false } = {}) {
  for (const [name, slider] of Object.entries(SLIDERS)) {
    const text = slider.text(valueOf(name));
    inputs[name].setAttribute("aria-valuetext", text);
    parts[`${name}-text`].textContent = text;
  }
  const tree = treeOf();
  try {
    result = await allocateLevels(tree);
    fill(parts.error);
  } catch (error) {
    fill(parts.error, error.message);
    return;
  }
  drawLevels();
  drawSums(tree);
  const state = {};
  for (const [name, slider] of Object.entries(SLIDERS)) {
    if (Number(inputs[name].value) !== slider.value) state[name] = inputs[name].value;
  }
  writeState("saves", state, { push });
  parts.command.textContent =
    `perhaps allocate --levels ${tree.levels} --ratio ${tree.ratio} --keys ${tree.keys} ` +
    `--budget ${tree.budget} --runs ${tree.runs}`;
}

function drawLevels() {
  const most = Math.max(...result.levels.flatMap((l) => [l.bits_per_key, l.even_bits_per_key]), 1);
  const bars = result.levels.flatMap((level) => [
    h("span", {}, `level ${level.level}`),
    h("span", { class: "bar", style: `width:${(100 * level.bits_per_key) / most}%` }),
    h("span", {}, `${level.bits_per_key.toFixed(2)} bits`),
    h("span", {}, ""),
    h("span", { class: "bar even", style: `width:${(100 * level.even_bits_per_key) / most}%` }),
    h("span", { class: "quiet" }, `${level.even_bits_per_key.toFixed(2)} even`),
  ]);
  fill(parts.bars, h("div", { class: "bars", "aria-hidden": "true" }, bars));
  fill(
    parts.table,
    table(
      ["level", "keys", "bits per key", "memory", "rate", "even bits per key", "even rate"],
      result.levels.map((l) => [
        String(l.level),
        grouped(l.keys),
        l.bits_per_key.toFixed(2),
        bytesText(l.bytes),
        percent(l.fpr),
        l.even_bits_per_key.toFixed(2),
        percent(l.even_fpr),
      ]),
      { caption: "Bits per key of each level: allocated, and even", numbers: [1, 2, 3, 4, 5, 6] },
    ),
  );
}

function drawSums(tree) {
  const absent = valueOf("absent") / 100;
  const per = (vain, present) => absent * vain + (1 - absent) * present;
  const without = tree.runs + tree.levels - 1;
  const rows = [
    ["no filters", "0", reads(without), reads(without)],
    [
      "even",
      bytesText(result.even_bytes),
      reads(result.even_wasted_reads),
      reads(per(result.even_wasted_reads, result.even_present_reads)),
    ],
    [
      "allocated",
      bytesText(result.bytes),
      reads(result.wasted_reads),
      reads(per(result.wasted_reads, result.present_reads)),
    ],
  ];
  rows[0][3] = `up to ${rows[0][3]}`;
  const saved = 1 - result.bytes_for_even_reads / result.even_bytes;
  fill(
    parts.sums,
    table(["filters", "memory", "reads for an absent key", "reads per lookup"], rows, {
      caption:
        `Lookups in ${bytesText(tree.keys * valueOf("value"))} of data, ${percent(absent)} of them of absent keys`,
      numbers: [1, 2, 3],
    }),
    h(
      "p",
      { id: "saves-words" },
      result.wasted_reads > 0
        ? "With the same memory, allocated filters cause " +
            `${Number((result.even_wasted_reads / result.wasted_reads).toPrecision(3))} times fewer reads in vain ` +
            `than even ones. To cause as few as even ones they need ${bytesText(result.bytes_for_even_reads)}` +
            `${saved > 0.0005 ? `, ${(saved * 100).toFixed(1)}\u00a0% less` : ""}. The filters have ` +
            `${percent(result.bytes / (tree.keys * valueOf("value")))} of the size of the data.`
        : "No lookup reads in vain.",
    ),
  );
}

// The tables that a lookup meets, each with a real filter of the bits that its level has, or none.
async function tablesOf(tree) {
  const tables = [];
  for (const { level, bits_per_key: bitsPerKey } of result.levels) {
    for (let run = 0; run < (level === 1 ? tree.runs : 1); ++run) {
      const name = level === 1 && tree.runs > 1 ? `Level 1, table ${run + 1}` : `Level ${level}`;
      let filter = null;
      if (bitsPerKey > 0) {
        filter = await Filter.create({ keys: SMALL, bitsPerKey: Math.max(bitsPerKey, 0.5) });
        filter.addMany(Array.from({ length: SMALL }, (_, i) => `${name} ${i}`));
      }
      tables.push({ name, level, run, filter });
    }
  }
  return tables;
}

// The first number from `number` on whose key is read in vain, or null.
function unlucky(tables, number) {
  const keys = Array.from({ length: TRIES }, (_, i) => keyOf(number + i));
  const first = tables.map(({ filter }) => (filter === null ? 0 : filter.hasMany(keys).indexOf(1)));
  const found = first.filter((i) => i >= 0);
  return found.length === 0 ? null : number + Math.min(...found);
}

// What a lookup of the key finds, table by table, if level `where` has it.
function answersOf(tables, key, where) {
  return tables.map(({ name, level, run, filter }) => {
    const has = level === where && run === 0;
    if (has) filter?.add(key);
    return { name, has, answer: filter?.has(key) ?? true, filtered: filter !== null, others: level > 1 };
  });
}

function stepsOf(tables, where) {
  const steps = [
    {
      name: "Memtable",
      text: where === 0 ? "found in memory" : "not there: no read",
      kind: where === 0 ? "found" : "skipped",
    },
  ];
  if (where === 0) return steps;
  steps.push({ name: "Immutable memtable", text: "not there: no read", kind: "skipped" });
  for (const table of tables) {
    const range = table.others ? "key ranges leave one table; " : "its key range covers the key; ";
    if (!table.answer) {
      steps.push({ name: table.name, text: `${range}the filter says no: not read`, kind: "skipped" });
    } else if (table.has) {
      steps.push({
        name: table.name,
        text: `${range}${table.filtered ? "the filter says perhaps: " : ""}read, and found`,
        kind: "found",
      });
      return steps;
    } else {
      steps.push({
        name: table.name,
        text: `${range}${table.filtered ? "the filter says perhaps: " : "no filter: "}` + "read in vain",
        kind: "vain",
      });
    }
  }
  steps.push({ name: "Nowhere", text: "the key is absent", kind: "found" });
  return steps;
}

async function lookUp() {
  const mine = (walk = { number: (walk?.number ?? 0) + 1 }); // another lookup ends this one
  const tree = treeOf();
  const which = parts.where.value;
  const where = { absent: -1, vain: -1, memtable: 0 }[which] ?? Math.min(Number(which), tree.levels);
  const tables = where === 0 ? [] : await tablesOf(tree);
  const number = which === "vain" ? unlucky(tables, mine.number) : mine.number;
  const key = keyOf(number);
  const steps = number === null ? [] : stepsOf(answersOf(tables, key, where), where);
  for (const { filter } of tables) filter?.free();
  if (walk !== mine) return;
  if (number === null) {
    fill(parts.path);
    fill(parts.walked, `None of ${grouped(TRIES)} absent keys is read in vain.`);
    return;
  }
  mine.number = number;
  const items = steps.map((step) => h("li", { class: "later" }, h("strong", {}, step.name), h("span", {}, "")));
  fill(parts.path, items);
  fill(parts.walked, `Looking up ${key} ..`);
  const quick = matchMedia("(prefers-reduced-motion: reduce)").matches || parts.quick.checked;
  for (let i = 0; i < steps.length; ++i) {
    if (walk !== mine) return;
    items[i].className = `${steps[i].kind} now`;
    items[i].lastChild.textContent = `: ${steps[i].text}`;
    if (!quick) await new Promise((done) => setTimeout(done, 450));
    items[i].classList.remove("now");
  }
  const vain = steps.filter((step) => step.kind === "vain").length;
  const read = vain + (steps.some((step) => step.text.endsWith("and found")) ? 1 : 0);
  fill(parts.walked, `${key}: ${read} ${read === 1 ? "read" : "reads"}, ${vain} of them in vain.`);
}

export const saves = {
  mount(root) {
    const controls = Object.entries(SLIDERS).map(([name, slider]) => {
      inputs[name] = h("input", {
        type: "range",
        min: slider.min,
        max: slider.max,
        step: slider.step,
        value: slider.value,
        oninput: () => update(),
        onchange: () => update({ push: true }),
      });
      parts[`${name}-text`] = h("output", { for: `saves-${name}` });
      return h(
        "div",
        { class: "field" },
        h("label", { for: `saves-${name}` }, `${slider.label}: `, parts[`${name}-text`]),
        Object.assign(inputs[name], { id: `saves-${name}` }),
      );
    });
    Object.assign(parts, {
      error: h("p", { class: "error", role: "status" }),
      bars: h("div", {}),
      table: h("div", {}),
      sums: h("div", {}),
      command: h("code", {}),
      path: h("ol", { class: "path" }),
      walked: h("p", { role: "status", id: "saves-walked" }),
    });
    parts.where = h(
      "select",
      {},
      [
        ["absent", "absent"],
        ["vain", "absent, and read in vain"],
        ["memtable", "in the memtable"],
        ...[1, 2, 3, 4, 5, 6, 7].map((n) => [String(n), `on level ${n}`]),
      ].map(([value, text]) => h("option", { value }, text)),
    );
    parts.quick = h("input", { type: "checkbox", id: "saves-quick" });
    root.append(
      h(
        "p",
        {},
        "A lookup in an LSM tree queries the filter of every level, and reads a table in vain wherever a filter " +
          "wrongly says perhaps. If the same memory is spread so that a byte saves as many reads on every level, " +
          "fewer are in vain.",
      ),
      h("div", { class: "fields" }, controls),
      parts.error,
      parts.sums,
      h("h3", {}, "Bits per level"),
      parts.bars,
      parts.table,
      h("p", { class: "quiet" }, "The same numbers: ", parts.command),
      h("h3", {}, "One lookup on its way down"),
      h(
        "div",
        { class: "fields" },
        field("The key is", parts.where, "saves-where"),
        h("button", { type: "button", class: "main", onclick: lookUp }, "Look up a key"),
        h("label", { for: "saves-quick" }, parts.quick, " at once"),
      ),
      parts.walked,
      parts.path,
    );
  },
  async show(params) {
    for (const [name, slider] of Object.entries(SLIDERS)) inputs[name].value = params.get(name) ?? slider.value;
    await update();
  },
};
