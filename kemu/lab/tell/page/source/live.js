// The page while the run goes on: events as they come, and the views anew as often as they can be made.

import { counted, duration } from "./model.js";

const LINES = 4;
const REFRESH_MS = 150;
// What other events tell, too, or only checks need.
const QUIET = /^(client|watch|store|api|cache|actor|lease)\.|^sched\.(queued|scores?)$|\.heartbeat$/;

// For whoever looks from outside: where the stream stands, and whether it ever lacked or repeated an event.
export const live = { run: 0, place: 0, events: 0, missing: 0, repeated: 0, skipped: 0, refreshed: 0, phase: "", lag: 0 };

export function follow({ start, update }) {
  const panel = new Panel();
  let page = null;
  let known = 0;
  let edition = 0;
  let caused = 0;
  let dirty = false;
  let busy = false;
  let source = null;

  async function refresh() {
    if (busy || (panel.paused && page)) return;
    busy = true;
    dirty = false;
    const begun = performance.now();
    try {
      const answer = await fetch(`data?known=${known}&edition=${edition}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const found = await answer.json();
      found.page.runs = found.page.runs.map((run, index) => run ?? page.runs[index]);
      ({ known, edition } = found.live);
      caused = found.live.state.caused;
      if (found.page.runs.length) show(found);
      else wait(found.live.state.search);
      live.refreshed = found.live.place;
      // It was made a moment ago, for somebody else.
      if (found.live.run !== live.run || found.live.place < live.place) dirty = source !== null;
      panel.state(found.live.state);
      if (!source) {
        panel.begin(found.page.runs[found.live.run]);
        listen(found.live);
      }
    } catch (error) {
      // The stream says what has happened to the server.
      dirty = true;
      if (!source) setTimeout(refresh, 500);
    }
    busy = false;
    // Whoever takes long to make or to show is asked less often.
    setTimeout(() => dirty && refresh(), Math.max(REFRESH_MS, 2 * (performance.now() - begun)));
  }

  function wait(search) {
    const text = search ? "Each way of failing is shown here as soon as it is small and explained." : "The run has not begun yet.";
    document.getElementById("first").innerHTML = `<p class="note">${text}</p>`;
  }

  function show({ page: data, firsts }) {
    const first = document.getElementById("first");
    if (page === null) first.replaceChildren();
    data.runs.forEach((run, index) => {
      if (first.querySelector(`section.first[data-run="${index}"]`)) return;
      const section = document.createElement("section");
      section.className = "first";
      section.dataset.run = index;
      section.hidden = index > 0;
      first.append(section);
    });
    const isFirst = page === null;
    page = data;
    if (isFirst) start(data, firsts);
    else update(data, firsts);
  }

  function changed() {
    dirty = true;
    if (!busy) refresh();
  }

  function listen({ run, place, offset }) {
    Object.assign(live, { run, place });
    source = new EventSource(`events?from=${run}.${place}.${offset}`);
    source.addEventListener("open", () => panel.lost(false));
    source.addEventListener("error", () => panel.lost(true));
    source.addEventListener("log", (message) => {
      const rows = JSON.parse(message.data);
      for (const row of rows) {
        if (row[0] > live.place) live.missing += row[0] - live.place;
        if (row[0] < live.place) live.repeated += 1;
        live.place = row[0] + 1;
      }
      live.events += rows.length;
      panel.log(rows);
      changed();
    });
    source.addEventListener("skip", (message) => {
      const { from, to } = JSON.parse(message.data);
      if (from >= 0) live.skipped += to - from;
      live.run = Number(message.lastEventId.split(".")[0]);
      live.place = to;
      changed();
    });
    source.addEventListener("run", (message) => {
      live.run = JSON.parse(message.data).run;
      live.place = 0;
      changed();
    });
    source.addEventListener("state", (message) => {
      const state = JSON.parse(message.data);
      const isNew = state.phase !== live.phase || state.run !== panel.known.run || state.edition !== edition;
      panel.state(state);
      if (isNew || state.events > live.refreshed || state.caused !== caused) changed();
    });
    source.addEventListener("bye", () => {
      source.close();
      panel.gone();
    });
  }

  panel.onResume = changed;
  refresh();
}

// The strip above the views.
class Panel {
  constructor() {
    this.rows = [];
    this.rates = [];
    this.known = { phase: "", run: 0 };
    this.paused = false;
    this.asked = false;
    const place = document.createElement("section");
    place.id = "live";
    place.setAttribute("aria-label", "Live");
    place.innerHTML = `<p><span role="status"></span> <span class="figures"></span>
      <button type="button" aria-pressed="false">Pause the views</button></p><ol aria-label="Latest events"></ol>`;
    document.getElementById("main").before(place);
    this.status = place.querySelector("[role=status]");
    this.figures = place.querySelector(".figures");
    this.list = place.querySelector("ol");
    this.button = place.querySelector("button");
    this.place = place;
    this.button.addEventListener("click", () => {
      this.paused = !this.paused;
      this.button.setAttribute("aria-pressed", String(this.paused));
      if (!this.paused) this.onResume();
    });
  }

  // With what the page knows already.
  begin(run) {
    if (!run?.events) return;
    const { place, time, actor, kind, pod, node } = run.events;
    const name = (row) => (pod[row] >= 0 ? run.strings[run.pods.name[pod[row]]] : node[row] >= 0 ? run.nodes.names[node[row]] : "");
    for (let row = Math.max(0, place.length - 3 * LINES); row < place.length; row++) {
      const told = [place[row], time[row], run.actors[actor[row]], run.strings[kind[row]], name(row), ""];
      if (!QUIET.test(told[3])) this.rows.push(told);
    }
    this.rows.splice(0, this.rows.length - LINES);
  }

  log(rows) {
    this.rates.push([performance.now(), rows.length]);
    for (const row of rows) if (!QUIET.test(row[3])) this.rows.push(row);
    this.rows.splice(0, this.rows.length - LINES);
    this.draw();
  }

  state(state) {
    this.known = state;
    live.phase = state.phase;
    this.draw();
  }

  lost(is) {
    this.isLost = is;
    this.draw();
  }

  gone() {
    this.isGone = true;
    this.draw();
  }

  draw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.paint();
    });
  }

  paint() {
    const { phase, text, run, runs, name, now_s, duration_s, pods, bound, events, search } = this.known;
    const isOver = phase !== "going on";
    const words = { over: "The run is over: ", interrupted: "The run was ", lost: "The run was lost: " };
    if (search) words.over = "The search is over: ";
    let status = isOver ? `${words[phase] ?? "Loading"}${text ?? ""}.` : (search?.status ?? "The run goes on.");
    if (this.isGone) status += " kemu has stopped serving; this page stays as it is.";
    else if (this.isLost) status += isOver ? " kemu has stopped serving; this page stays as it is." : " No connection: trying again.";
    if (this.status.textContent !== status) this.status.textContent = status;
    this.place.dataset.phase = this.isLost && !isOver ? "cut" : phase;
    const now = performance.now();
    this.rates = this.rates.filter(([time]) => now - time < 1000);
    const rate = this.rates.reduce((sum, [, count]) => sum + count, 0);
    const variant = runs > 1 ? `variant ${run + 1} of ${runs}${name ? ` (${name})` : ""} · ` : "";
    const clock = (value) => duration(Math.round((value ?? 0) * 1e6));
    const time = duration_s ? `${clock(now_s)} of ${clock(duration_s)}` : clock(now_s);
    const figures = search ? search.figures : `${variant}${time} · ${bound} of ${counted(pods ?? 0, "pod")} bound · ${counted(events ?? 0, "event")}${isOver ? "" : ` · ${rate}/s`}`;
    if (this.figures.textContent !== figures) this.figures.textContent = figures;
    this.button.hidden = isOver;
    if (isOver && this.paused) {
      this.paused = false;
      this.onResume();
    }
    this.list.hidden = isOver;
    if (isOver) return;
    const lines = search ? search.lines.map(found) : this.rows.map((row) => this.line(row));
    this.list.replaceChildren(...lines);
  }

  line([place, time, actor, kind, subject, note]) {
    const item = document.createElement("li");
    item.dataset.place = place;
    item.dataset.note = note;
    const parts = [["when", `${(time / 1e6).toFixed(3)} s`], ["who", actor], ["kind", kind], ["subject", subject], ["why", note]];
    for (const [name, text] of parts) {
      const span = document.createElement("span");
      span.className = name;
      span.textContent = text;
      item.append(span);
    }
    return item;
  }
}

function found(text) {
  const item = document.createElement("li");
  item.className = "found";
  item.textContent = text;
  return item;
}
