// Bundles the page: page.js and page.css, minified, and the texts of the style elements that Plot inserts, whose hashes
// the content security policy names.
import { build } from "esbuild";
import { parseHTML } from "linkedom";
import { writeFileSync } from "node:fs";
import * as Plot from "@observablehq/plot";

const out = process.argv[2];

await build({
  entryPoints: ["page.js"],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "kemuPage",
  target: "es2022",
  charset: "utf8",
  legalComments: "eof",
  outfile: `${out}/page.js`,
});
await build({ entryPoints: ["page.css"], minify: true, target: "es2022", outfile: `${out}/page.css` });

const { document } = parseHTML("<!doctype html><html><body></body></html>");
const legend = true;
const dots = { x: "x", y: "y" };
const figures = [
  Plot.plot({ document, color: { type: "ordinal", domain: ["a"], range: ["#000"], legend }, marks: [Plot.dot([{ x: 1, y: 1 }], { ...dots, fill: () => "a" })] }),
  Plot.plot({ document, symbol: { domain: ["a"], range: ["circle"], legend }, marks: [Plot.dot([{ x: 1, y: 1 }], { ...dots, symbol: () => "a" })] }),
  Plot.legend({ document, color: { type: "threshold", domain: [1], range: ["#000", "#fff"] } }),
];
const texts = figures.flatMap((one) => [...one.querySelectorAll("style"), ...(one.matches("style") ? [one] : [])].map((style) => style.textContent));
writeFileSync(`${out}/styles.json`, JSON.stringify([...new Set(texts)].sort(), null, 2) + "\n");
