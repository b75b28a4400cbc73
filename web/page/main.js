// The page: shows one section at a time, by the URL. Its controls are painted at once and can be used as soon as the
// library is there.
import { loadFrom, memoryInUse, ready } from "../core.js";
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

let usable = false;
let wanted = ""; // the section that was asked for last

loadFrom(theModule);
// For the console, and for the test that watches it.
globalThis.perhapsMemory = memoryInUse;

async function show() {
  const { id, params } = readState();
  if (id === "main") return;
  const chosen = Object.hasOwn(sections, id) ? id : "follow";
  for (const name of Object.keys(sections)) {
    document.getElementById(name).hidden = name !== chosen;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  wanted = chosen;
  const root = document.getElementById(chosen);
  root.inert = !usable;
  try {
    if (!mounted.has(chosen)) {
      mounted.add(chosen);
      await sections[chosen].mount(root);
    }
    await ready();
    usable = true;
    root.inert = false;
    if (wanted !== chosen) return;
    await sections[chosen].show(params);
    status.hidden = true;
    if (document.documentElement.dataset.ready === undefined) performance.mark("usable");
    document.documentElement.dataset.ready = chosen;
  } catch (error) {
    status.hidden = false;
    status.className = "error";
    status.textContent = usable
      ? `This link cannot be shown: ${error.message}.`
      : `The library could not start: ${error.message}. It needs a browser of 2023 or later.`;
  }
}

addEventListener("popstate", show);
addEventListener("hashchange", show);
show();
