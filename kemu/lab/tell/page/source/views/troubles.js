// Four curves of the first screen: memory of nodes, what was taken away, pods without a home, the debt of budgets.

import { render } from "preact";
import * as Plot from "@observablehq/plot";
import { Chart, html } from "../parts.js";
import { memoryOn } from "./nodes.js";
import { duration, rowsOf } from "../model.js";

const MOST_NODES = 60;
const POINTS = 240;
const TAKEN = { evicted: ["evicted", "var(--c2)"], preempted: ["preempted", "var(--c4)"], oomKilled: ["out of memory", "var(--bad)"], rejected: ["rejected", "var(--c7)"] };

export function drawTroubles(runs, root) {
  for (const place of root.querySelectorAll("figure.troubles")) {
    const run = runs[Number(place.dataset.run)];
    // A hidden section has no width yet.
    if (place.clientWidth) render(html`<${Curves} run=${run} />`, place);
  }
}

function Curves({ run }) {
  const unit = run.end > 3 * 3600e6 ? [3600e6, "h"] : run.end > 300e6 ? [60e6, "min"] : [1e6, "s"];
  const shared = { run, unit };
  return html`<div class="curves-grid">
    <${Memory} ...${shared} /><${Taken} ...${shared} /><${Homeless} ...${shared} /><${Debt} ...${shared} />
  </div>`;
}

// `told`: the curve in words, which stand above it. `marks`: of Plot, x in micros divided by the unit.
function Curve({ run, unit, title, told, empty, y, marks, last }) {
  // Roots of one time stand side by side.
  const before = new Map();
  const roots = (run.summary.roots ?? []).map((one) => {
    before.set(one.at, (before.get(one.at) ?? -1) + 1);
    return { ...one, place: before.get(one.at) };
  });
  const at = (micros) => micros / unit[0];
  return html`<div class="curve"><h3>${title} <small>${told}</small></h3>
    ${empty ? null : html`<${Chart} has=${[run]} label=${`${title} over time: ${typeof told === "string" ? told : title}`} make=${(width, onPaper) => ({
      height: onPaper ? 112 : 136, marginLeft: 40, marginRight: 22, marginTop: 16, marginBottom: 26,
      x: { domain: [0, at(run.end)], label: null, ticks: 6, tickFormat: (value) => `${value} ${unit[1]}`, tickSize: 3 },
      y: { label: null, grid: true, zero: true, tickSize: 0, ...y },
      marks: [
        ...marks(at),
        Plot.ruleY([y.domain?.[0] ?? 0], { stroke: "var(--faint)" }),
        Plot.ruleX(roots, { x: (one) => at(one.at), stroke: (one) => `var(--c${one.number})`, strokeWidth: 1.6, strokeDasharray: "5 3" }),
        ...roots.flatMap((root) => badge(root, at)),
      ],
    })} />`}
  </div>`;
}

function badge(root, at) {
  const place = { x: () => at(root.at), frameAnchor: "top", dx: 17 * root.place, dy: -8 };
  return [
    Plot.dot([root], { ...place, r: 7.5, fill: `var(--c${root.number})` }),
    Plot.text([root], { ...place, text: () => String(root.number), fontSize: 10.5, fontWeight: 700, lineAnchor: "middle", fill: "var(--on-badge)", title: () => root.what }),
  ];
}

// An axis of whole numbers.
function whole(most) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((one) => most / one <= 4) ?? 10 ** Math.ceil(Math.log10(most / 4));
  const top = Math.ceil(most / step) * step;
  return { domain: [0, top], tickFormat: String, ticks: Array.from({ length: top / step + 1 }, (_, index) => index * step) };
}

function steps(changes, end) {
  const found = [{ time: 0, value: 0 }];
  let value = 0;
  for (const [time, by] of [...changes].sort((a, b) => a[0] - b[0])) {
    value += by;
    if (found.at(-1).time === time) found.at(-1).value = value;
    else found.push({ time, value });
  }
  found.push({ time: end, value });
  return found;
}

function area(at, data, colour) {
  const places = { x: (one) => at(one.time), y: "value", curve: "step-after" };
  return [Plot.areaY(data, { ...places, fill: colour, fillOpacity: 0.22 }), Plot.lineY(data, { ...places, stroke: colour, strokeWidth: 1.8 })];
}

function Memory({ run, unit }) {
  const { names } = run.nodes;
  const lines = names.map((name, node) => memoryOn(run, node)).filter((one) => one.points.length > 1);
  const title = lines.some((one) => one.used) ? "Memory used on nodes" : "Memory requested on nodes";
  if (!lines.length) return html`<${Curve} run=${run} unit=${unit} title=${title} told="not known" empty />`;
  const times = Array.from({ length: POINTS + 1 }, (_, index) => (run.end * index) / POINTS);
  const sampled = lines.map((one) => at(one.points, times));
  const fullest = times.map((time, index) => {
    let most = 0;
    let node = 0;
    sampled.forEach((shares, line) => {
      if (shares[index] > most) [most, node] = [shares[index], line];
    });
    return { time, share: most, node };
  });
  const peak = fullest.reduce((most, one) => (one.share > most.share ? one : most));
  const full = sampled.filter((shares) => shares.some((share) => share >= 0.95)).length;
  const told = `${lines[peak.node].name} is fullest: ${Math.round(peak.share * 100)} % at ${duration(peak.time)}${full > 1 ? `; ${full} of ${lines.length} nodes come above 95 %` : ""}`;
  const single = lines.length > MOST_NODES ? [] : sampled.flatMap((shares, line) => times.map((time, index) => ({ time, share: shares[index], line })));
  return html`<${Curve} run=${run} unit=${unit} title=${title} told=${told} y=${{ domain: [0, Math.max(1, peak.share * 1.05)], ticks: [0, 0.5, 1], tickFormat: "%" }} marks=${(at) => [
    Plot.line(single, { x: (one) => at(one.time), y: "share", z: "line", stroke: "var(--c1)", strokeOpacity: lines.length > 12 ? 0.25 : 0.45, strokeWidth: 1 }),
    Plot.line(fullest, { x: (one) => at(one.time), y: "share", stroke: "var(--c1)", strokeWidth: 2.2 }),
    Plot.ruleY([1], { stroke: "var(--bad)", strokeDasharray: "2 3" }),
    Plot.text([1], { y: 1, frameAnchor: "left", text: () => "all that pods may have", dx: 4, dy: 8, textAnchor: "start", fill: "var(--faint)", stroke: "var(--ground)", strokeWidth: 3 }),
  ]} />`;
}

// The most since the time before, so that no peak is missing.
function at(points, times) {
  let place = 0;
  return times.map((time) => {
    let most = points[place].time <= time ? points[place].share : 0;
    while (place + 1 < points.length && points[place + 1].time <= time) most = Math.max(most, points[++place].share);
    return most;
  });
}

function Taken({ run, unit }) {
  const { marks } = run.nodes;
  const sorts = Object.keys(TAKEN).filter((what) => marks.what.some((index) => run.text(index) === what));
  const lines = sorts.map((what) => ({ what, data: steps(rowsOf(marks.what, (row) => run.text(marks.what[row]) === what).map((row) => [marks.time[row], 1]), run.end) }));
  const told = lines.map((one) => `${one.data.at(-1).value} ${TAKEN[one.what][0]}`).join(", ") || "none";
  const seen = (run.summary.seen ?? []).filter((one) => one.at >= 0 && one.at <= run.end);
  return html`<${Curve} run=${run} unit=${unit} title=${sorts.includes("preempted") ? "Evictions and preemptions" : "Evictions"} told=${seen.length ? html`${told}; <span class="mark">▲</span> the cluster warned` : told} empty=${!lines.length} y=${whole(Math.max(...lines.map((one) => one.data.at(-1).value), 1) * (seen.length ? 1.25 : 1))} marks=${(at) => [
    ...lines.flatMap((one) => area(at, one.data, TAKEN[one.what][1])),
    ...lines.map((one) => Plot.text([one.data.at(-1)], { x: (last) => at(last.time), y: "value", text: () => TAKEN[one.what][0], textAnchor: "end", dx: -3, dy: -7, fill: TAKEN[one.what][1], stroke: "var(--ground)", strokeWidth: 3, fontWeight: 600 })),
    Plot.dot(seen, { x: (one) => at(one.at), frameAnchor: "top", dy: -7, symbol: "triangle", r: 4, fill: "var(--held)", title: (one) => `the cluster said: ${one.text}` }),
  ]} />`;
}

function Homeless({ run, unit }) {
  const { pods } = run;
  const changes = run.podsWhere((pod) => pods.waited[pod] >= 0 && pods.created[pod] >= 0).flatMap((pod) => {
    const ends = [pods.bound[pod], pods.gone[pod]].filter((time) => time >= 0);
    return [[pods.created[pod], 1], ...(ends.length ? [[Math.min(...ends), -1]] : [])];
  });
  // Pods that found a node at once were never without a home.
  const data = steps(changes, run.end).filter((one, index, all) => index + 1 === all.length || all[index + 1].time - one.time > run.end / 4000 || one.value === 0);
  const most = Math.max(...data.map((one) => one.value));
  const end = data.at(-1).value;
  const told = most ? `${most} at most, ${end || "none"} at the end` : "none";
  return html`<${Curve} run=${run} unit=${unit} title="Pods without a home" told=${told} empty=${!most} y=${whole(most)} marks=${(at) => area(at, data, "var(--c3)")} />`;
}

function Debt({ run, unit }) {
  const { budgets } = run;
  const data = steps(budgets.time.map((time, row) => [time, budgets.by[row]]), run.end);
  const most = Math.max(...data.map((one) => one.value));
  const names = [...new Set(budgets.budget.map((index) => run.text(index)))];
  const told = most ? `${most} ${most === 1 ? "pod" : "pods"} missing at most: ${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}` : budgets.count ? "none" : "there is no disruption budget";
  return html`<${Curve} run=${run} unit=${unit} title="Debt of disruption budgets" told=${told} empty=${!most} y=${whole(most)} marks=${(at) => area(at, data, "var(--c4)")} />`;
}
