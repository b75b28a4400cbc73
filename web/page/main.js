// The page: shows one section at a time, by the URL, as soon as the library is there.
import { loadFrom, ready } from "../core.js";
import { choose } from "./choose.js";
import { readState } from "./dom.js";
import { follow } from "./follow.js";
import { look } from "./look.js";
import { saves } from "./saves.js";
import { size } from "./size.js";
import { theModule } from "./module.js";

const sections = { follow, size, look, saves, choose };
const mounted = new Set();
const status = document.getElementById("status");

loadFrom(theModule);

async function show() {
  const { id, params } = readState();
  if (id === "main") return;
  const chosen = id in sections ? id : "follow";
  for (const name of Object.keys(sections)) {
    document.getElementById(name).hidden = name !== chosen;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = document.getElementById(chosen);
  try {
    await ready();
    if (!mounted.has(chosen)) {
      mounted.add(chosen);
      await sections[chosen].mount(root);
    }
    await sections[chosen].show(params);
    status.hidden = true;
    document.documentElement.dataset.ready = chosen;
  } catch (error) {
    status.hidden = false;
    status.className = "error";
    status.textContent = `The library could not start: ${error.message}. It needs a browser of 2023 or later.`;
  }
}

addEventListener("popstate", show);
addEventListener("hashchange", show);
// After wasm.js, which is larger and must not hold up the first paint.
addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(show)));
