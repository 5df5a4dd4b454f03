// What a search has found: each way to fail, how often, and the smallest scenario that shows it.

import { Table, html } from "../parts.js";

export const title = "Finds";

export function Finds({ page, runs }) {
  const { finds, strategies, headline } = page.search;
  return html`<h2>${headline}</h2>
    ${finds.length > 0 && html`<${Table} label="Ways to fail" rows=${finds} columns=${[
      ["Way to fail", (one) => (one.run < 0 ? one.id : html`<a href=${runs[one.run].link("overview")}>${one.id}</a>`)],
      ["Found", (one) => one.detail], ["Runs", (one) => one.runs], ["First run", (one) => one.first],
      ["Strategies", (one) => Object.entries(one.strategies).map(([name, count]) => `${name} ${count}`).join(", ")],
      ["Who lost", (one) => (one.run < 0 ? "" : runs[one.run].summary.lost)],
    ]} />`}
    <h3>Strategies</h3>
    <${Table} label="Strategies" rows=${strategies} columns=${[["Strategy", (one) => one.name], ["Runs", (one) => one.runs], ["Failed", (one) => one.failed]]} />
    ${finds.filter((one) => one.scenario).map((one) => html`<h3>${one.id}, shrunk</h3>
      <pre class="scroll" role="region" tabindex="0" aria-label=${`The scenario of ${one.id}`}>${one.scenario}</pre>`)}`;
}
