// Puts together what is published.
//   node web/build.mjs package WASM_FOLDER OUT     the npm package as a folder, and packed: OUT/perhaps-VERSION.tgz
//   node web/build.mjs page WASM_FOLDER OUT        the page: static files that work from disk and from any host
// WASM_FOLDER has perhaps_web_plain.wasm, perhaps_web_simd128.wasm and perhaps_web_page.wasm. Needs
// wasm-opt and xz; the page also esbuild.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const [what, wasmFolder, out] = process.argv.slice(2);

// Compressed, as a text: a module that loads from a file:// page and through every bundler. unpack.js reads it.
function packed(module) {
  const path = join(wasmFolder, `perhaps_web_${module}.small.wasm`);
  const features = ["simd", "bulk-memory", "exception-handling", "nontrapping-float-to-int", "sign-ext"];
  const linked = join(wasmFolder, `perhaps_web_${module}.wasm`);
  execFileSync("wasm-opt", [...features.map((name) => `--enable-${name}`), "-Oz", "--converge", linked, "-o", path]);
  const options = ["--format=lzma", "--lzma1=preset=9e,lc=4,pb=0", "--stdout", path];
  const bytes = execFileSync("xz", options, { maxBuffer: 1 << 28 });
  bytes.writeBigUInt64LE(BigInt(statSync(path).size), 5); // xz says that it does not know
  return bytes.toString("base64");
}

// The families are named by the module itself.
async function writeTypes(folder) {
  const { families } = await import(pathToFileURL(resolve(folder, "perhaps.js")));
  const names = (await families()).map((family) => `\n  | "${family.name}"`).join("");
  const types = readFileSync(join(web, "perhaps.d.ts"), "utf8");
  const named = types.replace("export type Family = string; // build.mjs names them", `export type Family =${names};`);
  if (named === types) throw new Error("build.mjs: perhaps.d.ts has no line for the families");
  writeFileSync(join(folder, "perhaps.d.ts"), named);
}

async function buildPackage() {
  const folder = join(out, "perhaps");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const sources = ["perhaps.js", "core.js", "keys.js", "memory.js", "errors.js", "unpack.js"];
  for (const file of [...sources, "README.md", "package.json"]) copyFileSync(join(web, file), join(folder, file));
  copyFileSync(join(web, "..", "LICENSE"), join(folder, "LICENSE"));
  for (const module of ["simd128", "plain"])
    writeFileSync(join(folder, `${module}.js`), `export default "${packed(module)}";\n`);
  await writeTypes(folder);
  execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], { cwd: folder });
  console.log(
    readdirSync(out)
      .filter((name) => name.endsWith(".tgz"))
      .map((name) => join(out, name))
      .join("\n"),
  );
}

function bundled(entry) {
  const options = [join(web, "page", entry), "--bundle", "--minify", "--format=iife", "--target=es2022"];
  return execFileSync("esbuild", [...options, "--log-level=warning"], { encoding: "utf8" });
}

function buildPage() {
  mkdirSync(out, { recursive: true });
  copyFileSync(join(web, "page", "index.html"), join(out, "index.html"));
  copyFileSync(join(web, "page", "page.css"), join(out, "page.css"));
  writeFileSync(join(out, "page.js"), bundled("main.js"));
  const texts =
    `globalThis.perhapsWasm=${JSON.stringify(packed("page"))};\n` +
    `globalThis.perhapsWorker=${JSON.stringify(bundled("worker.js"))};\n`;
  writeFileSync(join(out, "wasm.js"), texts);
  console.log(join(out, "index.html"));
}

if (what === "package") await buildPackage();
else if (what === "page") buildPage();
else throw new Error(`build.mjs: package or page, not ${what}`);
