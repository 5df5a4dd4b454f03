// Who pushed out whom, as a graph from preemptors to victims; by family where there are too many pods to name.

import dagre from "@dagrejs/dagre";
import * as Plot from "@observablehq/plot";
import { Chart, Event, Node, Pod, Table, html } from "../parts.js";
import { rowsOf, seconds } from "../model.js";

export const title = "Preemptions";

const MOST_EDGES = 40;

export function Preemptions({ run }) {
  const { preemptions } = run;
  const rows = rowsOf(preemptions.victim);
  if (!rows.length) return html`<h2>Who pushed out whom</h2><p class="note">No pod was preempted.</p>`;
  const byFamily = rows.length > MOST_EDGES;
  return html`<h2>Who pushed out whom</h2>
    <p class="note">${byFamily ? "Pods are counted by workload or controller." : "An arrow leads from the preemptor to its victim."}</p>
    <${Graph} run=${run} byFamily=${byFamily} />
    <${Table} label="Preemptions" rows=${rows} columns=${[
      ["Time", (row) => html`<${Event} run=${run} place=${preemptions.event[row]}>${seconds(preemptions.time[row])}<//>`],
      ["Preemptor", (row) => html`<${Pod} run=${run} pod=${preemptions.preemptor[row]} /> (priority ${run.priority(run.pods.priority[preemptions.preemptor[row]])})`],
      ["Victim", (row) => html`<${Pod} run=${run} pod=${preemptions.victim[row]} /> (priority ${run.priority(run.pods.priority[preemptions.victim[row]])})`],
      ["On", (row) => html`<${Node} run=${run} node=${preemptions.node[row]} />`],
      ["By", (row) => run.actorName(preemptions.actor[row])],
    ]} />`;
}

function Graph({ run, byFamily }) {
  const { nodes, edges, width, height } = laidOut(run, byFamily);
  const told = edges.map((one) => `${one.from} pushed out ${one.to}${one.count > 1 ? ` ${one.count} times` : ""}`).join("; ");
  const far = Math.max(width + 40, 300);
  return html`<div class="scroll" role="region" aria-label="Graph of preemptions" tabindex="0"><${Chart} linked has=${[run]} label=${told} make=${() => ({
    width: far, height: height + 40, margin: 20, x: { domain: [0, Math.max(width, far - 40)], axis: null }, y: { domain: [height, 0], axis: null },
    marks: [
      ...edges.map((one) => Plot.line(one.points, { x: "x", y: "y", stroke: "var(--bad)", strokeWidth: Math.min(1.4 + Math.log2(one.count) / 4, 3), markerEnd: "arrow", curve: "basis" })),
      Plot.text(edges.filter((one) => one.count > 1), {
        x: (one) => one.points[one.points.length >> 1].x, y: (one) => one.points[one.points.length >> 1].y, text: (one) => `${one.count} times`,
        fill: "var(--bad)", stroke: "var(--ground)", strokeWidth: 4, fontSize: 12, dy: -9,
      }),
      Plot.rect(nodes, { x1: (one) => one.x - one.width / 2, x2: (one) => one.x + one.width / 2, y1: (one) => one.y - 17, y2: (one) => one.y + 17, rx: 5, fill: "var(--box)", stroke: "var(--line)" }),
      Plot.text(nodes, { x: "x", y: "y", text: (one) => `${one.label}\npriority ${run.classes?.[one.priority] ?? one.priority}`, fill: "var(--text)", fontSize: 11.5, href: (one) => (one.pod < 0 ? null : run.link("pods", one.pod)) }),
    ],
  })} /></div>`;
}

// The arrow ends a little before the box.
function short(points) {
  const last = points.at(-1);
  return [...points.slice(0, -1), { x: last.x - 5, y: last.y }];
}

function laidOut(run, byFamily) {
  const { preemptions, pods } = run;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 120 });
  graph.setDefaultEdgeLabel(() => ({}));
  const name = (pod) => (byFamily ? run.text(pods.family[pod]) : `${pod}`);
  const counts = new Map();
  preemptions.victim.forEach((victim, row) => {
    const preemptor = preemptions.preemptor[row];
    for (const pod of [preemptor, victim]) {
      const label = byFamily ? run.text(pods.family[pod]) : run.podName(pod);
      graph.setNode(name(pod), { label, priority: pods.priority[pod], pod: byFamily ? -1 : pod, width: Math.max(label.length, 13) * 7 + 16, height: 36 });
    }
    const key = JSON.stringify([name(preemptor), name(victim)]);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  });
  for (const [key, count] of counts) graph.setEdge(...JSON.parse(key), { count });
  dagre.layout(graph);
  const size = graph.graph();
  return {
    width: size.width, height: size.height, nodes: graph.nodes().map((id) => graph.node(id)),
    edges: graph.edges().map((edge) => ({ ...graph.edge(edge), points: short(graph.edge(edge).points), from: graph.node(edge.v).label, to: graph.node(edge.w).label })),
  };
}
