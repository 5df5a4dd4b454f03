// How long pods waited for a node, by priority. A pod that still waits does not shorten the curve (Kaplan and Meier).

import * as Plot from "@observablehq/plot";
import { Chart, Pod, Table, colours, html } from "../parts.js";
import { counted, duration, seconds } from "../model.js";

export const title = "Waiting";

export function Waiting({ run }) {
  const pods = run.podsWhere((pod) => run.pods.waited[pod] >= 0).map((pod) => ({
    pod, priority: run.pods.priority[pod], waited: run.pods.waited[pod] / 1e6, bound: run.pods.bound[pod] >= 0,
  }));
  if (!pods.length) return html`<h2>Waiting by priority</h2><p class="note">No pod had to wait for a scheduler.</p>`;
  const priorities = [...new Set(pods.map((one) => one.priority))].sort((a, b) => b - a);
  const curves = priorities.flatMap((priority) => survival(pods.filter((one) => one.priority === priority), priority));
  // Waits span from milliseconds to hours: the axis is logarithmic, and what is shorter stands at its beginning.
  const least = Math.max(Math.min(...pods.map((one) => one.waited).filter((waited) => waited > 0), 1), 1e-4) / 2;
  const most = Math.max(...pods.map((one) => one.waited), 2 * least) * 1.1;
  const ticks = [0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 36000].filter((one) => one >= least && one <= most);
  const axis = { type: "log", domain: [least, most], grid: true, ticks, tickFormat: (value) => duration(Math.round(value * 1e6)).replace(".00", "").replace(".0", "") };
  const longest = [...pods].sort((a, b) => b.waited - a.waited);
  const figures = Object.entries(run.summary.waiting);
  return html`<h2>Waiting by priority</h2>
    <${Table} label="Waiting by priority" rows=${figures} columns=${[
      ["Priority", ([priority]) => run.priority(priority)], ["Pods", ([, one]) => one.pods], ["Never bound", ([, one]) => one.unbound],
      ["Half waited less than", ([, one]) => figure(one, "p50_s")], ["99 % less than", ([, one]) => figure(one, "p99_s")],
      ["Longest", ([, one]) => figure(one, "max_s")], ["Overtaken at most", ([, one]) => counted(one.overtaken_max, "time")],
    ]} />
    <h3>Share of pods that still wait</h3>
    <${Chart} has=${[run]} label="Share of pods that still wait after a time, by priority" make=${() => ({
      height: 260, marginLeft: 50, marginRight: 120, x: { ...axis, label: "time since creation" }, y: { label: "share that still waits", domain: [0, 1], grid: true, tickFormat: "%" },
      color: { ...colours(priorities), legend: true, label: "priority", tickFormat: (value) => run.priority(value) },
      marks: [
        Plot.line(curves, { x: (one) => Math.max(one.time, least), y: "share", z: "priority", stroke: "priority", curve: "step-after", strokeWidth: 1.8 }),
        Plot.text(priorities.map((priority) => curves.filter((one) => one.priority === priority).at(-1)), {
          x: (one) => Math.max(one.time, least), y: "share", text: (one) => run.classes?.[one.priority] ?? String(one.priority), dx: 6, textAnchor: "start", fill: "var(--text)",
        }),
      ],
    })} />
    <h3>Each pod</h3>
    <${Chart} has=${[run]} label="Waiting time of each pod by priority" linked=${pods.length <= 500} make=${() => ({
      height: 60 + 46 * priorities.length, marginLeft: 130, x: { ...axis, label: "waited" }, y: { label: "priority", domain: priorities, type: "band", tickFormat: (value) => run.classes?.[value] ?? String(value) },
      symbol: { domain: ["bound", "never bound"], range: ["circle", "times"], legend: true },
      marks: [Plot.dot(pods, {
        x: (one) => Math.max(one.waited, least), y: "priority", symbol: (one) => (one.bound ? "bound" : "never bound"), r: 4, strokeWidth: 1.6,
        stroke: (one) => (one.bound ? "var(--c1)" : "var(--bad)"), href: pods.length <= 500 ? (one) => run.link("pods", one.pod) : undefined,
        title: (one) => `${run.podName(one.pod)}: ${duration(one.waited * 1e6)}`,
      })],
    })} />
    <h3>Longest</h3>
    <${Table} label="The pods that waited longest" rows=${longest.slice(0, 50)} columns=${[
      ["Pod", (one) => html`<${Pod} run=${run} pod=${one.pod} />`], ["Priority", (one) => run.priority(one.priority)],
      ["Waited", (one) => `${duration(one.waited * 1e6)}${one.bound ? "" : ", never bound"}`],
      ["Overtaken", (one) => counted(run.pods.overtaken[one.pod], "time")], ["Attempts", (one) => run.pods.attempts[one.pod]],
      ["Created", (one) => seconds(run.pods.created[one.pod])],
    ]} />`;
}

function figure(group, name) {
  return `${(group.censored ?? []).includes(name) ? "≥ " : ""}${duration(group[name] * 1e6)}`;
}

// The product-limit estimate: at each binding, the share of those who still waited that went on waiting.
function survival(pods, priority) {
  const ordered = [...pods].sort((a, b) => a.waited - b.waited || b.bound - a.bound);
  const points = [{ time: 0, share: 1, priority }];
  let share = 1;
  ordered.forEach((one, index) => {
    if (one.bound) share *= 1 - 1 / (ordered.length - index);
    points.push({ time: one.waited, share, priority });
  });
  return points;
}
