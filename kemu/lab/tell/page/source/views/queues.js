// How many pods were in which part of each scheduler's queue.

import * as Plot from "@observablehq/plot";
import { Chart, colours, html } from "../parts.js";

export const title = "Queues";

const PARTS = ["active", "backoff", "unschedulable", "gated"];
const DASHES = { active: null, backoff: "6 3", unschedulable: "2 2", gated: "8 2 2 2" };

export function Queues({ run }) {
  const schedulers = [...new Set(run.queues.map((one) => one.scheduler))];
  if (!schedulers.length) return html`<h2>Queues over time</h2><p class="note">No scheduler queued a pod.</p>`;
  return html`<h2>Queues over time</h2>
    <p class="note">Pods waiting in each part of the queue: ready to be tried (active), held back after a failure (backoff), waiting for something to change (unschedulable), held by a gate (gated).</p>
    ${schedulers.map((name) => html`<h3>scheduler ${name}</h3><${Curves} run=${run} name=${name} />`)}`;
}

function Curves({ run, name }) {
  const curves = run.queues.filter((one) => one.scheduler === name);
  const points = curves.flatMap((one) => one.time.map((time, index) => ({ queue: one.queue, time: time / 1e6, count: one.count[index] })));
  const most = curves.map((one) => `${one.queue}: ${Math.max(...one.count)} at most`).join(", ");
  const parts = PARTS.filter((part) => curves.some((one) => one.queue === part));
  return html`<p class="note">${most}.</p><${Chart} has=${[run, name]} label=${`Queue of scheduler ${name} over time: ${most}`} make=${() => ({
    height: 240, marginLeft: 50, marginRight: 110, x: { label: "time (s)", domain: [0, run.end / 1e6] },
    y: { label: "pods", grid: true, zero: true, domain: [0, Math.max(1, ...points.map((one) => one.count))], tickFormat: "d", ticks: Math.min(5, Math.max(1, ...points.map((one) => one.count))) },
    color: { ...colours(parts), legend: true },
    marks: [
      ...parts.map((part) => Plot.lineY(points.filter((one) => one.queue === part), {
        x: "time", y: "count", stroke: "queue", curve: "step-after", strokeWidth: 1.8, strokeDasharray: DASHES[part],
      })),
      Plot.text(points.filter((one) => curves.some((curve) => curve.queue === one.queue && Math.max(...curve.count) > 0)), Plot.selectMaxY({ x: "time", y: "count", z: "queue", text: "queue", dy: -8, fill: "var(--text)", stroke: "var(--ground)", strokeWidth: 3 })),
    ],
  })} />`;
}
