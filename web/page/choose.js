// Choose: a few questions lead to a family. The rules are the library's (web/choose.h).
import { sizeTable } from "../core.js";
import { bytesText, copyable, fill, h, percent, table, writeState } from "./dom.js";
import { chooseFamily } from "./tools.js";

const QUESTIONS = {
  once: {
    text: "Are all keys known when it is built, and then fixed?",
    options: { yes: "yes", no: "no" },
    value: "no",
  },
  remove: {
    text: "Do keys come and go?",
    options: {
      no: "no, they only come",
      yes: "yes, they are removed again",
      recent: "only the most recent ones matter",
    },
    value: "no",
  },
  number: { text: "Is the number of keys known, at least roughly?", options: { yes: "yes", no: "no" }, value: "yes" },
  merge: {
    text: "Must filters be merged, or grow, without their keys?",
    options: { no: "no", yes: "yes" },
    value: "no",
  },
  adversary: { text: "Can an adversary choose the keys?", options: { no: "no", yes: "yes" }, value: "no" },
  parquet: { text: "Must Parquet read its layout?", options: { no: "no", yes: "yes" }, value: "no" },
};

const chosen = {};
const parts = {};

async function update({ push = false } = {}) {
  const { family, summary, reason, unmet } = await chooseFamily({
    once: chosen.once === "yes",
    remove: chosen.remove === "yes",
    recent: chosen.remove === "recent",
    unknown: chosen.number === "no",
    merge: chosen.merge === "yes",
    parquet: chosen.parquet === "yes",
  });
  const rows = await sizeTable({ keys: 1e6, fpr: 0.01 });
  const keyed = chosen.adversary === "yes";
  fill(
    parts.answer,
    h("h3", {}, `Take ${family}`),
    h("p", {}, reason),
    unmet.length > 0 ? h("p", {}, `No family can do all of that: ${unmet.join("; ")}.`) : null,
    keyed
      ? h(
          "p",
          {},
          "Since an adversary can choose keys, hash under a secret of 16 bytes: whoever does not know it cannot " +
            "find keys that collide.",
        )
      : null,
    copyable(
      "the shell",
      `perhaps build --filter ${family}${keyed ? " --keyed secret.key" : ""} -o seen.perhaps keys.txt`,
    ),
    h("p", { class: "quiet" }, summary),
    h(
      "p",
      {},
      h("a", { href: `#size?keys=1000000&fpr=1%25&family=${family}` }, `Size a ${family} filter`),
      " or ",
      ["classic", "line", "block", "cuckoo", "ribbon"].includes(family)
        ? h("a", { href: `#follow?family=${family}` }, "see it work")
        : h("a", { href: "#follow" }, "see others work"),
      ".",
    ),
  );
  fill(
    parts.table,
    table(
      ["family", "bits per key", "memory", "rate", "keys can be", "known for"],
      rows.map((row) => [
        row.family,
        row.bits_per_key.toFixed(1),
        bytesText(row.bytes),
        percent(row.fpr),
        [row.add ? "added" : "given once", row.remove ? "removed" : null, row.merge ? "merged" : null]
          .filter(Boolean)
          .join(", "),
        row.summary,
      ]),
      {
        caption: "All families, for a million keys at 1 %",
        numbers: [1, 2, 3],
        rowClass: (i) => (rows[i].family === family ? "chosen" : ""),
      },
    ),
  );
  const state = {};
  for (const [name, question] of Object.entries(QUESTIONS))
    if (chosen[name] !== question.value) state[name] = chosen[name];
  writeState("choose", state, { push });
}

export const choose = {
  mount(root) {
    const sets = Object.entries(QUESTIONS).map(([name, question]) =>
      h(
        "fieldset",
        {},
        h("legend", {}, question.text),
        Object.entries(question.options).map(([value, text]) =>
          h(
            "label",
            {},
            h("input", {
              type: "radio",
              name: `choose-${name}`,
              value,
              onchange: () => {
                chosen[name] = value;
                update({ push: true });
              },
            }),
            ` ${text}`,
          ),
        ),
      ),
    );
    parts.answer = h("div", { role: "status", id: "choose-answer" });
    parts.table = h("div", {});
    root.append(
      h("p", {}, "A few questions lead to the family that fits."),
      h("div", { class: "two" }, h("div", {}, sets), parts.answer),
      parts.table,
    );
    parts.root = root;
  },
  async show(params) {
    for (const [name, question] of Object.entries(QUESTIONS)) {
      const given = params.get(name);
      chosen[name] = Object.hasOwn(question.options, given) ? given : question.value;
      parts.root.querySelector(`input[name="choose-${name}"][value="${chosen[name]}"]`).checked = true;
    }
    await update();
  },
};
