// When the failure was decided: the share of futures that fail, over time.

import * as Plot from "@observablehq/plot";
import { Chart, Event, html } from "../parts.js";
import { seconds } from "../model.js";

export const title = "Decided";

export function Probability({ run }) {
  const found = run.summary.probability;
  if (!found) return html`<h2>When was it decided?</h2><p class="note">kemu explain --probability has not asked this run.</p>`;
  const { decided, points } = found;
  const percent = (share) => `${Math.round(share * 100)} %`;
  const told = decided ? `Decided at ${decided.time_s.toFixed(3)} s, from ${percent(decided.before)} to ${percent(decided.after)}: ${decided.text}` : "No moment decided it.";
  return html`<h2>When was it decided?</h2>
    <p>${decided ? html`<${Event} run=${run} place=${decided.event}>${told}<//>` : told}</p>
    <p class="note">At each moment, ${found.suffixes} futures were drawn; the curve is the share of them that fail in the same way.</p>
    <${Chart} has=${[run]} label=${`Share of futures that fail over time. ${told}`} make=${() => ({
      height: 300, marginLeft: 50, x: { label: "time (s)" }, y: { label: "futures that fail", domain: [0, 1], tickFormat: "%", grid: true },
      marks: [
        ...(decided ? [Plot.ruleX([decided.time_s], { stroke: "var(--bad)", strokeWidth: 1.5 }),
          Plot.text([decided], { x: "time_s", y: 1, text: () => `✗ ${seconds(Math.round(decided.time_s * 1e6))}`, dx: 6, dy: 10, textAnchor: "start", fill: "var(--bad)" })] : []),
        Plot.line(points, { x: "time_s", y: "p", stroke: "var(--c1)", strokeWidth: 2 }),
        Plot.dot(points, { x: "time_s", y: "p", fill: "var(--c1)", r: 3 }),
      ],
    })} />`;
}
