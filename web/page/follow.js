// Follow a key: from the text to its digest, to its place, to the bits that a lookup reads. The filter is a small real
// one; what is drawn is what the library explains.
import { Filter } from "../core.js";
import { field, fill, grouped, h, percent, writeState } from "./dom.js";
import { explain, rateInterval } from "./tools.js";

const FAMILIES = {
  classic: { capacity: 24, fpr: 0.1, text: "Every key sets a few bits anywhere in one array." },
  line: {
    capacity: 48,
    fpr: 0.05,
    text: "All bits of a key lie in one line of 512 bits: a lookup is one cache miss.",
  },
  block: {
    capacity: 40,
    fpr: 0.05,
    text: "A block has eight words of 32 bits, and a key sets one bit in each of them.",
  },
  cuckoo: {
    capacity: 48,
    fpr: 0.05,
    text: "A key is a fingerprint in one of two buckets of four slots, and can be removed.",
  },
  ribbon: {
    capacity: 600,
    fpr: 0.01,
    text: "The table solves one equation per key and column: the parity of the chosen bits must be the key's own bit.",
  },
};
const FRUIT = ["apple", "banana", "cherry", "damson", "elderberry", "fig", "grape", "hazelnut"];
const SHOWN_BYTES = 512;

const parts = {};
const memory = new Map(); // key -> what a lookup of it reads, in the present filter
let family = "classic";
let keys = FRUIT;
let added = []; // the keys, and others
let filter = null;
let shown = null; // {key, explanation}
let steps = Infinity; // how many checks are shown

// Some families need more keys than a person types to be as full as they are meant to be.
const others = () =>
  Array.from(
    { length: family === "classic" ? 0 : Math.max(0, FAMILIES[family].capacity - keys.length) },
    (_, i) => `other ${i + 1}`,
  );

const keysIn = (text) =>
  text
    .split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "")
    .slice(0, 200);

async function make() {
  filter?.free();
  filter = null;
  memory.clear();
  const { capacity, fpr } = FAMILIES[family];
  try {
    added = [...new Set([...keys, ...others()])];
    if (family === "ribbon") {
      filter = await Filter.build(added, { family, keys: added.length, fpr });
    } else {
      filter = await Filter.create({ family, keys: capacity, fpr });
      filter.addMany(added);
    }
    fill(parts.error);
  } catch (error) {
    fill(parts.error, error.message);
  }
}

function explained(key) {
  if (!memory.has(key)) memory.set(key, explain(filter, key).parts[0]);
  return memory.get(key);
}

// Which keys set a bit.
const setters = (at) =>
  added.filter((key) => explained(key).checks.some((check) => check.what === "bit" && check.at === at));

// Which keys have the fingerprint and a bucket of a key.
function doubles(part) {
  const buckets = ({ steps }) => [steps["first bucket"], steps["second bucket"]];
  return added.filter((key) => {
    const other = explained(key);
    return (
      other.steps.fingerprint === part.steps.fingerprint &&
      buckets(other).some((bucket) => buckets(part).includes(bucket))
    );
  });
}

function bitPicture(checks, upTo) {
  const unit = family === "line" ? 64 : family === "block" ? 32 : 0;
  const at = checks.length === 0 ? 0 : checks[0].at;
  const from = unit === 0 ? 0 : Math.floor(at / 8 / unit) * unit;
  const bytes = filter.table(from, unit === 0 ? SHOWN_BYTES : unit);
  const wanted = new Set(checks.slice(0, upTo).map((check) => check.at - 8 * from));
  const grid = h("div", {
    class: "bits wide",
    role: "img",
    "aria-label":
      `Bits ${grouped(8 * from)} to ${grouped(8 * (from + bytes.length) - 1)} of the table; ` +
      `${wanted.size} of them belong to the key`,
  });
  const last = family === "classic" ? filter.describe().bits : 8 * bytes.length;
  for (let bit = 0; bit < Math.min(8 * bytes.length, last); ++bit) {
    const set = (bytes[bit >> 3] >> (bit & 7)) & 1;
    grid.append(
      h("i", {
        class: [set ? "set" : "", wanted.has(bit) ? "want" : ""].join(" ").trim() || null,
        title: wanted.has(bit) || set ? `bit ${8 * from + bit}${set ? ": set" : ": not set"}` : null,
      }),
    );
  }
  const what = unit === 0 ? "The whole table" : `The ${family} of the key`;
  return [
    h("p", { class: "quiet" }, `${what}, 32 bits in a row. Filled: set. In colour: the bits of the key.`),
    grid,
  ];
}

function slotPicture(checks, upTo) {
  return [
    h("p", { class: "quiet" }, "The slots of both buckets. A lookup compares the fingerprint with each."),
    h(
      "div",
      { class: "slots mono" },
      checks.map((check, i) =>
        h(
          "span",
          {
            class: i >= upTo ? null : check.holds ? "want held" : "want",
          },
          check.found === 0 ? "empty" : String(check.found),
        ),
      ),
    ),
  ];
}

function columnPicture(part, checks, upTo) {
  const bitsOf = (hex) => BigInt(hex).toString(2).padStart(64, "0").split("").reverse();
  const coefficients = bitsOf(part.steps.coefficients);
  const row = (label, bits, mark) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, label),
      h(
        "td",
        {},
        h(
          "div",
          { class: "bits", style: "grid-template-columns: repeat(64, 7px)" },
          bits.map((bit, i) =>
            h("i", {
              style: "width:7px",
              class:
                [bit === "1" ? "set" : "", mark && coefficients[i] === "1" ? "want" : ""].join(" ").trim() || null,
            }),
          ),
        ),
      ),
    );
  return [
    h(
      "p",
      { class: "quiet" },
      "64 slots of each column from the start of the key on. In colour: chosen by the coefficients. " +
        "The parity of the coloured bits must be the bit of the fingerprint.",
    ),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Columns of the ribbon" },
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          row("coefficients", coefficients, false),
          checks.slice(0, upTo).map((check, i) => {
            const line = row(`column ${i}`, bitsOf(check.content), true);
            line.append(
              h("td", { class: check.holds ? "yes" : "no" }, `${check.found}, wanted ${check.wanted}`),
            );
            return line;
          }),
        ),
      ),
    ),
  ];
}

function checkText(check, i) {
  if (check.what === "bit") {
    const by = setters(check.at);
    const whose =
      by.length === 0 ? "" : `, by ${by.slice(0, 4).join(", ")}${by.length > 4 ? ` and ${by.length - 4} more` : ""}`;
    return `bit ${grouped(check.at)} is ${check.holds ? `set${whose}` : "not set"}`;
  }
  if (check.what === "column") return `parity ${check.found}, wanted ${check.wanted}`;
  if (check.what === "slot")
    return check.found === 0
      ? `slot ${i + 1} is empty`
      : `slot ${i + 1} holds ${check.found}${check.holds ? ": the fingerprint" : ""}`;
  return check.holds ? "the digest is in the stash" : "another digest is in the stash";
}

function verdict(explanation, part) {
  const present = added.includes(shown.key);
  const answer = h("strong", { class: explanation.answer === "no" ? "no" : "yes" }, explanation.answer);
  if (explanation.answer === "no") {
    const failed = part.checks.filter((check) => !check.holds).length;
    const why =
      part.rule === "any"
        ? "its fingerprint is in none of the slots"
        : part.rule === "all"
          ? `${failed} of ${part.checks.length} checks fail`
          : "it has no keys";
    return [answer, `: ${why}. ${shown.key} was certainly never added.`];
  }
  const found = part.rule === "any" ? "its fingerprint is there" : "every check holds";
  if (present) return [answer, `: ${shown.key} was added, so ${found}.`];
  return [
    answer,
    `, wrongly: ${shown.key} was never added. `,
    part.rule === "any"
      ? `Its fingerprint is that of ${doubles(part).join(" and of ")}, in the same bucket.`
      : part.checks.some((check) => check.what === "bit")
        ? "Other keys have set all of its bits."
        : "By chance all parities are those of its fingerprint.",
  ];
}

function draw() {
  if (filter === null || shown === null) return fill(parts.picture);
  const { explanation } = shown;
  const part = explanation.parts[0];
  const upTo = Math.min(steps, part.checks.length);
  const done = upTo >= part.checks.length;
  const facts = [
    h("li", {}, `${explanation.hash} of the text: `, h("code", {}, explanation.digest)),
    h("li", {}, "multiplied by a constant: ", h("code", {}, explanation.word)),
  ];
  for (const [name, value] of Object.entries(part.steps)) facts.push(h("li", {}, `${name}: `, h("code", {}, value)));
  const picture =
    part.steps.part !== undefined
      ? [
          h(
            "p",
            {},
            "Every other part of the ribbon has passed this key on to the last one, the dense part: each of its " +
              "equations goes over all slots there, so no slot is wasted.",
          ),
        ]
      : family === "cuckoo"
        ? slotPicture(part.checks, upTo)
        : family === "ribbon"
          ? columnPicture(part, part.checks, upTo)
          : bitPicture(part.checks, upTo);
  fill(
    parts.picture,
    h("h3", {}, shown.key === "" ? "(the empty key)" : shown.key),
    h("ol", {}, facts),
    ...picture,
    family === "ribbon" && part.steps.part === undefined
      ? null
      : h(
          "ol",
          { start: facts.length + 1 },
          part.checks
            .slice(0, upTo)
            .map((check, i) =>
              h("li", { class: check.holds || part.rule === "any" ? null : "no" }, checkText(check, i)),
            ),
        ),
    h(
      "p",
      { role: "status", id: "follow-verdict" },
      done ? verdict(explanation, part) : `${upTo} of ${part.checks.length} checks so far`,
    ),
  );
  parts.step.disabled = done;
}

function save(push) {
  writeState(
    "follow",
    {
      family: family === "classic" ? "" : family,
      keys: keys.join(",") === FRUIT.join(",") ? "" : keys.join(",") || ",",
      key: shown?.key ?? "",
    },
    { push },
  );
}

function ask(key, { push = true, slowly = false } = {}) {
  if (filter === null) return;
  shown = { key, explanation: explain(filter, key) };
  steps = slowly ? 0 : Infinity;
  parts.key.value = key;
  draw();
  save(push);
}

// Absent keys that look like words somebody might type.
const candidates = (from, count) => Array.from({ length: count }, (_, i) => `guess ${from + i}`);

function findOne() {
  for (let from = 0; from < 1e6; from += 4096) {
    const guesses = candidates(from, 4096);
    const found = filter.hasMany(guesses).findIndex((answer, i) => answer === 1 && !added.includes(guesses[i]));
    if (found >= 0) {
      ask(guesses[found]);
      fill(parts.note, `${grouped(from + found + 1)} absent keys were tried until one answered perhaps.`);
      return;
    }
  }
  fill(parts.note, "None of a million absent keys answered perhaps.");
}

async function runThousand() {
  const answers = filter.hasMany(candidates(1e6, 1000));
  const hits = answers.reduce((sum, answer) => sum + answer, 0);
  const { low, high } = await rateInterval(hits, 1000);
  const now = filter.describe().fpr;
  fill(
    parts.note,
    `Of 1,000 absent keys ${hits} answered perhaps: ${percent(hits / 1000)} (${percent(low)} to ` +
      `${percent(high)} at 95 % confidence). The filter's own bits predict ${percent(now)}.`,
  );
}

async function remake({ push = true } = {}) {
  await make();
  const more = others().length;
  fill(
    parts.about,
    `${FAMILIES[family].text} This filter is made for ${FAMILIES[family].capacity} keys at ` +
      `${percent(FAMILIES[family].fpr)}. It holds your ${keys.length === 1 ? "key" : `${keys.length} keys`}` +
      `${more === 0 ? "" : ` and ${more} others`}.`,
  );
  fill(parts.note);
  if (shown !== null) ask(shown.key, { push });
}

export const follow = {
  mount(root) {
    parts.family = h(
      "select",
      {
        onchange: () => {
          family = parts.family.value;
          remake();
        },
      },
      Object.keys(FAMILIES).map((name) => h("option", { value: name }, name)),
    );
    parts.keys = h("input", {
      size: 48,
      autocomplete: "off",
      spellcheck: "false",
      onchange: () => {
        keys = keysIn(parts.keys.value);
        remake();
      },
    });
    parts.key = h("input", {
      size: 20,
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => ask(parts.key.value, { push: false }),
      onchange: () => save(true),
    });
    parts.step = h(
      "button",
      {
        type: "button",
        onclick: () => {
          steps = steps === Infinity ? 1 : steps + 1;
          draw();
        },
      },
      "Next step",
    );
    Object.assign(parts, {
      error: h("p", { class: "error", role: "status" }),
      about: h("p", {}),
      note: h("p", { role: "status", id: "follow-note" }),
      picture: h("div", {}),
    });
    root.append(
      h(
        "p",
        {},
        "A lookup hashes the key, finds its place in the table and reads a few bits there. If one of them is not as " +
          "adding the key would have left it, the key was never added.",
      ),
      h(
        "div",
        { class: "fields" },
        field("Family", parts.family, "follow-family"),
        field("Keys in the filter, separated by commas", parts.keys, "follow-keys"),
      ),
      parts.error,
      parts.about,
      h(
        "div",
        { class: "fields" },
        field("Look up", parts.key, "follow-key"),
        h("button", { type: "button", onclick: () => ask(parts.key.value, { slowly: true }) }, "Step through"),
        parts.step,
        h("button", { type: "button", onclick: findOne }, "Find me a false positive"),
        h("button", { type: "button", onclick: runThousand }, "Run a thousand"),
      ),
      parts.note,
      parts.picture,
    );
  },
  async show(params) {
    family = Object.hasOwn(FAMILIES, params.get("family")) ? params.get("family") : "classic";
    keys = params.has("keys") ? keysIn(params.get("keys")) : FRUIT;
    parts.family.value = family;
    parts.keys.value = keys.join(", ");
    shown = { key: params.get("key") ?? "cherry" };
    await remake({ push: false });
  },
};
