// Small helpers for the page: elements, numbers in words, the state in the URL.

/** An element: h("td", {class: "n"}, "text", child). Handlers are on*: functions. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A labelled control. */
export function field(label, control, id) {
  control.id = id;
  return h("div", { class: "field" }, h("label", { for: id }, label), control);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const grouped = (n) => Math.round(n).toLocaleString("en");

// A number stays on one line with its unit.
export function percent(rate) {
  if (rate === 0) return "0\u00a0%";
  if (rate >= 1e-4) return `${Number((rate * 100).toPrecision(3))}\u00a0%`;
  return `1 in ${grouped(Number((1 / rate).toPrecision(3)))}`;
}

export function bytesText(n) {
  const units = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  while (n >= 1000 && unit + 1 < units.length) {
    n /= 1000;
    ++unit;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toPrecision(3)}\u00a0${units[unit]}`; // 1.20 below 1.26
}

/** "1e6", "50M", "64Ki", "1,000": a number, or NaN. Prefixes as the command line has them. */
export function parseNumber(text) {
  const found =
    /^\s*([0-9][0-9,_ ]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?)\s*(%|[kKMGTP]i?B?|B)?\s*$/.exec(
      text,
    );
  if (found === null) return NaN;
  const value = Number(found[1].replace(/[,_ ]/g, ""));
  const unit = (found[2] ?? "").replace("B", "");
  if (unit === "%") return value / 100;
  if (unit === "") return value;
  const power = "KMGTP".indexOf(unit[0].toUpperCase()) + 1;
  return value * (unit.endsWith("i") ? 1024 : 1000) ** power;
}

/** A table from rows of texts or elements; columns that are numbers are aligned right. */
export function table(head, rows, { caption, numbers = [], rowClass = () => "" } = {}) {
  const cell = (tag, text, i, more = {}) => h(tag, { class: numbers.includes(i) ? "n" : null, ...more }, text);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "quiet", style: "text-align:left" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          head.map((text, i) => cell("th", text, i, { scope: "col" })),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row, r) =>
          h(
            "tr",
            { class: rowClass(r) || null },
            row.map((text, i) => (i === 0 ? cell("th", text, i, { scope: "row" }) : cell("td", text, i))),
          ),
        ),
      ),
    ),
  );
}

export function copyable(label, text) {
  const button = h(
    "button",
    {
      type: "button",
      "aria-label": `Copy the line for ${label}`,
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = "Copied";
        } catch {
          const selection = getSelection();
          selection.selectAllChildren(code);
          button.textContent = "Selected: press Ctrl+C";
        }
        setTimeout(() => {
          button.textContent = "Copy";
        }, 1500);
      },
    },
    "Copy",
  );
  const code = h("code", {}, text);
  return h("div", { class: "copy" }, h("pre", { tabindex: "0", "aria-label": label }, code), button);
}

export function download(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// -------------------------------------------------------------------------------------------------------- state in URL

/** "#size?keys=1e6" as {id: "size", params: URLSearchParams}. */
export function readState() {
  const [id, query = ""] = location.hash.slice(1).split("?");
  return { id, params: new URLSearchParams(query) };
}

/** Writes the state of a section. While something is dragged or typed the entry of the history is replaced. */
export function writeState(id, values, { push = false } = {}) {
  if (!["", id].includes(readState().id)) return; // somebody went to another section meanwhile
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== "" && value !== undefined && value !== null) params.set(name, value);
  }
  const query = params.toString();
  const hash = `#${id}${query === "" ? "" : `?${query}`}`;
  if (hash === location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", hash);
}
