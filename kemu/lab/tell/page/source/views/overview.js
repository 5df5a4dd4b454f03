// The space-time picture of the first screen. The words beside it are static HTML.

import { render } from "preact";
import * as Plot from "@observablehq/plot";
import { Chart, html } from "../parts.js";
import { lasting, seconds } from "../model.js";

const HEAD = 46;
const LEAST_HEIGHT = 360;
const BELOW = 44;

export function drawStages(runs, root) {
  for (const place of root.querySelectorAll("figure.space-time[data-run]")) {
    const run = runs[Number(place.dataset.run)];
    // A hidden section has no width yet.
    if (run.summary.stage && place.clientWidth) render(html`<${Stage} run=${run} stage=${run.summary.stage} room=${innerHeight - place.getBoundingClientRect().top - scrollY} />`, place);
  }
}

export const title = "Race";

// Where the first screen shows curves, the picture is a view of its own.
export function Race({ run }) {
  if (!run.summary.stage) return html`<p class="note">No side lost.</p>`;
  const without = run.summary.stage.without;
  return html`<h2>Step by step${without && html` <small>grey: ${without}, where this is not so</small>`}</h2>
    <figure class="space-time"><${Stage} run=${run} stage=${run.summary.stage} room=${innerHeight - 120} /></figure>`;
}

// `room`: from the top of the picture to the lower edge of the window.
function Stage({ run, stage, room }) {
  const told = stage.items.map((one) => `${seconds(one.time)}: ${words(stage, one)}`).join("; ");
  return html`<${Chart} linked label=${`Space-time picture. ${told}`} has=${[stage]} make=${(width) => options(run, stage, width, Math.max(room - BELOW, LEAST_HEIGHT))} />`;
}

function words(stage, one) {
  const ghost = one.ghost ? "in the passing run, " : "";
  if (one.kind === "mark") return `${ghost}${stage.lanes[one.lane]}: ${one.text}`;
  return `${ghost}${stage.lanes[one.from]} to ${stage.lanes[one.to]}: ${one.text}${one.lost ? " (lost)" : ""}`;
}

function options(run, stage, width, height) {
  const lanes = stage.lanes;
  const tall = Math.min(Math.max((height - HEAD - 14) / stage.rows, 17), 28);
  const last = lanes.length - 1;
  const right = Math.min(175, width / 4);
  const left = Math.min(88, width / 5);
  const letters = Math.floor((width - left - right) / Math.max(last, 1) / 6.6);
  const marks = stage.items.filter((one) => one.kind === "mark");
  const messages = stage.items.filter((one) => one.kind === "message");
  const solid = messages.filter((one) => !one.ghost);
  const times = stage.items.filter((one, index) => index === 0 || stage.items[index - 1].time !== one.time);
  const href = (one) => (one.ghost || one.event === undefined || one.event < 0 ? null : run.link("events", one.event));
  const cut = (text, most) => (text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text);
  const losing = marks.filter((one) => one.losing);
  const target = (one) => (one.lost ? (one.from + one.to) / 2 : one.to);
  const arrow = (data, stroke, dash) =>
    Plot.link(data, {
      x1: "from", x2: target, y1: "sent_row", y2: "row",
      stroke, strokeWidth: dash ? 1.4 : 1.8, strokeDasharray: dash, markerEnd: "arrow",
      insetStart: 4, insetEnd: 4,
    });
  const label = (one) => cut(one.text + (one.held ? ` (held ${lasting(one.held)})` : one.lost ? ": lost" : ""),
    letters * Math.max(Math.abs(one.to - one.from), 1) - 3);
  const middle = { x: (one) => (one.from + target(one)) / 2, y: (one) => (one.sent_row === one.row ? one.row - 0.34 : one.row + 0.02), text: label, href };
  return {
    height: HEAD + stage.rows * tall + 14,
    marginLeft: left, marginRight: right, marginTop: HEAD, marginBottom: 8,
    x: { domain: [0, Math.max(last, 1)], axis: null },
    y: { domain: [-0.5, stage.rows - 0.2], axis: null, reverse: true },
    marks: [
      Plot.ruleX(lanes.map((_, index) => index), { stroke: "var(--line)", strokeWidth: 1.5 }),
      Plot.rect(losing, { x1: -0.1, x2: Math.max(last, 1) + 0.1, insetRight: -right + 12, y1: (one) => one.row - 0.5, y2: (one) => one.row + 0.5, fill: "var(--lost)", fillOpacity: 0.6, rx: 4 }),
      Plot.text(lanes.map((text, index) => ({ text: cut(text.replace(/^(scheduler|controller|kubelet|API) /, "$1\n"), letters + 8), index })), {
        x: "index", y: -0.5, dy: -4, text: "text", lineAnchor: "bottom", fontWeight: 700, fontSize: 12, fill: "var(--text)",
      }),
      Plot.text(times, { x: 0, y: "row", dx: -16, text: (one) => seconds(one.time), textAnchor: "end", fill: "var(--faint)", fontSize: 11 }),
      arrow(messages.filter((one) => one.ghost), "var(--faint)", "2 4"),
      arrow(solid.filter((one) => one.held || one.lost), "var(--held)", "7 4"),
      arrow(solid.filter((one) => !one.held && !one.lost), "var(--mark)"),
      Plot.text(messages, {
        ...middle, fontSize: 11.5, stroke: "var(--ground)", strokeWidth: 4,
        fill: (one) => (one.ghost ? "var(--faint)" : one.held || one.lost ? "var(--held)" : "var(--text)"),
        fontStyle: "normal",
      }),
      Plot.dot(marks.filter((one) => !one.bad), {
        x: "lane", y: "row", r: 5,
        fill: (one) => (one.ghost ? "var(--ground)" : "var(--mark)"), stroke: (one) => (one.ghost ? "var(--faint)" : "var(--mark)"),
      }),
      Plot.text(marks.filter((one) => one.bad), {
        x: "lane", y: "row", text: () => "✗", fontSize: 17, fontWeight: 700, stroke: "var(--ground)", strokeWidth: 3,
        fill: (one) => (one.ghost ? "var(--faint)" : "var(--bad)"),
      }),
      Plot.text(marks, {
        x: "lane", y: "row", dx: 11, textAnchor: "start", fontSize: 12, href, stroke: "var(--ground)", strokeWidth: 4,
        text: (one) => `${cut(one.text, (one.lane === last ? right / 6 : letters + (last ? 6 : 60)) - (one.losing ? 7 : 0))}${one.losing ? (one.bad ? " ◀ LOST" : " ◀ HERE") : ""}`,
        fill: (one) => (one.ghost ? "var(--faint)" : one.bad ? "var(--bad)" : "var(--text)"),
        fontWeight: 500,
      }),
    ],
  };
}
