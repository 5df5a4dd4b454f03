// What differs between the variants of a matrix.

import { Sign, Table, html } from "../parts.js";

export const title = "Variants";

export function Variants({ page, runs }) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.summary.counts)))];
  const differing = names.filter((name) => new Set(runs.map((run) => run.summary.counts[name])).size > 1);
  const priorities = [...new Set(runs.flatMap((run) => Object.keys(run.summary.waiting)))].sort((a, b) => b - a);
  const waits = priorities.flatMap((priority) => [
    { name: `longest wait, priority ${runs[0].priority(priority)}`, of: (run) => wait(run.summary.waiting[priority]) },
    { name: `never bound, priority ${runs[0].priority(priority)}`, of: (run) => run.summary.waiting[priority]?.unbound ?? 0 },
  ]);
  const rows = [...waits, ...differing.map((name) => ({ name: name.replaceAll("_", " "), of: (run) => run.summary.counts[name] }))];
  return html`<h2>Variants</h2>
    <p><b>${page.matrix.headline}</b></p>
    <${Table} label="Variants" rows=${runs} columns=${[
      ["Variant", (run) => html`<a href=${run.link("overview")}>${run.name || `variant ${run.index}`}</a>`],
      ["Verdict", (run) => html`<${Sign} holds=${run.summary.verdict === "holds" ? true : run.summary.verdict === "fails" ? false : null} />`],
      ["In short", (run) => run.summary.headline],
      ["Who lost", (run) => run.summary.lost],
    ]} />
    <h3>What differs</h3>
    <${Table} label="What differs between the variants" rows=${rows} columns=${[
      ["", (row) => row.name], ...runs.map((run) => [run.name || `variant ${run.index}`, (row) => row.of(run)]),
    ]} />
    ${page.matrix.comparisons.length > 0 && html`<h3>Comparisons</h3><${Table} label="Comparisons" rows=${page.matrix.comparisons} columns=${[
      ["Comparison", (one) => one.says ?? one.id], ["Holds", (one) => html`<${Sign} holds=${one.holds} />`], ["Found", (one) => one.detail],
    ]} />`}`;
}

function wait(group) {
  return group ? `${(group.censored ?? []).includes("max_s") ? "≥ " : ""}${group.max_s.toFixed(3)} s` : "";
}
