// Nodes over time: who ran where, what was requested of what there is, pressure, evictions and deaths.

import { useState } from "preact/hooks";
import * as Plot from "@observablehq/plot";
import { Chart, Choice, Event, Filter, Node, Pod, Table, colours, html } from "../parts.js";
import { bytes, cores, rowsOf, seconds } from "../model.js";

export const title = "Nodes";

const AT_ONCE = 6;
const WORDS = { preempted: "✗ preempted", evicted: "✗ evicted", oomKilled: "✗ out of memory", rejected: "✗ rejected" };

export function Nodes({ run, argument }) {
  const chosen = argument ? decodeURIComponent(argument) : "";
  const [filter, setFilter] = useState(chosen);
  const [resource, setResource] = useState(run.nodes.usage.some((one) => one.memory.some((amount) => amount > 0)) ? "memory" : "cpu");
  const [first, setFirst] = useState(0);
  const [before, setBefore] = useState(chosen);
  if (before !== chosen) {
    setBefore(chosen);
    setFilter(chosen);
    setFirst(0);
  }
  const told = new Map();
  run.nodes.marks.node.forEach((node) => told.set(node, (told.get(node) ?? 0) + 1));
  run.nodes.conditions.node.forEach((node) => told.set(node, (told.get(node) ?? 0) + 2));
  const exact = run.nodes.names.indexOf(filter);
  const names = exact >= 0 ? [exact] : rowsOf(run.nodes.names, (node) => run.nodes.names[node].includes(filter));
  names.sort((a, b) => (told.get(b) ?? 0) - (told.get(a) ?? 0) || a - b);
  const shown = names.slice(first, first + AT_ONCE);
  const priorities = [...new Set(run.nodes.stays.pod.map((pod) => run.pods.priority[pod]))].sort((a, b) => b - a);
  const step = (by) => setFirst(Math.min(Math.max(first + by, 0), Math.max(names.length - 1, 0)));
  return html`<h2>Nodes over time</h2>
    <p class="note">Bars are pods, coloured by priority; below, what they request (filled) and use (dotted) of what the node has (dashed).</p>
    <div class="row">
      <${Filter} label="Node" value=${filter} onInput=${(value) => { setFilter(value); setFirst(0); }} />
      <${Choice} label="Resource" value=${resource} options=${[["cpu", "CPU"], ["memory", "memory"]]} onInput=${setResource} />
      ${names.length > AT_ONCE && html`<span><button type="button" disabled=${first === 0} onClick=${() => step(-AT_ONCE)}>Previous</button>
        ${first + 1}–${Math.min(first + AT_ONCE, names.length)} of ${names.length}
        <button type="button" disabled=${first + AT_ONCE >= names.length} onClick=${() => step(AT_ONCE)}>Next</button></span>`}
    </div>
    <${Legend} run=${run} priorities=${priorities} />
    ${names.length > 1 && exact < 0 && html`<${Cluster} run=${run} nodes=${names} resource=${resource} />`}
    ${shown.map((node) => html`<${One} key=${node} run=${run} node=${node} resource=${resource} priorities=${priorities} />`)}`;
}

function Legend({ run, priorities }) {
  return priorities.length > 0 && html`<p class="legend">Priority ${priorities.map((priority, index) => html`<span class=${`swatch s${(index % 7) + 1}`}></span>${run.priority(priority)} `)}</p>`;
}

// All nodes together: what is requested of what there is.
function Cluster({ run, nodes, resource }) {
  const load = summed(nodes.flatMap((node) => changesOf(run, node, resource)), run.end);
  if (!load.some((one) => one.total)) return null;
  const peak = load.reduce((most, one) => (one.share > most.share ? one : most));
  const unit = resource === "cpu" ? cores : bytes;
  const told = `Fullest at ${seconds(Math.round(peak.time * 1e6))}: ${unit(peak.used)} of ${unit(peak.total)} requested (${Math.round(peak.share * 100)} %).`;
  return html`<section class="node-box"><h3>${nodes.length} nodes together</h3><p class="note">${told}</p>
    <${Load} run=${run} load=${load} used=${usedOn(run, nodes, resource)} resource=${resource} label=${`${resource} requested on all nodes. ${told}`} has=${[run, nodes.length, resource]} /></section>`;
}

function Load({ run, load, used, resource, label, has }) {
  return html`<${Chart} has=${has} label=${label} make=${() => ({
    height: 120, marginLeft: 60, marginRight: 20, marginTop: 18, marginBottom: 28, x: { domain: [0, run.end / 1e6], label: "time (s)", labelAnchor: "center" },
    y: { label: resource === "cpu" ? "CPUs requested" : "GiB requested", grid: true, zero: true, ticks: 4 },
    marks: [
      Plot.areaY(load, { x: "time", y: (one) => scaled(one.used, resource), curve: "step-after", fill: "var(--c1)", fillOpacity: 0.35 }),
      Plot.lineY(load, { x: "time", y: (one) => scaled(one.used, resource), curve: "step-after", stroke: "var(--c1)" }),
      Plot.lineY(used, { x: "time", y: (one) => scaled(one.used, resource), curve: "step-after", stroke: "var(--c2)", strokeWidth: 1.8, strokeDasharray: "1 2" }),
      Plot.text(used, Plot.selectMaxY({ x: "time", y: (one) => scaled(one.used, resource), text: () => "used", dy: -7, fill: "var(--c2)", stroke: "var(--ground)", strokeWidth: 3 })),
      Plot.lineY(load, { x: "time", y: (one) => scaled(one.total, resource), curve: "step-after", stroke: "var(--bad)", strokeDasharray: "5 3" }),
      Plot.text(load.slice(-1), { x: "time", y: (one) => scaled(one.total, resource), text: () => "allocatable", textAnchor: "end", dy: -7, fill: "var(--bad)" }),
    ],
  })} />`;
}

// What pods use over time, where the scenario says so.
function usedOn(run, nodes, resource) {
  const wanted = new Set(nodes);
  const changes = [];
  for (const one of run.nodes.usage) {
    if (!wanted.has(one.node)) continue;
    const amounts = one[resource];
    let before = 0;
    amounts.forEach((amount, index) => {
      changes.push([one.from + (one.lasts * index) / amounts.length, amount - before, 0]);
      before = amount;
    });
    if (one.from + one.lasts < run.end - 1e6) changes.push([one.from + one.lasts, -before, 0]);
  }
  const used = summed(changes, run.end);
  return used.some((one) => one.used > 0) ? used : [];
}

// The share of its memory that is used on a node over time; where nothing is known of usage, that which is requested.
export function memoryOn(run, node) {
  const load = requested(run, node, "memory");
  const used = run.nodes.usage.length ? usedOn(run, [node], "memory") : [];
  const total = load.find((one) => one.total)?.total;
  const points = total ? (used.length ? used.map((one) => ({ time: one.time * 1e6, share: one.used / total })) : load.map((one) => ({ time: one.time * 1e6, share: one.share }))) : [];
  return { name: run.nodeName(node), used: used.length > 0, points };
}

function One({ run, node, resource, priorities }) {
  const stays = packed(run, node);
  const load = requested(run, node, resource);
  const unit = resource === "cpu" ? cores : bytes;
  const marks = rowsOf(run.nodes.marks.node, (row) => run.nodes.marks.node[row] === node);
  const conditions = rowsOf(run.nodes.conditions.node, (row) => run.nodes.conditions.node[row] === node);
  const name = run.nodeName(node);
  const has = [run, node, resource];
  const x = { domain: [0, run.end / 1e6], label: null };
  const lanes = Math.max(...stays.map((one) => one.lane), 0) + 1;
  const tall = Math.min(20, Math.max(3, 260 / lanes));
  const { marks: all } = run.nodes;
  const lane = new Map(stays.map((one) => [one.pod, one.lane]));
  const peak = load.reduce((most, one) => (one.share > most.share ? one : most), { share: 0, time: 0 });
  const summary = peak.total ? `Fullest at ${seconds(Math.round(peak.time * 1e6))}: ${unit(peak.used)} of ${unit(peak.total)} requested (${Math.round(peak.share * 100)} %).` : "";
  return html`<section class="node-box"><h3>${name}</h3>
    ${summary && html`<p class="note">${summary}</p>`}
    ${stays.length > 0 && html`<${Chart} linked has=${has} label=${`Pods on ${name} over time`} make=${(width) => ({
      height: lanes * tall + 30, marginLeft: 60, marginRight: 20, marginTop: 4, marginBottom: 20, x,
      y: { axis: null, domain: [lanes, 0] },
      color: colours(priorities),
      marks: [
        Plot.rect(stays, {
          x1: "from", x2: "to", y1: "lane", y2: (one) => one.lane + 0.86, rx: 2, href: (one) => run.link("pods", one.pod),
          fill: (one) => run.pods.priority[one.pod], fillOpacity: 0.75,
          title: (one) => `${run.podName(one.pod)}: ${run.text(run.pods.fate[one.pod])}`,
        }),
        Plot.text(stays.filter((one) => tall > 11 && ((one.to - one.from) / (run.end / 1e6)) * width > 7 * run.podName(one.pod).length), {
          x: "from", y: (one) => one.lane + 0.45, dx: 4, textAnchor: "start", text: (one) => run.podName(one.pod), fill: "var(--text)",
          stroke: "var(--ground)", strokeWidth: 3,
        }),
        Plot.text(marks, {
          x: (row) => all.time[row] / 1e6, y: (row) => (lane.get(all.pod[row]) ?? 0) + 0.45, text: () => "✗", fontSize: 15, fontWeight: 700,
          fill: "var(--bad)", stroke: "var(--ground)", strokeWidth: 3, href: (row) => run.link("events", all.event[row]),
          title: (row) => `${run.podName(all.pod[row])}: ${run.text(all.what[row])}`,
        }),
      ],
    })} />`}
    ${load.some((one) => one.total) && html`<${Load} run=${run} load=${load} used=${usedOn(run, [node], resource)} resource=${resource} has=${has} label=${`${resource} requested on ${name} against what it has. ${summary}`} />`}
    ${conditions.length + marks.length > 0 && html`<details open=${conditions.length + marks.length <= 12}><summary>${conditions.length + marks.length} ${conditions.length + marks.length === 1 ? "happening" : "happenings"}</summary>
      <${Table} label=${`Happenings on ${name}`} columns=${[
        ["Time", (one) => seconds(one.time)],
        ["What", (one) => html`<${Event} run=${run} place=${one.event}>${one.text}<//>`],
        ["Pod", (one) => html`<${Pod} run=${run} pod=${one.pod} />`],
      ]} rows=${happenings(run, marks, conditions)} /></details>`}
  </section>`;
}

function happenings(run, marks, conditions) {
  const { marks: all, conditions: state } = run.nodes;
  return [
    ...marks.map((row) => ({ time: all.time[row], event: all.event[row], pod: all.pod[row], text: WORDS[run.text(all.what[row])] })),
    ...conditions.map((row) => ({ time: state.time[row], event: state.event[row], pod: -1, text: `${state.bad[row] ? "✗ " : ""}${run.text(state.text[row])}` })),
  ].sort((a, b) => a.time - b.time);
}

function scaled(value, resource) {
  return resource === "cpu" ? value / 1000 : value / 2 ** 30;
}

// The stays of pods on a node, each in the first free lane.
function packed(run, node) {
  const { stays } = run.nodes;
  const ends = [];
  return rowsOf(stays.node, (row) => stays.node[row] === node)
    .sort((a, b) => stays.from[a] - stays.from[b])
    .map((row) => {
      const from = stays.from[row];
      const to = stays.to[row] < 0 ? run.end : stays.to[row];
      let lane = ends.findIndex((end) => end <= from);
      if (lane < 0) lane = ends.length;
      ends[lane] = to;
      return { pod: stays.pod[row], lane, from: from / 1e6, to: to / 1e6 };
    });
}

// What the pods on a node request, over time, beside what it has.
function requested(run, node, resource) {
  return summed(changesOf(run, node, resource), run.end);
}

// Triples: when, by how much the requests change, by how much what the node has changes.
function changesOf(run, node, resource) {
  const { stays, allocatable } = run.nodes;
  const column = resource === "cpu" ? 1 : 2;
  const changes = [];
  for (const row of rowsOf(stays.node, (row) => stays.node[row] === node)) {
    const wants = run.pods[resource][stays.pod[row]];
    changes.push([stays.from[row], wants, 0]);
    if (stays.to[row] >= 0) changes.push([stays.to[row], -wants, 0]);
  }
  let before = 0;
  for (const since of allocatable[node]) {
    changes.push([since[0], 0, (since[column] ?? 0) - before]);
    before = since[column] ?? 0;
  }
  return changes;
}

function summed(changes, end) {
  changes.sort((a, b) => a[0] - b[0]);
  const load = [];
  let used = 0;
  let total = 0;
  for (const [time, by, now] of [...changes, [end, 0, 0]]) {
    used += by;
    total += now;
    const one = { time: time / 1e6, used, total, share: total ? used / total : 0 };
    if (load.length && load.at(-1).time === one.time) load[load.length - 1] = one;
    else load.push(one);
  }
  return load;
}
