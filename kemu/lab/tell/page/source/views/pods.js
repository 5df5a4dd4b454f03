// All pods; and one pod: what became of it, its waterfall, its attempts, who pushed it out and whom it pushed out.

import { useState } from "preact/hooks";
import * as Plot from "@observablehq/plot";
import { Chart, Filter, Node, Pod, Table, colours, html } from "../parts.js";
import { counted, lasting, rowsOf, seconds } from "../model.js";
import { AttemptTable } from "./attempts.js";
import { EventTable } from "./events.js";

export const title = "Pods";

export function Pods({ run, argument }) {
  if (argument !== "") return html`<${One} key=${argument} run=${run} pod=${Number(argument)} />`;
  return html`<${All} run=${run} />`;
}

function All({ run }) {
  const [filter, setFilter] = useState("");
  const wanted = filter.toLowerCase();
  const { pods } = run;
  const found = run.podsWhere((pod) => `${run.podName(pod)} ${run.text(pods.fate[pod])} ${run.nodeName(pods.node[pod])}`.toLowerCase().includes(wanted));
  found.sort((a, b) => pods.waited[b] - pods.waited[a] || a - b);
  return html`<h2>Pods, longest wait first</h2>
    <${Filter} label="Only pods with" value=${filter} onInput=${setFilter} />
    <p class="note">${found.length} of ${counted(run.podCount, "pod")}.</p>
    <${Table} label="Pods" rows=${found} columns=${[
      ["Pod", (pod) => html`<${Pod} run=${run} pod=${pod} />`], ["Priority", (pod) => run.priority(pods.priority[pod])],
      ["Wants", (pod) => run.text(pods.wants[pod])], ["Created", (pod) => seconds(pods.created[pod])],
      ["Waited", (pod) => (pods.waited[pod] < 0 ? "" : seconds(pods.waited[pod]))],
      ["Node", (pod) => html`<${Node} run=${run} node=${pods.node[pod]} />`],
      ["Attempts", (pod) => pods.attempts[pod]], ["What became of it", (pod) => run.text(pods.fate[pod])],
    ]} />`;
}

function One({ run, pod }) {
  const { pods } = run;
  if (!(pod >= 0 && pod < run.podCount)) return html`<h2>No such pod</h2>`;
  const attempts = rowsOf(run.attempts.pod, (row) => run.attempts.pod[row] === pod);
  const last = attempts.filter((row) => run.text(run.attempts.missing[row])).at(-1);
  const events = rowsOf(run.events.pod, (row) => run.events.pod[row] === pod);
  const waited = pods.waited[pod] < 0 ? "no scheduler had to place it" : `${pods.bound[pod] < 0 ? "waited in vain for" : "waited"} ${seconds(pods.waited[pod])}`;
  return html`<h2>Pod ${run.podName(pod)}</h2>
    <p><b>${run.text(pods.fate[pod])}</b>; ${waited}; ${counted(pods.attempts[pod], "attempt")}; overtaken ${counted(pods.overtaken[pod], "time")}.</p>
    ${last !== undefined && html`<p>Why it had to wait: <a href=${run.link("events", run.attempts.event[last])}>${run.text(run.attempts.missing[last])}</a>
      <span class="when"> ${seconds(run.attempts.start[last])}</span>.</p>`}
    <dl class="facts">
      <div><dt>Priority</dt><dd>${run.priority(pods.priority[pod])}</dd></div>
      <div><dt>Wants</dt><dd>${run.text(pods.wants[pod]) || "nothing"}</dd></div>
      <div><dt>Scheduler</dt><dd>${run.text(pods.scheduler[pod])}</dd></div>
      <div><dt>Node</dt><dd>${pods.node[pod] < 0 ? "none" : html`<${Node} run=${run} node=${pods.node[pod]} />`}</dd></div>
      <div><dt>Created</dt><dd>${seconds(pods.created[pod])}</dd></div>
      <div><dt>Bound</dt><dd>${seconds(pods.bound[pod])}</dd></div>
      <div><dt>Gone</dt><dd>${seconds(pods.gone[pod])}</dd></div>
      ${run.trace(pod) && html`<div><dt>Trace in Jaeger</dt><dd><code>${run.trace(pod)}</code></dd></div>`}
    </dl>
    <${Waterfall} run=${run} pod=${pod} />
    <${Links} run=${run} pod=${pod} />
    ${attempts.length > 0 && html`<h3>Attempts</h3><${AttemptTable} run=${run} rows=${attempts} />`}
    <h3>Events</h3><${EventTable} run=${run} rows=${events} />`;
}

function Links({ run, pod }) {
  const found = run.traces.links.filter(([own, , other]) => own === pod && other >= 0);
  const relations = [...new Set(found.map((one) => one[1]))];
  const others = (relation) => [...new Set(found.filter((one) => one[1] === relation).map((one) => one[2]))];
  return relations.map((relation) => html`<p>${sentence(run.text(relation))} ${others(relation).slice(0, 12).map((other) => html`<${Pod} run=${run} pod=${other} /> `)}
    ${others(relation).length > 12 && `and ${others(relation).length - 12} more`}</p>`);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Waterfall({ run, pod }) {
  const { traces } = run;
  const rows = rowsOf(traces.pod, (row) => traces.pod[row] === pod).slice(0, 120);
  if (!rows.length) return null;
  const spans = rows.map((row, index) => ({
    row: index, label: run.text(traces.label[row]).replace("default/", ""), reason: run.text(traces.reason[row]), service: run.text(traces.service[row]),
    from: traces.from[row] / 1e6, to: (traces.from[row] + traces.took[row]) / 1e6, ok: traces.ok[row], took: traces.took[row],
  }));
  const services = [...new Set(spans.map((one) => one.service))];
  const start = Math.min(...spans.map((one) => one.from));
  const end = Math.max(...spans.map((one) => one.to));
  const least = (end - start) / 400;
  const place = (one) => (one.from > start + 0.6 * (end - start) ? "end" : "start");
  const name = (one) => `${one.ok ? "" : "✗ "}${one.label}${one.took ? ` · ${lasting(one.took)}` : ""}`;
  const options = (width, anchor) => ({
    x: (one) => (anchor === "end" ? one.from : one.from), y: "row", dx: anchor === "end" ? -5 : 5, textAnchor: anchor,
    text: name, fill: (one) => (one.ok ? "var(--text)" : "var(--bad)"), stroke: "var(--ground)", strokeWidth: 3, fontSize: 11.5,
    title: (one) => `${one.label}: ${lasting(one.took)}${one.reason ? `\n${one.reason}` : ""}`,
  });
  return html`<h3>What it went through</h3><${Chart} has=${[run, pod]} label=${`Waterfall of ${run.podName(pod)}: ${spans.slice(0, 30).map((one) => `${one.label} at ${one.from.toFixed(3)} s for ${lasting(one.took)}`).join("; ")}`} make=${(width) => ({
    height: spans.length * 19 + 60, marginLeft: 20, marginRight: 20, marginTop: 30,
    x: { domain: [start, end], label: "time (s)", axis: "top", grid: true }, y: { domain: [spans.length - 0.4, -0.6], axis: null },
    color: { ...colours(services), legend: true },
    marks: [
      Plot.rect(spans, { x1: "from", x2: (one) => Math.max(one.to, one.from + least), y1: (one) => one.row - 0.38, y2: (one) => one.row + 0.38, fill: "service", fillOpacity: 0.55, rx: 2 }),
      Plot.text(spans.filter((one) => place(one) === "start"), options(width, "start")),
      Plot.text(spans.filter((one) => place(one) === "end"), options(width, "end")),
    ],
  })} />`;
}
