// How late each client heard of changes.

import * as Plot from "@observablehq/plot";
import { Chart, Table, html } from "../parts.js";
import { lasting } from "../model.js";

export const title = "Watches";

export function Watches({ run }) {
  const { clients, bins, others } = run.watches;
  if (!clients.length) return html`<h2>Watch lag by client</h2><p class="note">No client heard of anything.</p>`;
  const cells = clients.flatMap((one) => one.worst.map(([bin, lag]) => ({
    client: one.name, from: (bin / bins) * run.end / 1e6, to: ((bin + 1) / bins) * run.end / 1e6, lag: lag / 1e3,
  })));
  const worst = clients[0];
  const shown = clients.slice(0, 20);
  return html`<h2>Watch lag by client</h2>
    <p class="note">From the store's write of a change to its delivery. The most: <b>${worst.name}</b> heard of a change ${lasting(worst.max)} late.
      ${others > 0 ? ` ${others} clients that lagged less are not shown.` : ""}</p>
    <${Chart} has=${[run]} label=${`Worst watch lag over time by client; the most is ${lasting(worst.max)}, of ${worst.name}`} make=${() => ({
      height: 60 + 22 * shown.length, marginLeft: 190, x: { label: "time (s)", domain: [0, run.end / 1e6] },
      y: { label: null, domain: shown.map((one) => one.name), type: "band" },
      color: { type: "linear", scheme: "cividis", domain: [0, worst.max / 1e3], label: "worst lag (ms)", legend: true, ticks: 4 },
      marks: [Plot.barX(cells.filter((one) => shown.some((client) => client.name === one.client)), {
        x1: "from", x2: "to", y: "client", fill: "lag", inset: 0.5, title: (one) => `${one.client}: ${one.lag.toFixed(1)} ms`,
      })],
    })} />
    <${Table} label="Watch lag by client" rows=${clients} columns=${[
      ["Client", (one) => one.name], ["Events", (one) => one.events], ["Half came within", (one) => lasting(one.p50)],
      ["99 % within", (one) => lasting(one.p99)], ["The latest", (one) => lasting(one.max)],
    ]} />`;
}
