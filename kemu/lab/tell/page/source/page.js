// The page: which view is shown, the navigation, the search field. An address is #/RUN/VIEW/ARGUMENT.

import { render } from "preact";
import { html } from "./parts.js";
import { follow } from "./live.js";
import { Run } from "./model.js";
import { drawTroubles } from "./views/troubles.js";
import { Attempts, title as attempts } from "./views/attempts.js";
import { Checks, title as checks } from "./views/checks.js";
import { Events, title as events } from "./views/events.js";
import { Finds, title as finds } from "./views/finds.js";
import { Nodes, title as nodes } from "./views/nodes.js";
import { Pods, title as pods } from "./views/pods.js";
import { Preemptions, title as preemptions } from "./views/preemptions.js";
import { Probability, title as probability } from "./views/probability.js";
import { Race, drawStages, title as race } from "./views/overview.js";
import { Queues, title as queues } from "./views/queues.js";
import { Search, title as search } from "./views/search.js";
import { Story, title as story } from "./views/story.js";
import { Sweep, title as sweep } from "./views/sweep.js";
import { Variants, title as variants } from "./views/variants.js";
import { Waiting, title as waiting } from "./views/waiting.js";
import { Watches, title as watches } from "./views/watches.js";

// By the name in the address, in the order of the navigation.
const VIEWS = {
  story: [story, Story],
  race: [race, Race],
  nodes: [nodes, Nodes],
  pods: [pods, Pods],
  waiting: [waiting, Waiting],
  queues: [queues, Queues],
  attempts: [attempts, Attempts],
  preemptions: [preemptions, Preemptions],
  watches: [watches, Watches],
  checks: [checks, Checks],
  events: [events, Events],
  variants: [variants, Variants],
  finds: [finds, Finds],
  sweep: [sweep, Sweep],
  decided: [probability, Probability],
  search: [search, Search],
};
// Views that not every page has.
const NEEDS = {
  search: () => false,
  variants: () => page.matrix,
  finds: () => page.search,
  sweep: () => page.sweep,
  race: () => runs.some((run) => run.summary.stage && run.summary.troubled),
  decided: () => runs.some((run) => run.summary.probability),
};

let page = null;
let runs = [];

export { live } from "./live.js";

export function start(data) {
  if (data.live) follow({ start: begin, update });
  else begin(data);
}

// `firsts`: as for update.
function begin(data, firsts = {}) {
  take(data);
  replaceFirsts(firsts);
  addEventListener("hashchange", () => show(true));
  show(false);
  document.documentElement.dataset.ready = "yes";
}

// New data of a run that goes on. `firsts`: the static HTML of the first screens, by run.
export function update(data, firsts = {}) {
  take(data);
  replaceFirsts(firsts);
  show(false);
}

function replaceFirsts(firsts) {
  for (const [index, text] of Object.entries(firsts)) {
    const section = document.querySelector(`section.first[data-run="${index}"]`);
    if (section && section.told !== text) replace(section, text);
  }
}

// Whoever reads it keeps their place: what was opened stays open, and drawn curves stay until they are drawn anew.
function replace(section, text) {
  const made = document.createElement("template");
  made.innerHTML = text;
  const opened = [...section.querySelectorAll("details")].map((one) => one.open);
  made.content.querySelectorAll("details").forEach((one, place) => { one.open = opened[place] ?? one.open; });
  for (const figure of made.content.querySelectorAll("figure")) {
    const drawn = section.querySelector(`figure.${figure.className}`);
    if (drawn) figure.replaceWith(drawn);
  }
  section.replaceChildren(made.content);
  section.told = text;
}

function take(data) {
  page = data;
  runs = data.runs.map((run, index) => new Run(run, index));
}

function has(view) {
  return view in VIEWS && (!NEEDS[view] || Boolean(NEEDS[view]()));
}

function address() {
  const [, run, view, ...rest] = location.hash.split("/");
  const index = runs[Number(run)] ? Number(run) : 0;
  // A sweep is about all of its runs.
  if (!view && page.sweep) return { run: runs[index], view: "sweep", argument: "" };
  const known = view === "search" || has(view) ? view : "overview";
  return { run: runs[index], view: known, argument: rest.join("/") };
}

function show(moved) {
  const { run, view, argument } = address();
  const first = document.getElementById("first");
  const place = document.getElementById("view");
  first.hidden = view !== "overview";
  place.hidden = view === "overview";
  render(html`<${Navigation} run=${run} view=${view} argument=${argument} />`, document.getElementById("nav"));
  if (runs.length > 1) render(html`<${Variant} run=${run} view=${view} />`, document.getElementById("variant"));
  if (view === "overview") {
    for (const section of first.querySelectorAll("section.first")) section.hidden = Number(section.dataset.run) !== run.index;
    render(null, place);
    drawStages(runs, first);
    drawTroubles(runs, first);
  } else {
    const [, View] = VIEWS[view];
    const whole = run.left_out && !["variants", "checks", "finds", "sweep"].includes(view);
    render(whole ? html`<p class="note">There was no room for this variant: run <code>kemu report</code> on its own folder.</p>`
      : html`<${View} key=${`${run.index}/${view}`} run=${run} page=${page} runs=${runs} argument=${argument} />`, place);
  }
  document.title = `${view === "overview" ? "" : `${VIEWS[view][0]}: `}${page.title}: kemu report`;
  if (moved && view !== "search") {
    if (!document.querySelector("tr.marked")) scrollTo(0, 0);
    document.getElementById("main").focus({ preventScroll: true });
  }
}

function Variant({ run, view }) {
  return html`<label>${page.search ? "Find" : "Variant"} <select onChange=${(event) => { location.hash = `#/${event.target.value}/${view}`; }}>
    ${runs.map((one) => html`<option value=${one.index} selected=${one.index === run.index}>${one.name || one.index}</option>`)}</select></label>`;
}

function Navigation({ run, view, argument }) {
  const names = Object.keys(VIEWS).filter(has);
  const item = (name, text) => html`<a href=${run.link(name)} aria-current=${name === view ? "page" : undefined}>${text}</a>`;
  const go = (event) => {
    event.preventDefault();
    location.hash = run.link("search", encodeURIComponent(event.target.elements.words.value));
  };
  return html`${item("overview", "Overview")}${names.map((name) => item(name, VIEWS[name][0]))}
    <form role="search" onSubmit=${go}><input name="words" type="search" aria-label="Search pods, nodes and events" placeholder="Search" defaultValue=${view === "search" ? decodeURIComponent(argument) : ""} /></form>`;
}
