// What happened, line by line; each line leads to its event.

import { useState } from "preact/hooks";
import { Event, Filter, Pod, html } from "../parts.js";

export const title = "Story";

export function Story({ run }) {
  const [filter, setFilter] = useState("");
  const wanted = filter.toLowerCase();
  const lines = run.story.lines.filter((line) => `${line.who} ${line.what} ${line.why} ${line.kind}`.toLowerCase().includes(wanted));
  const left = Object.entries(run.story.left_out).map(([kind, count]) => `${count} ${kind}`).join(", ");
  return html`<h2>What happened</h2>
    <${Filter} label="Only lines with" value=${filter} onInput=${setFilter} />
    <ol class="story">${lines.map((line) => html`<li class=${line.tone}>
      <span class="when">${line.when}</span>
      <span class="who">${line.who}</span>
      <span class="what"><${Event} run=${run} place=${line.event}>${line.what}<//>
        ${line.why && html` <span class="why">${line.why}</span>`}
        ${line.pods.length > 0 && html` <span class="pods">${line.pods.map((pod) => html`<${Pod} run=${run} pod=${pod} /> `)}</span>`}
      </span></li>`)}</ol>
    ${left && html`<p class="note">Not told here: ${left}.</p>`}`;
}
