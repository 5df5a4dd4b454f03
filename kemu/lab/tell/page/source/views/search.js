// Pods, nodes, lines of the story and events that have some words.

import { Event, Node, Pod, html } from "../parts.js";
import { rowsOf, seconds } from "../model.js";

export const title = "Search";

const MOST = 40;

export function Search({ run, argument }) {
  const words = decodeURIComponent(argument).toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return html`<h2>Search</h2><p class="note">Type in the field above.</p>`;
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  const pods = run.podsWhere((pod) => has(`pod ${run.podName(pod)} ${run.text(run.pods.fate[pod])}`));
  const nodes = rowsOf(run.nodes.names, (node) => has(`node ${run.nodes.names[node]}`));
  const lines = run.story.lines.filter((line) => has(`${line.who} ${line.what} ${line.why}`));
  const { events } = run;
  const rows = rowsOf(events.place, (row) => has(`${run.actorName(events.actor[row])} ${run.text(events.kind[row])} ${run.podName(events.pod[row])} ${run.text(events.detail[row])}`));
  const part = (one, many, found, show) => found.length > 0 && html`<h3>${found.length} ${found.length === 1 ? one : many}</h3><ul>${found.slice(0, MOST).map((which) => html`<li>${show(which)}</li>`)}</ul>
    ${found.length > MOST && html`<p class="note">and ${found.length - MOST} more</p>`}`;
  return html`<h2>Search: ${words.join(" ")}</h2>
    ${!pods.length && !nodes.length && !lines.length && !rows.length && html`<p class="note">Nothing has these words.</p>`}
    ${part("pod", "pods", pods, (pod) => html`<${Pod} run=${run} pod=${pod} /> ${run.text(run.pods.fate[pod])}`)}
    ${part("node", "nodes", nodes, (node) => html`<${Node} run=${run} node=${node} />`)}
    ${part("line of the story", "lines of the story", lines, (line) => html`<span class="when">${line.when}</span> <${Event} run=${run} place=${line.event}>${line.who} ${line.what}<//> <span class="why">${line.why}</span>`)}
    ${part("event", "events", rows, (row) => html`<a href=${run.link("events", events.place[row])}>${seconds(events.time[row])}</a> ${run.actorName(events.actor[row])} ${run.text(events.kind[row])} <${Pod} run=${run} pod=${events.pod[row]} /> ${run.text(events.detail[row])}`)}`;
}
