// The lab in JavaScript: peer.mjs write NAME FOLDER, peer.mjs read FOLDER FILE...
// PERHAPS_NPM is the folder of the npm package.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { Filter } = await import(pathToFileURL(join(process.env.PERHAPS_NPM, "perhaps.js")));
const linesOf = (folder, name) => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);

const [verb, ...words] = process.argv.slice(2);
if (verb === "write") {
  const [name, folder] = words;
  const keys = linesOf(folder, "keys");
  for (const kind of ["lab", "line", "ribbon"]) {
    const filter = await Filter.build(keys, kind === "lab" ? { format: kind } : { family: kind });
    writeFileSync(join(folder, `${name}.${kind}`), filter.toBytes());
  }
} else {
  const [folder, ...files] = words;
  const probes = linesOf(folder, "probes");
  for (const file of files) {
    const filter = await Filter.open(readFileSync(file), file.endsWith(".lab") ? { format: "lab" } : {});
    console.log(filter.hasMany(probes).join(""));
  }
}
