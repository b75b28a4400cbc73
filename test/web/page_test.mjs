// Promises: the page works as a person uses it, in a real browser and from disk: every section, by keyboard and mouse,
// with links and the back button; it makes no request after it has loaded, reports no error, has no serious finding of
// axe, and its numbers, answers and downloads are those of the command line. Would notice: an exception, a message on
// the console, a request, a number that differs, a missing label, a page over its budget.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import {
  assertSame,
  attempt,
  cli,
  goldenFiles,
  json,
  NPM,
  PAGE,
  readKeys,
  ROOT,
  temporary,
  TOOLS,
} from "./support.mjs";

const require = createRequire(join(TOOLS, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const index = pathToFileURL(join(PAGE, "index.html")).href;
const shots = join(PAGE, "..", "screenshots");
const MONKEY = Number(process.env.PERHAPS_MONKEY ?? 150); // steps
const MONKEY_SECONDS = Number(process.env.PERHAPS_MONKEY_SECONDS ?? 0); // at least so long
const SECTIONS = ["follow", "size", "look", "saves", "choose"];

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});
after(() => browser?.close());

// A page that fails the test if anything goes wrong in it.
async function visit(hash, use, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  const requests = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => wrong.push(`${message.type()}: ${message.text()}`));
  page.on("request", (request) => requests.push(request.url()));
  try {
    await page.goto(`${index}#${hash}`);
    await page.waitForFunction((id) => document.documentElement.dataset.ready === id, hash.split("?")[0]);
    const loaded = requests.length;
    await use(page, context);
    const later = requests.slice(loaded).filter((url) => !url.startsWith("blob:") && !url.startsWith("data:"));
    assert.deepEqual(later, [], "a request after the page had loaded");
    assert.deepEqual(wrong, []);
  } finally {
    await context.close();
  }
}

const text = (page, selector) => page.locator(selector).innerText();
const rows = (page, selector) =>
  page
    .locator(selector)
    .locator("tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText.trim())));

test("first paint: text and controls are there before the WebAssembly arrives, and work after it", async () => {
  // A host that keeps wasm.js back until it is told.
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const types = { html: "text/html", js: "text/javascript", css: "text/css" };
  const server = createServer(async (request, response) => {
    const name = basename(new URL(request.url, "http://x").pathname) || "index.html";
    if (name === "wasm.js") await held;
    response.setHeader("Content-Type", types[name.split(".").at(-1)]);
    response.end(readFileSync(join(PAGE, name)));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/#size`, { waitUntil: "commit" });
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length === 1);
    await page.locator("#size-keys").waitFor({ state: "visible" });
    for (const words of ["Could this key be in that set?", "Loading the library", "Set any two"])
      assert.ok(await page.getByText(words).isVisible(), words);
    assert.equal(await page.locator("nav a").count(), 5);
    await page.evaluate(() => (location.hash = "#look"));
    await page.locator("#look-file").waitFor({ state: "visible" });
    await page.evaluate(() => (location.hash = "#follow"));
    await page.locator("#follow-key").waitFor({ state: "visible" });
    assert.ok(await page.locator("#follow").evaluate((section) => section.inert), "controls that cannot work yet");
    assert.equal(await page.evaluate(() => globalThis.perhapsWasm), undefined);
    release();
    await page.waitForFunction(() => document.documentElement.dataset.ready === "follow");
    await page.fill("#follow-key", "zebra");
    assert.match(await text(page, "#follow-verdict"), /^no: /);
  } finally {
    release();
    await context.close();
    server.close();
  }
});

test("without wasm.js the page says so in words", async () => {
  const folder = temporary();
  for (const name of ["index.html", "page.css", "page.js"])
    writeFileSync(join(folder, name), readFileSync(join(PAGE, name)));
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(pathToFileURL(join(folder, "index.html")).href);
    await page.getByText("The library could not start: wasm.js").waitFor();
  } finally {
    await context.close();
  }
});

test("the time from opening the file to a usable page is printed", async (t) => {
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(index);
    const { paint, usable } = await (
      await page.waitForFunction(() => {
        if (document.documentElement.dataset.ready !== "follow") return null;
        const mark = performance.getEntriesByName("usable")[0];
        const first = performance.getEntriesByName("first-contentful-paint")[0];
        return mark && first && { paint: first.startTime, usable: mark.startTime };
      })
    ).jsonValue();
    assert.ok(paint > 0 && usable > 0);
    const devtools = await context.newCDPSession(page);
    await devtools.send("Performance.enable");
    const { metrics } = await devtools.send("Performance.getMetrics");
    times.push({ paint, usable, processor: 1000 * metrics.find((one) => one.name === "ProcessTime").value });
    await context.close();
  }
  const middle = (name) => times.map((one) => one[name]).sort((a, b) => a - b)[2].toFixed(0);
  t.diagnostic(
    `from disk, medians of 5: first paint ${middle("paint")} ms, usable ${middle("usable")} ms, ` +
      `CPU time of the page's process so far ${middle("processor")} ms`,
  );
});

test("follow a key: what is shown is what the filter answers", () =>
  visit("follow", async (page) => {
    assert.match(await text(page, "#follow-verdict"), /^perhaps: cherry was added/);
    await page.fill("#follow-key", "zebra");
    assert.match(await text(page, "#follow-verdict"), /^no: \d of \d checks fail\. zebra was certainly never added/);
    assert.match(page.url(), /key=zebra/);
    for (const family of ["classic", "line", "block", "cuckoo", "ribbon"]) {
      await page.selectOption("#follow-family", family);
      await page.waitForFunction(
        (name) => (name === "classic" ? !location.hash.includes("family") : location.hash.includes(`family=${name}`)),
        family,
      );
      await page.fill("#follow-key", "fig");
      assert.match(await text(page, "#follow-verdict"), /^perhaps: fig was added/, family);
      await page.click("text=Run a thousand");
      await page.waitForFunction(() =>
        /Of 1,000 absent keys/.test(document.getElementById("follow-note").textContent),
      );
      await page.click("text=Find me a false positive");
      await page.waitForFunction(() => /tried until one/.test(document.getElementById("follow-note").textContent));
      const said = await text(page, "#follow-verdict");
      assert.match(said, /^perhaps, wrongly: guess \d+ was never added/, family);
      if (family === "cuckoo") assert.match(said, /Its fingerprint is that of (other \d+|\w+), in the same bucket/);
    }
  }));

test("follow a key: step by step, with the keyboard", () =>
  visit("follow?key=apple", async (page) => {
    await page.focus("#follow-key");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.match(await text(page, "#follow-verdict"), /^0 of \d checks so far/);
    await page.keyboard.press("Tab");
    for (let i = 0; i < 3; ++i) await page.keyboard.press("Enter");
    assert.match(await text(page, "#follow-verdict"), /^perhaps: apple was added/);
    await page.fill("#follow-keys", "one, two");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.includes("keys=one%2Ctwo"));
    await page.waitForFunction(() => /apple/.test(document.getElementById("follow-verdict").textContent));
    assert.match(await text(page, "#follow-verdict"), /^(no|perhaps, wrongly)/);
  }));

test("size one: any two numbers give the others, as the command line says", () =>
  visit("size", async (page) => {
    const compare = async (...args) => {
      const theirs = json("size", "--json", ...args);
      const ours = await rows(page, "#size table");
      assert.deepEqual(
        ours.map((row) => row[0]),
        theirs.map((row) => row.family),
        args.join(" "),
      );
      ours.forEach((row, i) => {
        assert.equal(row[1], theirs[i].keys.toLocaleString("en"));
        assert.equal(row[2], theirs[i].bits_per_key.toFixed(2));
      });
    };
    const set = async (name, value) => {
      await page.fill(`#size-${name}`, value);
      const wanted = `${name}=${value.replace(" ", "")}`;
      await page.waitForFunction(
        (one) => document.querySelector("#size [data-given]")?.dataset.given.split(" ").includes(one),
        wanted,
      );
    };
    await compare("--keys", "1e6", "--fpr", "0.01");
    await set("keys", "50M");
    await compare("--keys", "50M", "--fpr", "0.01");
    await set("bytes", "64Mi");
    await compare("--keys", "50M", "--max-bytes", "64Mi");
    await set("fpr", "0.1 %");
    await compare("--max-bytes", "64Mi", "--fpr", "0.001");
    await set("bits", "12");
    await set("keys", "1000");
    await compare("--keys", "1000", "--bits-per-key", "12");
    await page.fill("#size-keys", "many");
    await page.waitForFunction(() => document.querySelector("#size p.error").textContent !== "");
    assert.match(await text(page, "#size p.error"), /Keys: not a number/);
    await page.fill("#size-keys", "1e6");
    await page.check("input[value=ribbon]");
    await page.waitForFunction(() => location.hash.includes("family=ribbon"));
    await page.locator("#size .copy").first().waitFor();
    assert.match(await text(page, "#size .copy >> nth=0"), /--filter ribbon/);
  }));

test("size one: measured here, in a worker, while the page stays alive", () =>
  visit("size", async (page) => {
    await page.evaluate(() => {
      globalThis.longest = 0;
      let last = performance.now();
      setInterval(() => {
        globalThis.longest = Math.max(globalThis.longest, performance.now() - last);
        last = performance.now();
      }, 5);
    });
    await page.click("text=Build one here and measure");
    await page.waitForFunction(() => document.getElementById("size-measured").dataset.rate !== undefined);
    const said = await text(page, "#size-measured");
    assert.match(said, /of 1,000,000 absent keys answered perhaps/);
    assert.match(said, /No key was lost/);
    // The same keys every time: 1 % of 1e6 within 5 sigma.
    const rate = Number(await page.locator("#size-measured").getAttribute("data-rate"));
    assert.ok(Math.abs(rate - 0.01) < 5 * Math.sqrt(0.01 / 1e6), said);
    await page.locator("#size svg").waitFor();
  }));

test("size one: lines to copy are copied", () =>
  visit("size?keys=5000&fpr=2%25", async (page, context) => {
    await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => {});
    await page.locator("#size .copy button").first().click();
    await page.waitForFunction(() =>
      /Copied|Selected/.test(document.querySelector("#size .copy button").textContent),
    );
    const line = await text(page, "#size .copy code >> nth=0");
    const folder = temporary();
    writeFileSync(join(folder, "keys.txt"), "a\nb\n");
    const args = line
      .split(" ")
      .slice(1)
      .map((word) => word.replace(/^(seen\.perhaps|keys\.txt)$/, join(folder, "$1")));
    cli(...args);
    assert.equal(json("info", "--json", join(folder, "seen.perhaps"))[0].capacity, 5000);
  }));

test("size one: the lines to copy make the filter of the table, for every family", () =>
  visit("size?keys=5000&fpr=2%25", async (page) => {
    const folder = temporary();
    const keys = Array.from({ length: 5000 }, (_, i) => `key ${i}`);
    writeFileSync(join(folder, "keys.txt"), keys.map((key) => `${key}\n`).join(""));
    const { Filter } = await import(pathToFileURL(join(NPM, "perhaps/perhaps.js")));
    const AsyncFunction = (async () => {}).constructor;
    const cpp = [];
    const families = json("size", "--json", "--keys", "5000", "--fpr", "0.02").map(({ family }) => family);
    for (const [given, size] of [
      ["keys=5000&fpr=2%25", "fpr=0.02"],
      ["keys=5000&bits=25", "bits_per_key=25"],
      ["keys=5000&bytes=20000", ""],
    ]) {
      for (const family of families) {
        await page.evaluate((hash) => (location.hash = hash), `#size?${given}&family=${family}`);
        const shown = async (line) => (await text(page, `#size .copy code >> nth=${line}`)).trim();
        const chosen = page.locator(`#size input[value=${family}]`);
        await page.waitForFunction(
          (state) => document.querySelector("#size [data-given]").dataset.given === state.replaceAll("&", " "),
          decodeURIComponent(given),
        );
        if ((await chosen.count()) === 0) continue; // a chain cannot be told its bytes
        await page.waitForFunction(
          (name) => document.querySelector("#size .copy code").textContent.includes(`--filter ${name} `),
          family,
        );
        const args = (await shown(0)).split(" ").slice(1);
        cli(...args.map((word) => word.replace(/^(seen\.perhaps|keys\.txt)$/, join(folder, "$1"))));
        const [theirs] = json("info", "--json", join(folder, "seen.perhaps"));
        const filter = await new AsyncFunction("Filter", "keys", `${await shown(3)} return seen;`)(Filter, keys);
        const whole = / Filter\.build\(/.test(await shown(3));
        if (!whole) filter.addMany(keys);
        assert.equal(filter.describe().family, family);
        assert.equal(filter.describe().bytes, theirs.bytes, `${family} ${given}`);
        const bytes = Number(await page.inputValue("#size-bytes"));
        if (/bytes/.test(given)) assert.ok(theirs.bytes <= bytes, `${family} ${given}`);
        else if (!["scalable", "growing"].includes(family)) assert.equal(theirs.bytes, bytes, `${family} ${given}`);
        filter.free();
        cpp.push(`{ ${await shown(1)} (void)seen; }`);
        assert.match(await shown(2), whole ? /^seen = perhaps\.build\(keys, / : /^seen = perhaps\.Filter\(5000, /);
        assert.ok((await shown(2)).includes(size));
      }
    }
    assert.ok(cpp.length >= 3 * families.length - 2, `${cpp.length} lines for ${families.length} families`);
    const source = "#include <perhaps/perhaps.h>\nvoid use(const std::vector<std::string_view>& keys) {\n";
    writeFileSync(join(folder, "lines.cc"), `${source}${cpp.join("\n")}\n}\n`);
    execFileSync("c++", ["-std=c++20", "-fsyntax-only", `-I${join(ROOT, "include")}`, join(folder, "lines.cc")]);
  }));

test("links with values that nothing has", async () => {
  for (const [hash, ready] of [
    ["toString", "follow"],
    ["follow?family=toString&keys=", "follow"],
    ["choose?once=toString", "choose"],
    ["saves?levels=many&ratio=-5", "saves"],
    ["size?family=nonesuch", "size"],
  ]) {
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      await page.goto(`${index}#${hash}`);
      await page.waitForFunction((id) => document.documentElement.dataset.ready === id, ready);
      assert.deepEqual((await page.locator("main .error").allInnerTexts()).join(""), "", hash);
    } finally {
      await context.close();
    }
  }
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`${index}#look?example=nonesuch`);
    await page.getByText("This link cannot be shown: 'nonesuch' is not a format.").waitFor();
    await page.click("text=An example: guava");
    assert.equal((await facts(page)).family, "classic");
  } finally {
    await context.close();
  }
});

test("deep links, and the back button", () =>
  visit("size?keys=2000&bits=16&family=block", async (page) => {
    assert.equal(await page.inputValue("#size-keys"), "2000");
    assert.equal(await page.inputValue("#size-bits"), "16");
    assert.ok(await page.isChecked("input[value=block]"));
    await page.fill("#size-keys", "3000");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => location.hash.includes("keys=3000"));
    await page.click("nav >> text=Choose");
    await page.waitForFunction(() => document.documentElement.dataset.ready === "choose");
    await page.check("input[name=choose-remove][value=yes]");
    await page.waitForFunction(() => /Take cuckoo/.test(document.getElementById("choose-answer").textContent));
    await page.goBack();
    await page.waitForFunction(() => /Take line/.test(document.getElementById("choose-answer").textContent));
    await page.goBack();
    await page.waitForFunction(() => document.documentElement.dataset.ready === "size");
    assert.equal(await page.inputValue("#size-keys"), "3000");
  }));

// Drops a file as a person does.
async function drop(page, path) {
  const data = await page.evaluateHandle(
    ([bytes, name]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name));
      return transfer;
    },
    [readFileSync(path).toString("base64"), basename(path)],
  );
  await page.evaluate(() => document.querySelectorAll("#look h3, #look .error").forEach((old) => old.remove()));
  await page.dispatchEvent("#look .drop", "drop", { dataTransfer: data });
  await page.waitForFunction(
    (name) =>
      [...document.querySelectorAll("#look h3")].some((h) => h.textContent.startsWith(name)) ||
      document.querySelector("#look .error") !== null,
    basename(path),
  );
}
// The first of each name: a format may have a fact of the same name.
const facts = async (page) => Object.fromEntries((await rows(page, "#look table >> nth=0")).reverse());

test("look into a file: each golden file of other systems, with the verdicts of the command line", () =>
  visit("look", async (page) => {
    let opened = 0;
    for (const { kind, path, keys } of goldenFiles()) {
      await drop(page, path);
      const said = attempt("info", "--json", path);
      if (said.status !== 0) {
        assert.ok(await page.locator("#look .error").isVisible(), kind);
        continue;
      }
      const [info] = JSON.parse(said.stdout);
      const shown = await facts(page);
      assert.equal(shown.format, `${info.format}: ${info.system}`, kind);
      assert.equal(shown.fill, `${(info.fill * 100).toFixed(1)} %`, kind);
      if (info.entries.length > 1)
        assert.equal((await rows(page, "#look table >> nth=1")).length, Math.min(info.entries.length, 200));
      const some = readKeys(keys)
        .slice(0, 20)
        .filter((key) => key.length > 0);
      some.push(new Uint8Array([1, 2, 3]), new Uint8Array([9, 9, 9, 9]));
      await page.selectOption("#look-kind", "hex");
      await page.fill("#look-keys", some.map((key) => Buffer.from(key).toString("hex")).join("\n"));
      const answers = await page.locator("#look ul.path li span").allInnerTexts();
      const asked = Buffer.concat(
        some.flatMap((key) => [Buffer.from([key.length & 255, key.length >> 8, 0, 0]), key]),
      );
      const file = join(temporary(), "keys");
      writeFileSync(file, asked);
      const theirs = attempt("query", "--json", "--keys-as", "len32", path, file)
        .stdout.trim()
        .split("\n")
        .map((line) => JSON.parse(line).answer);
      assert.deepEqual(answers, theirs, kind);
      ++opened;
    }
    assert.ok(opened >= 10, `only ${opened} golden files were recognised`);
  }));

test("look into a file: our own, gzipped, damaged; downloads are the bytes of the command line", () =>
  visit("look", async (page) => {
    const folder = temporary();
    writeFileSync(join(folder, "keys"), Array.from({ length: 500 }, (_, i) => `word ${i}\n`).join(""));
    cli("build", "-o", join(folder, "seen.perhaps"), "--note", "May", join(folder, "keys"));
    const bytes = readFileSync(join(folder, "seen.perhaps"));
    await drop(page, join(folder, "seen.perhaps"));
    assert.equal((await facts(page)).note, "May");
    await page.fill("#look-keys", "word 3\nnever");
    assert.deepEqual(await page.locator("#look ul.path li span").allInnerTexts(), ["perhaps", "no"]);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Download as it is")]);
    assert.deepEqual(readFileSync(await download.path()), bytes);
    writeFileSync(join(folder, "packed.perhaps.gz"), gzipSync(bytes));
    await page.setInputFiles("#look-file", join(folder, "packed.perhaps.gz"));
    await page.waitForFunction(() => /packed\.perhaps/.test(document.querySelector("#look h3")?.textContent));
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(join(folder, "bad.perhaps"), bytes);
    await drop(page, join(folder, "bad.perhaps"));
    assert.match(await text(page, "#look .error >> nth=0"), /checksum|damaged/i);
    cli("build", "--format", "parquet", "-o", join(folder, "a.parquet"), join(folder, "keys"));
    cli("convert", "--to", "parquet", "-o", join(folder, "b.parquet"), join(folder, "a.parquet"));
    await drop(page, join(folder, "a.parquet"));
    await page.selectOption("#look-to", "parquet");
    const [again] = await Promise.all([page.waitForEvent("download"), page.click("text=Convert and download")]);
    assert.deepEqual(readFileSync(await again.path()), readFileSync(join(folder, "b.parquet")));
    await page.selectOption("#look-to", "fuse8");
    await page.click("text=Convert and download");
    assert.match(
      await page.locator("#look p[role=status]").last().innerText(),
      /parquet: to fuse8: .*rebuild it from the keys/,
    );
  }));

test("what it saves: the numbers of perhaps allocate", () =>
  visit("saves", async (page) => {
    for (const [name, value] of [
      ["levels", "5"],
      ["ratio", "6"],
      ["bits", "8"],
    ]) {
      await page.locator(`#saves-${name}`).fill(value);
      await page.waitForFunction(([id, wanted]) => location.hash.includes(`${id}=${wanted}`), [name, value]);
    }
    const command = (await text(page, "#saves p.quiet code")).split(" ").slice(1);
    const theirs = json(command[0], "--json", ...command.slice(1));
    assert.equal(theirs.levels.length, 5);
    const shown = await rows(page, "#saves table >> nth=1");
    assert.equal(shown.length, 5);
    shown.forEach((row, i) => {
      assert.equal(row[1], theirs.levels[i].keys.toLocaleString("en"));
      assert.equal(row[2], theirs.levels[i].bits_per_key.toFixed(2));
      assert.equal(row[5], theirs.levels[i].even_bits_per_key.toFixed(2));
    });
    const better = Number((theirs.even_wasted_reads / theirs.wasted_reads).toPrecision(3));
    assert.ok((await text(page, "#saves-words")).includes(`cause ${better} times fewer reads in vain`));
    await page.check("#saves-quick");
    for (const where of ["absent", "vain", "memtable", "1", "5"]) {
      await page.selectOption("#saves-where", where);
      await page.click("text=Look up a key");
      await page.waitForFunction(() =>
        /reads?, \d+ of them in vain/.test(document.getElementById("saves-walked").textContent),
      );
      const steps = await page.locator("#saves .path li").allInnerTexts();
      assert.match(
        steps.at(-1),
        where === "memtable" ? /found in memory/ : /\d/.test(where) ? /read, and found/ : /absent/,
      );
      assert.ok(where !== "vain" || steps.some((step) => /the filter says perhaps: read in vain/.test(step)));
      await page.evaluate(() => {
        document.getElementById("saves-walked").textContent = "";
      });
    }
  }));

test("look into a file: a file of shards, each key asked of its own", () =>
  visit("look", async (page) => {
    const folder = temporary();
    const words = Array.from({ length: 300 }, (_, i) => `key ${i}`);
    writeFileSync(join(folder, "keys.txt"), words.join("\n"));
    const asked = [...words.slice(0, 40), ...Array.from({ length: 40 }, (_, i) => `absent ${i}`)];
    writeFileSync(join(folder, "asked.txt"), asked.join("\n"));
    const path = join(folder, "seen.shards");
    cli("build", "--format", "redisbloom-bf", "--shards", "4", "-o", path, join(folder, "keys.txt"));
    await drop(page, path);
    assert.equal((await facts(page)).shard, "0 of 4");
    await page.selectOption("#look-shard", "3");
    const shown = await facts(page);
    assert.equal(shown.shard, "3 of 4");
    assert.match(shown.format, /^redisbloom-bf: /);
    await page.selectOption("#look-kind", "text");
    await page.fill("#look-keys", asked.join("\n"));
    const answers = await page.locator("#look ul.path li span").allInnerTexts();
    const present = new Set(attempt("query", path, join(folder, "asked.txt")).stdout.split("\n"));
    assert.deepEqual(
      answers,
      asked.map((key) => (present.has(key) ? "perhaps" : "no")),
    );
    assert.ok(answers.slice(0, 40).every((answer) => answer === "perhaps"));

    // Not all shards need be there, and one that is damaged is refused.
    const one = join(folder, "one.shards");
    cli("build", "--format", "redisbloom-bf", "--shards", "4", "--only", "2", "-o", one, join(folder, "keys.txt"));
    await drop(page, one);
    await page.fill("#look-keys", asked.join("\n"));
    const some = await page.locator("#look ul.path li span").allInnerTexts();
    assert.ok(some.includes("perhaps: shard 1 is not in this file") && some.includes("perhaps") && some.includes("no"));
    const bytes = readFileSync(path);
    bytes[bytes.length - 40] ^= 1;
    writeFileSync(path, bytes);
    await drop(page, path);
    assert.match(await text(page, "#look p.error"), /seen\.shards/);
  }));

test("choose: each answer leads to a family", () =>
  visit("choose", async (page) => {
    for (const [name, value, family] of [
      ["once", "yes", "ribbon"],
      ["remove", "recent", "window"],
      ["remove", "yes", "cuckoo"],
      ["merge", "yes", "quotient"],
      ["number", "no", "growing"],
    ]) {
      await page.check(`input[name=choose-${name}][value=${value}]`);
      await page.waitForFunction(
        (wanted) => document.querySelector("#choose-answer h3").textContent === `Take ${wanted}`,
        family,
      );
    }
    await page.check("input[name=choose-adversary][value=yes]");
    await page.waitForFunction(() => /--keyed/.test(document.getElementById("choose-answer").textContent));
  }));

test("axe has no serious finding, in both themes; pictures are kept", async () => {
  mkdirSync(shots, { recursive: true });
  for (const colorScheme of ["light", "dark"]) {
    for (const hash of [...SECTIONS, "follow?family=ribbon", "follow?family=cuckoo", "look?example=cassandra"]) {
      await visit(
        hash,
        async (page) => {
          const name = hash.replace(/\W+/g, "-");
          if (hash === "size") await page.locator("#size svg").waitFor();
          for (const width of [360, 768, 1280]) {
            await page.setViewportSize({ width, height: 900 });
            const wide = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(wide <= width, `${hash}: ${wide} wide on a screen of ${width}`);
            await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
          }
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run({ preload: false }));
          const serious = violations
            .filter((v) => v.impact === "serious" || v.impact === "critical")
            .map(
              (v) =>
                `${v.id}: ${v.nodes
                  .map((node) => node.html)
                  .slice(0, 3)
                  .join(" ")}`,
            );
          assert.deepEqual(serious, [], hash);
        },
        { colorScheme },
      );
    }
  }
});

test("a monkey: random clicks and keys, no error, and memory that stays bounded", (t) =>
  visit("follow", async (page, context) => {
    // After a garbage collection: bytes of the JavaScript heap and of the module's memory.
    const devtools = await context.newCDPSession(page);
    await devtools.send("Performance.enable");
    const memory = async () => {
      await devtools.send("HeapProfiler.collectGarbage");
      const { metrics } = await devtools.send("Performance.getMetrics");
      const heap = metrics.find((one) => one.name === "JSHeapUsedSize").value;
      return { heap, module: await page.evaluate(() => globalThis.perhapsMemory()) };
    };
    let middle = null;
    let steps = 0;
    let state = 20260101; // the same walk every time
    const random = (n) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const start = Date.now();
    const elapsed = () => (Date.now() - start) / 1000;
    for (; steps < MONKEY || elapsed() < MONKEY_SECONDS; ++steps) {
      if (middle === null && steps >= MONKEY / 2 && elapsed() >= MONKEY_SECONDS / 2) middle = await memory();
      await page.evaluate(
        ([which, how, what]) => {
          const all = [
            ...document.querySelectorAll("nav a, main button, main input, main select, main textarea"),
          ].filter(
            (e) => e.offsetParent !== null && !e.disabled && e.type !== "file" && !/ownload/.test(e.textContent),
          );
          const one = all[which % all.length];
          const texts = ["", "1e6", "0", "-5", "1e99", "ü", "apple", "99999999999999999999", "1 %", "a,b,,c", "<b>"];
          if (one.tagName === "SELECT") one.selectedIndex = how % one.options.length;
          else if (one.type === "range") one.value = Number(one.min) + ((how % 100) / 100) * (one.max - one.min);
          else if (one.type === "radio" || one.type === "checkbox" || one.tagName === "BUTTON" || one.tagName === "A")
            return one.click();
          else one.value = texts[what % texts.length];
          one.dispatchEvent(new Event("input", { bubbles: true }));
          one.dispatchEvent(new Event("change", { bubbles: true }));
          return undefined;
        },
        [random(1 << 20), random(1 << 20), random(1 << 20)],
      );
    }
    await page.evaluate(() => (location.hash = "#choose"));
    await page.waitForFunction(() => document.documentElement.dataset.ready === "choose");
    const end = await memory();
    const mb = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    t.diagnostic(
      `${steps} steps in ${elapsed().toFixed(0)} s; heap ${mb(middle.heap)}, then ${mb(end.heap)}; ` +
        `module ${mb(middle.module)}, then ${mb(end.module)}`,
    );
    assert.ok(end.heap < middle.heap + 20e6, "the heap grows with every step");
    assert.ok(end.module < Math.max(2 * middle.module, 100e6), "the memory of the module grows with every step");
  }));

test("make serve shows the page", async () => {
  // A free port, whose number the server prints.
  const server = spawn("make", ["--no-print-directory", "serve", "PORT=0"], {
    cwd: ROOT,
    detached: true, // a process group of its own, which ends with it
    env: { ...process.env, PYTHONUNBUFFERED: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const context = await browser.newContext();
  try {
    let said = "";
    await new Promise((resolve) => {
      server.stdout.setEncoding("utf8").on("data", (some) => {
        said += some;
        if (/port \d+ /.test(said)) resolve();
      });
      server.on("exit", resolve);
    });
    assert.match(said, /port \d+ /);
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${/port (\d+)/.exec(said)[1]}/#choose`);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "choose");
  } finally {
    await context.close();
    if (server.exitCode === null) process.kill(-server.pid);
  }
});

test("the page is at most 400 KB, compressed", (t) => {
  const sum = readdirSync(PAGE)
    .map((name) => gzipSync(readFileSync(join(PAGE, name)), { level: 9 }).length)
    .reduce((a, b) => a + b);
  t.diagnostic(`${sum} bytes`);
  assert.ok(sum <= 400_000, `${sum} bytes`);
});
