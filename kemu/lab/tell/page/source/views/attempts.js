// Every scheduling attempt: its result, the nodes that each plugin refused, and what would have had to change.

import { useState } from "preact/hooks";
import * as Plot from "@observablehq/plot";
import { Chart, Choice, Filter, Node, Pod, Table, html } from "../parts.js";
import { counted, lasting, rowsOf, seconds } from "../model.js";

export const title = "Attempts";

export function Attempts({ run }) {
  const { attempts } = run;
  const [filter, setFilter] = useState("");
  const [result, setResult] = useState("");
  const results = [...new Set(attempts.result)].map((index) => run.text(index));
  const wanted = filter.toLowerCase();
  const rows = rowsOf(attempts.pod, (row) => (!result || run.text(attempts.result[row]) === result)
    && `${run.podName(attempts.pod[row])} ${run.text(attempts.message[row])} ${run.text(attempts.plugins[row])}`.toLowerCase().includes(wanted));
  return html`<h2>Scheduling attempts</h2>
    <${Refusals} run=${run} />
    <div class="row"><${Filter} label="Only attempts with" value=${filter} onInput=${setFilter} />
    <${Choice} label="Result" value=${result} options=${[["", "any"], ...results.map((one) => [one, one])]} onInput=${setResult} /></div>
    <p class="note">${rows.length} of ${counted(attempts.pod.length, "attempt")}.</p>
    <${AttemptTable} run=${run} rows=${rows} />`;
}

export function AttemptTable({ run, rows }) {
  const { attempts } = run;
  const text = (column) => (row) => run.text(attempts[column][row]);
  return html`<${Table} label="Attempts" rows=${rows} columns=${[
    ["Decided", (row) => html`<a href=${run.link("events", attempts.event[row])}>${seconds(attempts.time[row])}</a>`],
    ["Pod", (row) => html`<${Pod} run=${run} pod=${attempts.pod[row]} />`],
    ["No.", (row) => attempts.number[row]], ["Scheduler", text("scheduler")],
    ["Result", (row) => html`<span class=${text("result")(row) === "scheduled" ? "good" : "bad"}>${text("result")(row) === "scheduled" ? "✓" : "✗"} ${text("result")(row)}</span>`],
    ["Node", (row) => html`<${Node} run=${run} node=${attempts.node[row]} />`],
    ["Nodes that fit", (row) => `${attempts.feasible[row]} of ${attempts.evaluated[row]}`],
    ["Nodes refused by", text("plugins")],
    ["What would have to change", (row) => text("missing")(row)],
    ["Message", text("message")],
    ["Took", (row) => lasting(attempts.time[row] - attempts.start[row])],
  ]} />`;
}

function Refusals({ run }) {
  const counts = new Map();
  run.attempts.plugins.forEach((index) => {
    for (const part of run.text(index).split(", ").filter(Boolean)) {
      const [plugin, count] = part.split(" ");
      const one = counts.get(plugin) ?? { plugin, nodes: 0, attempts: 0 };
      one.nodes += Number(count);
      one.attempts += 1;
      counts.set(plugin, one);
    }
  });
  const found = [...counts.values()].sort((a, b) => b.attempts - a.attempts);
  if (!found.length) return html`<p class="note">No plugin refused a node.</p>`;
  const told = found.map((one) => `${one.plugin} in ${one.attempts}`).join(", ");
  return html`<h3>In how many attempts each plugin refused nodes</h3>
    <${Chart} has=${[run]} label=${`Attempts in which each plugin refused nodes: ${told}`} make=${() => ({
      height: 30 + 26 * found.length, marginLeft: 170, marginRight: 150, x: { axis: null }, y: { label: null, domain: found.map((one) => one.plugin) },
      marks: [
        Plot.barX(found, { x: "attempts", y: "plugin", fill: "var(--c1)", fillOpacity: 0.6 }),
        Plot.text(found, { x: "attempts", y: "plugin", text: (one) => `${counted(one.attempts, "attempt")}, ${counted(one.nodes, "node")}`, dx: 5, textAnchor: "start", fill: "var(--text)" }),
      ],
    })} />`;
}
