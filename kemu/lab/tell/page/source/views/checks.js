// What the scenario expects and what kemu checks in every run: whether it holds, and what was looked at.

import { Sign, Table, html } from "../parts.js";

export const title = "Checks";

export function Checks({ run, page }) {
  const { expectations, checks } = run.summary;
  const order = (one) => (one.holds === false ? 0 : one.holds === null ? 1 : 2);
  const sorted = [...checks].sort((a, b) => order(a) - order(b));
  const columns = (what) => [
    [what, (one) => one.id],
    ["Holds", (one) => html`<${Sign} holds=${one.holds} />`],
    ...(what === "Expectation" ? [["Says", (one) => one.says]] : []),
    ["What was looked at, or found", (one) => one.detail],
  ];
  return html`<h2>What was expected</h2>
    ${expectations.length ? html`<${Table} label="Expectations" rows=${expectations} columns=${columns("Expectation")} />` : html`<p class="note">The scenario expects nothing.</p>`}
    ${page.matrix?.comparisons.length > 0 && html`<h2>Comparisons of variants</h2><${Table} label="Comparisons" rows=${page.matrix.comparisons} columns=${columns("Expectation")} />`}
    <h2>What is checked in every run</h2>
    <${Table} label="Checks" rows=${sorted} columns=${columns("Check")} />`;
}
