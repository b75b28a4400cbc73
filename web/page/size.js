// Size one: two of keys, rate, bytes and bits per key give the others, for every family; measured here.
import { bytesText, copyable, field, fill, grouped, h, parseNumber, percent, svg, table, writeState } from "./dom.js";
import { theModule } from "./module.js";

const NAMES = ["keys", "fpr", "bytes", "bits"];
const LABELS = {
  keys: "Keys",
  fpr: "Rate of false positives",
  bytes: "Memory in bytes",
  bits: "Bits per key",
};
const COLOURS = [
  "#0284c7",
  "#ea580c",
  "#7c3aed",
  "#059669",
  "#db2777",
  "#ca8a04",
  "#dc2626",
  "#0d9488",
  "#65a30d",
  "#9333ea",
];
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];

const inputs = {};
const parts = {};
let given = ["keys", "fpr"]; // the two that were set last
let family = "line";
let worker = null;
let drawnFor = 0;

function question() {
  const value = Object.fromEntries(NAMES.map((name) => [name, parseNumber(inputs[name].value)]));
  for (const name of given) {
    if (!(value[name] > 0)) throw new Error(`${LABELS[name]}: not a number above 0`);
  }
  const has = (name) => (given.includes(name) ? value[name] : 0);
  return { keys: has("keys"), fpr: has("fpr"), maxBytes: has("bytes"), bitsPerKey: has("bits") };
}

// The last two that were set are given. Of rate and bits per key one follows from the other, whatever the number of
// keys.
function nowGiven(name) {
  const other = given.filter((one) => one !== name).at(-1);
  const clash = [name, other].every((one) => one === "fpr" || one === "bits");
  given = [clash ? "keys" : other, name];
}

const tidy = (n) => (n >= 1e15 ? n.toExponential(3) : String(Number(n.toPrecision(12))));

function showOthers(row) {
  const found = {
    keys: tidy(row.keys),
    fpr: row.fpr >= 1e-6 ? `${Number((row.fpr * 100).toPrecision(4))} %` : row.fpr.toPrecision(3),
    bytes: tidy(row.bytes),
    bits: row.bits_per_key.toFixed(2),
  };
  for (const name of NAMES) {
    if (!given.includes(name)) inputs[name].value = found[name];
    inputs[name].classList.toggle("given", given.includes(name));
  }
}

// Two workers: one measures, the other answers questions. How many keys fit takes seconds for some families, so a
// question that is no longer of interest ends with its worker.
async function newWorker() {
  const url = URL.createObjectURL(new Blob([globalThis.perhapsWorker], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.postMessage({ module: await theModule() });
  return worker;
}
let asked = 0; // questions so far
let open = null; // {worker, resolve, reject} of the one that waits
let idle = null; // a worker without a question

async function sizes(question) {
  const id = ++asked;
  if (open !== null) {
    open.worker.terminate();
    open.resolve(null);
    open = null;
  }
  const worker = idle ?? (await newWorker());
  idle = null;
  if (id !== asked) {
    idle ??= worker;
    return null;
  }
  const rows = await new Promise((resolve, reject) => {
    open = { worker, resolve, reject };
    worker.onmessage = ({ data }) => (data.error === undefined ? resolve(data.rows) : reject(new Error(data.error)));
    worker.postMessage({ question, id });
  }).finally(() => {
    if (id !== asked) return;
    idle = worker;
    open = null;
  });
  return rows;
}

async function update({ push = false } = {}) {
  let rows;
  try {
    rows = await sizes(question());
  } catch (error) {
    fill(parts.message, error.message);
    return;
  }
  if (rows === null) return; // another question came
  fill(parts.message, rows.length === 0 ? "No family can do that." : "");
  if (rows.length === 0) return;
  const row = rows.find((one) => one.family === family) ?? rows[0];
  family = row.family;
  showOthers(row);
  parts.rows = rows;
  drawTable(rows);
  drawCommands(row);
  const keys = Math.min(Math.max(row.keys, 100), 1e12);
  if (keys !== drawnFor) {
    drawnFor = keys;
    startWorker().then((worker) => worker.postMessage({ curves: keys }));
  }
  if (parts.curves !== undefined) drawPlot(parts.curves, rows);
  const state = Object.fromEntries(given.map((name) => [name, inputs[name].value.replace(/\s/g, "")]));
  parts.table.dataset.given = Object.entries(state)
    .map((one) => one.join("="))
    .join(" ");
  writeState("size", { ...state, family: family === "line" ? "" : family }, { push });
}

function drawTable(rows) {
  const cells = rows.map((row) => [
    h(
      "label",
      {},
      h("input", {
        type: "radio",
        name: "size-family",
        value: row.family,
        ...(row.family === family ? { checked: true } : {}),
        onchange: () => {
          family = row.family;
          update({ push: true });
        },
      }),
      ` ${row.family}`,
    ),
    grouped(row.keys),
    row.bits_per_key.toFixed(2),
    bytesText(row.bytes),
    percent(row.fpr),
    row.bits_per_key_limit > 0.01 ? `+${(row.above_limit * 100).toFixed(row.above_limit < 0.0995 ? 1 : 0)} %` : "-",
    row.probes === 0 ? "-" : String(row.probes),
    [row.add ? "add" : "be built once", row.remove ? "remove" : null, row.merge ? "merge" : null]
      .filter(Boolean)
      .join(", "),
  ]);
  const focused = document.activeElement?.name === "size-family" ? document.activeElement.value : null;
  fill(
    parts.table,
    table(["family", "keys", "bits per key", "memory", "rate", "over the limit", "probes", "can"], cells, {
      caption: "The families that can do it. The limit: every filter needs at least log2(1/rate) bits per key.",
      numbers: [1, 2, 3, 4, 5, 6],
      rowClass: (i) => (rows[i].family === family ? "chosen" : ""),
    }),
  );
  if (focused !== null) parts.table.querySelector(`input[value="${focused}"]`)?.focus();
}

function drawPlot(curves, rows) {
  const width = 640;
  const height = 360;
  const box = { left: 48, top: 12, right: width - 96, bottom: height - 44 };
  const x = (rate) => box.left + ((-1 - Math.log10(rate)) / 4) * (box.right - box.left);
  const y = (bits) => box.bottom - (Math.log2(bits / 3) / Math.log2(256 / 3)) * (box.bottom - box.top);
  const children = [];
  for (const [rate, text] of [
    [0.1, "10 %"],
    [0.01, "1 %"],
    [1e-3, "0.1 %"],
    [1e-4, "0.01 %"],
    [1e-5, "0.001 %"],
  ]) {
    children.push(
      svg("path", { class: "grid", d: `M${x(rate)} ${box.top}V${box.bottom}` }),
      svg("text", { x: x(rate), y: box.bottom + 16, "text-anchor": "middle" }, text),
    );
  }
  for (const bits of [4, 8, 16, 32, 64, 128]) {
    children.push(
      svg("path", { class: "grid", d: `M${box.left} ${y(bits)}H${box.right}` }),
      svg("text", { x: box.left - 6, y: y(bits) + 4, "text-anchor": "end" }, String(bits)),
    );
  }
  children.push(
    svg("text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, "rate"),
    svg("text", { x: 4, y: box.top + 4 }, "bits per key"),
  );
  const names = [...new Set(curves.flatMap((point) => Object.keys(point)))].filter((n) => n !== "fpr");
  const labels = [];
  names.forEach((name) => {
    const points = curves.filter((p) => p[name] >= 3 && p[name] <= 256).map((p) => [x(p.fpr), y(p[name])]);
    if (points.length === 0) return;
    const index = names.indexOf(name);
    const colour = name === "limit" ? "var(--quiet)" : COLOURS[index % COLOURS.length];
    children.push(
      svg("path", {
        d: points.map(([px, py], i) => `${i === 0 ? "M" : "L"}${px.toFixed(1)} ${py.toFixed(1)}`).join(""),
        fill: "none",
        stroke: colour,
        "stroke-width": name === family ? 3.5 : 1.5,
        "stroke-dasharray": name === "limit" ? "2 4" : DASHES[index % 4],
      }),
    );
    labels.push({ name, at: points[points.length - 1], colour });
  });
  labels.sort((a, b) => a.at[1] - b.at[1]);
  let last = -20;
  for (const { name, at, colour } of labels) {
    last = Math.max(at[1] + 4, last + 13);
    children.push(
      svg("path", { d: `M${at[0]} ${at[1]}L${box.right + 8} ${last - 4}`, stroke: colour, "stroke-width": 1 }),
      svg("text", { x: box.right + 11, y: last, "font-weight": name === family ? "bold" : "normal" }, name),
    );
  }
  for (const row of rows) {
    if (row.fpr > 0.1 || row.fpr < 1e-5 || row.bits_per_key < 3 || row.bits_per_key > 256) continue;
    children.push(
      svg("circle", {
        cx: x(row.fpr),
        cy: y(row.bits_per_key),
        r: row.family === family ? 5 : 3,
        fill: row.family === family ? "var(--hit)" : "var(--ink)",
      }),
    );
  }
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": "Bits per key of each family over the rate, both logarithmic; the table above has the numbers",
    },
    ...children,
  );
  fill(
    parts.plot,
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Bits per key over the rate" }, picture),
    h("p", { class: "quiet" }, "Dots: the rows of the table."),
  );
}

function drawCommands(row) {
  const keys = Math.round(row.keys);
  // What decides the size, as each language names it: the number that was given, or the one of this family.
  const [shell, named, camel, number] = given.includes("fpr")
    ? ["--fpr", "fpr", "fpr", parseNumber(inputs.fpr.value)]
    : given.includes("bits")
      ? ["--bits-per-key", "bits_per_key", "bitsPerKey", parseNumber(inputs.bits.value)]
      : ["--max-bytes", "max_bytes", "maxBytes", row.bytes];
  // The others are called as the family is.
  const types = {
    line: "LineBloom",
    block: "BlockBloom",
    classic: "Bloom",
    scalable: "ScalableBloom",
    counting: "CountingBloom",
  };
  const type = types[family] ?? family[0].toUpperCase() + family.slice(1);
  const cpp = !row.add
    ? `auto seen = perhaps::${type}::build(std::span<const std::string_view>(keys), {.${named} = ${number}});`
    : family === "scalable"
      ? `perhaps::ScalableBloom seen(perhaps::Growth{.fpr = ${number}, .first = ${keys}});`
      : `perhaps::${type} seen({.keys = ${keys}, .${named} = ${number}});`;
  const python = row.add
    ? `seen = perhaps.Filter(${keys}, ${named}=${number}, family="${family}")`
    : `seen = perhaps.build(keys, ${named}=${number}, family="${family}")`;
  const size = `{ keys: ${keys}, ${camel}: ${number}, family: "${family}" }`;
  fill(
    parts.commands,
    copyable(
      "the shell",
      `perhaps build --filter ${family} --keys-expected ${keys} ${shell} ${number} -o seen.perhaps keys.txt`,
    ),
    copyable("C++", cpp),
    copyable("Python", python),
    copyable("JavaScript", `const seen = await Filter.${row.add ? "create(" : "build(keys, "}${size});`),
  );
}

// The one that measures, and draws the curves.
function startWorker() {
  worker ??= newWorker().then((made) => {
    made.onmessage = heard;
    return made;
  });
  return worker;
}

async function measure() {
  const row = parts.rows.find((one) => one.family === family);
  const keys = Math.max(1, Math.min(Math.round(row.keys), 1_000_000));
  parts.measure.disabled = true;
  parts.progress.hidden = false;
  parts.progress.value = 0;
  const options = { keys, fpr: Math.min(row.fpr, 0.5) };
  (await startWorker()).postMessage({ family, keys, options });
}

// What the worker says.
function heard({ data }) {
  if (data.curves !== undefined) {
    parts.curves = data.curves;
    if (data.keys === drawnFor) drawPlot(parts.curves, parts.rows);
    return;
  }
  if (data.progress !== undefined) {
    parts.progress.value = data.progress;
    fill(parts.measured, `${data.doing} ..`);
    return;
  }
  parts.measure.disabled = false;
  parts.progress.hidden = true;
  if (data.error !== undefined) {
    fill(parts.measured, h("span", { class: "error" }, data.error));
    return;
  }
  const r = data.result;
  parts.measured.dataset.rate = r.rate;
  fill(
    parts.measured,
    `${r.family} with ${grouped(r.keys)} keys: ${grouped(r.hits)} of ${grouped(r.keys)} absent keys answered ` +
      `perhaps: ${percent(r.rate)} (${percent(r.interval.low)} to ${percent(r.interval.high)} at 95\u00a0% ` +
      `confidence; the model says ${percent(r.model)}). ` +
      `${r.lost === 0 ? "No key was lost." : `${grouped(r.lost)} keys were lost.`} On this computer: ` +
      `${r.lookupNs.toFixed(1)} ns per lookup, ${r.buildNs.toFixed(1)} ns per key to build, ${bytesText(r.bytes)}.`,
  );
}

export const size = {
  mount(root) {
    const fields = NAMES.map((name) => {
      inputs[name] = h("input", {
        inputmode: name === "keys" ? "numeric" : "decimal",
        size: 14,
        autocomplete: "off",
        oninput: () => {
          nowGiven(name);
          update();
        },
        onchange: () => update({ push: true }),
      });
      return field(LABELS[name], inputs[name], `size-${name}`);
    });
    Object.assign(parts, {
      message: h("p", { class: "error", role: "status" }),
      table: h("div", {}),
      plot: h("div", {}),
      commands: h("div", {}),
      measured: h("p", { role: "status", id: "size-measured" }),
      progress: h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress of the measurement" }),
    });
    parts.measure = h("button", { type: "button", class: "main", onclick: measure }, "Build one here and measure");
    root.append(
      h("p", {}, "Set any two; the other two follow. You can write 1e6, 50M, 64Mi or 0.1\u00a0%."),
      h("div", { class: "fields" }, fields),
      parts.message,
      parts.table,
      h("div", { class: "fields" }, parts.measure, parts.progress),
      parts.measured,
      parts.plot,
      h("h3", {}, "To copy"),
      parts.commands,
    );
  },
  async show(params) {
    const named = NAMES.filter((name) => params.has(name));
    if (named.length === 2) given = named;
    else given = ["keys", "fpr"];
    for (const name of given) inputs[name].value = params.get(name) ?? { keys: "1000000", fpr: "1%" }[name];
    family = params.get("family") ?? "line";
    await update();
  },
};
