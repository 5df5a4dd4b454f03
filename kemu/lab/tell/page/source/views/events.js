// Events of the run log. Sentences lead here, to the event from which they follow.

import { useLayoutEffect, useState } from "preact/hooks";
import { Filter, Node, Pod, Table, html } from "../parts.js";
import { rowsOf, seconds } from "../model.js";

export const title = "Events";

const AROUND = 20;

export function Events({ run, argument }) {
  const [filter, setFilter] = useState("");
  const place = argument === "" ? -1 : Number(argument);
  const row = place < 0 ? -1 : run.eventRow(place);
  useLayoutEffect(() => document.querySelector("tr.marked")?.scrollIntoView({ block: "center" }), [place]);
  const { events } = run;
  const wanted = filter.toLowerCase();
  const rows = wanted
    ? rowsOf(events.place, (one) => `${run.text(events.kind[one])} ${run.actorName(events.actor[one])} ${run.podName(events.pod[one])} ${run.nodeName(events.node[one])} ${run.text(events.detail[one])}`.toLowerCase().includes(wanted))
    : row >= 0 ? rowsOf(events.place).slice(Math.max(row - AROUND, 0), row + AROUND + 1) : rowsOf(events.place);
  const missing = place >= 0 && row < 0;
  return html`<h2>${row >= 0 && !wanted ? `Event ${place}` : "Events"}</h2>
    ${row >= 0 && !wanted && html`<p class="told"><b>${seconds(events.time[row])}</b> ${run.actorName(events.actor[row])} <code>${run.text(events.kind[row])}</code>
      ${" "}<${Pod} run=${run} pod=${events.pod[row]} /> <${Node} run=${run} node=${events.node[row]} /> ${run.text(events.detail[row])}</p>
      <p class="note">Those around it; <a href=${run.link("events")}>all ${events.place.length}</a> of ${events.of} in the log (what only checks need is left out).</p>`}
    ${missing && html`<p class="note">Event ${place} is not on this page; <code>kemu story</code> and the run log have it.</p>`}
    <${Filter} label="Only events with" value=${filter} onInput=${setFilter} />
    <${EventTable} run=${run} rows=${rows} marked=${row} />`;
}

export function EventTable({ run, rows, marked = -1 }) {
  const { events } = run;
  return html`<${Table} label="Events" rows=${rows} marked=${(row) => row === marked} columns=${[
    ["Event", (row) => html`<a href=${run.link("events", events.place[row])}>${events.place[row]}</a>`],
    ["Time", (row) => seconds(events.time[row])], ["Actor", (row) => run.actorName(events.actor[row])],
    ["Kind", (row) => run.text(events.kind[row])], ["Pod", (row) => html`<${Pod} run=${run} pod=${events.pod[row]} />`],
    ["Node", (row) => html`<${Node} run=${run} node=${events.node[row]} />`], ["Data", (row) => run.text(events.detail[row])],
  ]} />`;
}
