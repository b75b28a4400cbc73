// Look into a file: what it is, its shape and fill, every filter inside, its answers, and the same filter in another
// format. The file stays here.
import { Filter, formats } from "../core.js";
import { bytesText, download, field, fill, grouped, h, percent, readState, table, writeState } from "./dom.js";
import { gunzip } from "./gunzip.js";
import { convert as converted, shardOf, shardsIn } from "./tools.js";

const CELLS = 1024;
const MOST_ROWS = 200;

let current = null; // {filter, name, bytes, info}; of a file of shards also {shards, shard}
const parts = {};

function facts(info) {
  const rows = [["format", info.format === "perhaps" ? "perhaps: our own file" : `${info.format}: ${info.system}`]];
  if (current.shards) rows.push(["shard", `${current.shard.index} of ${grouped(current.shards.count)}`]);
  rows.push(["family", info.family]);
  if (info.hash !== "") rows.push(["hash", info.hash]);
  const estimate = `about ${grouped(info.keys_distinct)} distinct`;
  rows.push(["keys", info.keys === null ? estimate : `${grouped(info.keys)}, ${estimate}`]);
  const perKey = info.bits_per_key === null ? "" : `, ${info.bits_per_key.toFixed(2)} bits per key`;
  rows.push(["size", `${grouped(info.bytes)} bytes${perKey}`]);
  if (info.probes !== 0) rows.push(["probes", String(info.probes)]);
  for (const [name, value] of Object.entries(info.more)) rows.push([name, value]);
  rows.push(["fill", `${(info.fill * 100).toFixed(1)} %`]);
  const about = info.format === "perhaps" ? "" : "about ";
  const full = info.fpr_at_capacity === null ? "" : `, ${percent(info.fpr_at_capacity)} when full`;
  rows.push(["rate", `${about}${percent(info.fpr)} now${full}`]);
  for (const [name, value] of Object.entries(info.about)) rows.push([name, value]);
  for (const note of info.notes) rows.push(["note", note]);
  return rows;
}

function drawFill(entry) {
  const cells = current.filter.fill(CELLS, entry);
  const style = getComputedStyle(document.documentElement);
  const canvas = h("canvas", { width: 64 * 10, height: 16 * 10, role: "img" });
  const context = canvas.getContext("2d");
  let low = 1;
  let high = 0;
  cells.forEach((share, i) => {
    if (share < 0) return;
    low = Math.min(low, share);
    high = Math.max(high, share);
    context.fillStyle = style.getPropertyValue("--line");
    context.fillRect((i % 64) * 10, Math.floor(i / 64) * 10, 10, 10);
    context.globalAlpha = share;
    context.fillStyle = style.getPropertyValue("--hit");
    context.fillRect((i % 64) * 10, Math.floor(i / 64) * 10, 10, 10);
    context.globalAlpha = 1;
  });
  const words =
    `Share of set bits in ${grouped(cells.filter((c) => c >= 0).length)} equal parts of the bytes: ` +
    `from ${(low * 100).toFixed(0)} to ${(high * 100).toFixed(0)}\u00a0%.`;
  canvas.setAttribute("aria-label", words);
  fill(parts.picture, h("h3", {}, "Fill"), canvas, h("p", { class: "quiet" }, words));
}

function entriesTable() {
  const { entries } = current.info;
  if (entries.length === 0 || (entries.length === 1 && entries[0].name === "")) return null;
  const rows = entries
    .slice(0, MOST_ROWS)
    .map((entry, i) => [
      h(
        "button",
        { type: "button", onclick: () => drawFill(i), "aria-label": `Show the fill of ${entry.name || i}` },
        entry.name || String(i),
      ),
      entry.format || entry.family,
      grouped(entry.offset),
      grouped(entry.size),
      grouped(entry.keys ?? entry.keys_distinct),
      `${(entry.fill * 100).toFixed(1)} %`,
      percent(entry.fpr),
    ]);
  const more = entries.length > MOST_ROWS ? `, the first ${MOST_ROWS} of them` : "";
  return [
    h("h3", {}, "Filters inside"),
    table(["filter", "format", "offset", "bytes", "keys", "fill", "rate"], rows, {
      caption: `${grouped(entries.length)} filters${more}`,
      numbers: [2, 3, 4, 5, 6],
    }),
  ];
}

function integerIn(line) {
  try {
    return BigInt(line.trim());
  } catch {
    throw new Error(`${line} is not an integer`);
  }
}

function keysOf(text, kind) {
  const lines = text.split(/\r?\n/).filter((line) => line !== "");
  if (kind === "numbers") return lines.map(integerIn);
  if (kind !== "hex") return lines;
  return lines.map((line) => {
    const digits = line.trim().replace(/^0x/, "");
    if (!/^([0-9a-fA-F]{2})*$/.test(digits)) throw new Error(`${line} is not hexadecimal`);
    return Uint8Array.from(digits.match(/../g) ?? [], (two) => parseInt(two, 16));
  });
}

const answersOf = (filter, keys) => Array.from(filter.hasMany(keys), (answer) => (answer ? "perhaps" : "no"));

// A key is asked of its own shard, whichever is shown.
function ofShards(key) {
  const index = shardOf(key, current.shards.count);
  const shard = current.shards.here.find((one) => one.index === index);
  if (shard === undefined) return `perhaps: shard ${index} is not in this file`;
  return answersOf(shard.filter, [key])[0];
}

function ask() {
  const text = parts.keys.value;
  try {
    const keys = keysOf(text, parts.kind.value);
    const answers = current.shards ? keys.map(ofShards) : answersOf(current.filter, keys);
    const lines = text.split(/\r?\n/).filter((line) => line !== "");
    fill(
      parts.answers,
      lines
        .slice(0, 1000)
        .map((line, i) =>
          h(
            "li",
            {},
            h("span", { class: answers[i] === "no" ? "no" : "yes" }, answers[i]),
            " ",
            h("code", {}, line),
          ),
        ),
    );
  } catch (error) {
    fill(parts.answers, h("li", { class: "error" }, error.message));
  }
  writeState("look", { ask: text, kind: parts.kind.value });
}

function convert() {
  const to = parts.to.value;
  try {
    const bytes = converted(current.filter, to);
    download(bytes, `${current.name}.${to}`);
    fill(parts.converted, `${current.info.format} to ${to}: ${grouped(bytes.length)} bytes, the same filter.`);
    parts.converted.className = "";
  } catch (error) {
    fill(parts.converted, error.message);
    parts.converted.className = "error";
  }
}

function describe() {
  const { info, name, bytes } = current;
  const rows = facts(info);
  fill(
    parts.result,
    h("h3", {}, name, h("span", { class: "quiet" }, `, ${bytesText(bytes.length)}`)),
    current.shards
      ? h(
          "div",
          { class: "fields" },
          field(
            `Shard, of ${grouped(current.shards.here.length)} here`,
            h(
              "select",
              { onchange: (event) => showShard(Number(event.target.value)) },
              current.shards.here.map((shard, i) =>
                h("option", { value: i, selected: shard === current.shard }, String(shard.index)),
              ),
            ),
            "look-shard",
          ),
        )
      : "",
    h("div", { class: "two" }, table(["what", "value"], rows, { caption: `What ${name} is` }), parts.picture),
    entriesTable() ?? "",
    h("h3", {}, "Look up keys"),
    h("div", { class: "fields" }, field("Keys are", parts.kind, "look-kind")),
    field("Keys, one per line", parts.keys, "look-keys"),
    parts.answers,
    h("h3", {}, "Download"),
    h(
      "div",
      { class: "fields" },
      h("button", { type: "button", onclick: () => download(current.filter.toBytes(), name) }, "Download as it is"),
      field("In the format of", parts.to, "look-to"),
      h("button", { type: "button", onclick: convert }, "Convert and download"),
    ),
    parts.converted,
  );
  parts.converted.textContent = "";
  drawFill(0);
  ask();
}

function forget() {
  for (const one of current?.shards?.here ?? [current]) one?.filter?.free();
  current = null;
}

function showShard(i) {
  const shard = current.shards.here[i];
  const bytes = current.file.subarray(shard.offset, shard.offset + shard.size);
  current = { ...current, shard, filter: shard.filter, bytes, info: shard.filter.describe() };
  describe();
}

// The filters of a file of shards, all opened: a key may be of any.
async function openShards(bytes, name, shards) {
  try {
    for (const shard of shards.here)
      shard.filter = await Filter.open(bytes.subarray(shard.offset, shard.offset + shard.size), { fileName: name });
  } catch (error) {
    for (const shard of shards.here) shard.filter?.free();
    throw error;
  }
  forget();
  current = { shards, name, file: bytes };
  fill(parts.message, "");
  showShard(0);
}

async function open(bytes, name, format) {
  fill(parts.message, `Reading ${name} ..`);
  parts.message.className = "quiet";
  let packed = false;
  try {
    if (bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8) {
      bytes = await gunzip(bytes);
      name = name.replace(/\.gz$/, "");
      packed = true;
    }
    const shards = format === undefined ? await shardsIn(bytes, name) : null;
    if (shards !== null) return await openShards(bytes, name, shards);
    const filter = await Filter.open(bytes, { fileName: name, format });
    forget();
    current = { filter, name, bytes, info: filter.describe() };
    if (packed) current.info.notes.push(`gzip: ${grouped(bytes.length)} bytes unpacked`);
    fill(parts.message, "");
    parts.kind.value = /u64|number/.test(current.info.about.recipe ?? "") ? "numbers" : parts.kind.value;
    describe();
  } catch (error) {
    parts.pending = { bytes, name };
    parts.message.className = "";
    fill(
      parts.message,
      h("p", { class: "error" }, error.message),
      h(
        "div",
        { class: "fields" },
        field("If you know what it is", parts.format, "look-format"),
        h(
          "button",
          { type: "button", onclick: () => open(parts.pending.bytes, parts.pending.name, parts.format.value) },
          "Read it as that",
        ),
      ),
    );
    fill(parts.result);
  }
}

async function take(file) {
  if (file.size >= 2 ** 31) {
    fill(
      parts.message,
      h("p", { class: "error" }, `${file.name}: files of 2 GiB and more do not fit into memory here`),
    );
    return;
  }
  await open(new Uint8Array(await file.arrayBuffer()), file.name);
}

async function example(kind) {
  const words = Array.from({ length: 5000 }, (_, i) => `key ${i}`);
  const filter = await Filter.build(words, kind === "perhaps" ? { keys: 5000 } : { format: kind });
  const bytes = filter.toBytes();
  filter.free();
  parts.keys.value = "key 1\nkey 4999\nno such key";
  await open(bytes, `example.${kind}`, kind === "perhaps" ? undefined : kind);
}

function makeParts() {
  parts.message = h("div", { role: "status" });
  parts.result = h("div", {});
  parts.picture = h("div", {});
  parts.answers = h("ul", { class: "path", "aria-live": "polite" });
  parts.keys = h("textarea", { rows: 4, oninput: () => current && ask(), spellcheck: "false" });
  parts.kind = h(
    "select",
    { onchange: () => current && ask() },
    [
      ["text", "text"],
      ["numbers", "64-bit numbers"],
      ["hex", "bytes in hexadecimal"],
    ].map(([value, text]) => h("option", { value }, text)),
  );
  parts.to = h("select", {});
  parts.format = h("select", {});
  parts.converted = h("p", { role: "status" });
}

export const look = {
  async mount(root) {
    makeParts();
    const input = h("input", {
      type: "file",
      id: "look-file",
      onchange: () => input.files[0] && take(input.files[0]),
    });
    const drop = h(
      "div",
      {
        class: "drop",
        ondragover: (event) => {
          event.preventDefault();
          drop.classList.add("over");
        },
        ondragleave: () => drop.classList.remove("over"),
        ondrop: (event) => {
          event.preventDefault();
          drop.classList.remove("over");
          if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
        },
      },
      h("label", { for: "look-file" }, "Drop a filter file here, or choose one: "),
      input,
    );
    const all = { summary: h("summary", {}, "All formats of other systems"), names: h("p", {}) };
    root.append(
      h(
        "p",
        {},
        "A table of LevelDB or RocksDB, a Filter.db of Cassandra, a Parquet file, a dump of RedisBloom, our own: " +
          "recognised by content and name. ",
        h("strong", {}, "It is never uploaded"),
        ": this page makes no request after it has loaded.",
      ),
      h("details", {}, all.summary, all.names),
      h("div", { style: "height:0.75rem" }),
      drop,
      h(
        "div",
        { class: "fields" },
        h("span", { class: "quiet" }, "No file at hand?"),
        ["perhaps", "guava", "cassandra"].map((kind) =>
          h("button", { type: "button", onclick: () => example(kind) }, `An example: ${kind}`),
        ),
      ),
      parts.message,
      parts.result,
    );
    const list = await formats();
    const options = (some) => some.map((f) => h("option", { value: f.name }, f.name));
    fill(parts.to, options(list.filter((f) => f.converts)));
    fill(parts.format, options(list));
    fill(all.summary, `All ${list.length} formats of other systems`);
    fill(all.names, list.map((f) => f.name).join(", "));
  },
  show(params) {
    if (params.has("ask")) parts.keys.value = params.get("ask");
    if (params.has("kind")) parts.kind.value = params.get("kind");
    if (current) ask();
    else if (readState().id === "look" && params.get("example")) return example(params.get("example"));
  },
};
