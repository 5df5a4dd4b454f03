// The figures of a sweep: each metric by variant with its interval over the seeds, and the claims.

import * as Plot from "@observablehq/plot";
import { Chart, Table, html } from "../parts.js";

export const title = "Sweep";

const SIGNS = { holds: "✓ holds", fails: "✗ fails", undecided: "? undecided" };

export function Sweep({ page }) {
  const { variants, claims, cells, failed, headline } = page.sweep;
  const metrics = Object.keys(variants[0]?.metrics ?? {});
  return html`<h2>${headline}</h2>
    <p class="note">${cells.done} of ${cells.total} runs are done, ${cells.saturated} are saturated, ${cells.failed} failed.</p>
    ${claims.length > 0 && html`<${Table} label="Claims" rows=${claims} columns=${[
      ["Claim", (one) => one.id], ["Says", (one) => one.says], ["", (one) => html`<span class=${one.outcome === "holds" ? "good" : one.outcome === "fails" ? "bad" : ""}>${SIGNS[one.outcome] ?? one.outcome}</span>`],
      ["Found", (one) => one.detail], ["Needs more seeds", (one) => one.more_seeds ?? ""],
    ]} />`}
    ${metrics.map((metric) => html`<h3>${metric}</h3><${Figures} page=${page} metric=${metric} />`)}
    ${failed.length > 0 && html`<h3>Runs that failed</h3><${Table} label="Runs that failed" rows=${failed} columns=${[
      ["Variant", (one) => JSON.stringify(one.variant)], ["Seed", (one) => one.seed], ["Why", (one) => one.detail],
    ]} />`}`;
}

function Figures({ page, metric }) {
  const rows = page.sweep.variants.map((one) => ({ ...one, ...(one.metrics[metric] ?? { mean: null }) }));
  const known = rows.filter((one) => one.mean !== null);
  const most = Math.max(...known.map((one) => one.high ?? one.mean), 0);
  const text = (one) => (one.mean === null ? "no figure" : `${one.high === null ? "≥ " : ""}${Number(one.mean.toPrecision(4))}`);
  const told = rows.map((one) => `${one.name} ${text(one)}`).join("; ");
  const right = (one) => (one.high === null ? most * 1.08 : one.high);
  return html`<${Chart} has=${[page, metric]} label=${`${metric} by variant, the mean and its interval over the seeds: ${told}`} make=${() => ({
    height: 50 + 26 * rows.length, marginLeft: 220, marginRight: 110, x: { label: `${metric}, mean of the seeds`, grid: true, zero: true },
    y: { label: null, domain: rows.map((one) => one.name), type: "band" },
    marks: [
      Plot.ruleY(known, { y: "name", x1: "low", x2: right, stroke: "var(--c1)", strokeWidth: 2 }),
      Plot.dot(known, { y: "name", x: "mean", fill: "var(--c1)", r: 4.5 }),
      Plot.text(rows, {
        y: "name", x: (one) => (one.mean === null ? 0 : right(one)), dx: 8, textAnchor: "start", fill: "var(--text)",
        text: (one) => `${text(one)}${one.high === null ? " →" : ""}${one.saturated ? ` (${one.saturated} saturated)` : ""}`,
      }),
    ],
  })} />`;
}
