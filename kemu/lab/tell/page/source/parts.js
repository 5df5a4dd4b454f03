// What views are made of: charts, tables, links, fields.

import { h } from "preact";
import htm from "htm";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import * as Plot from "@observablehq/plot";
import { isOnPaper, onPaper } from "./paper.js";

export const html = htm.bind(h);

// Okabe and Ito's colours, told apart by the colour-blind; the styles have them for light and for dark.
export const COLOURS = ["var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)", "var(--c7)"];
export const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"];

export function colours(domain) {
  return { type: "ordinal", domain, range: domain.map((_, index) => COLOURS[index % COLOURS.length]) };
}

// `make` is given the width, and whether it is on paper; returns options of Plot.plot. `has` is what the chart depends on.
export function Chart({ make, label, has = [], linked = false }) {
  const place = useRef();
  useLayoutEffect(() => {
    const draw = () => {
      const width = Math.max(place.current.clientWidth, 300);
      const figure = Plot.plot({ width, style: { background: "none", overflow: "visible" }, ...make(width, isOnPaper()) });
      for (const svg of figure.matches("svg") ? [figure] : figure.querySelectorAll("svg")) {
        if (linked) svg.setAttribute("role", "group");
        else svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", label);
      }
      // Plot names the kinds of marks, which says nothing to people; a link without a text takes its title as its name.
      for (const group of figure.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label");
      for (const link of figure.querySelectorAll("a")) {
        const name = link.querySelector("title")?.textContent;
        if (name) link.setAttribute("aria-label", name);
      }
      place.current.replaceChildren(figure);
    };
    draw();
    let before = place.current.clientWidth;
    const observer = new ResizeObserver(() => {
      if (place.current && Math.abs(place.current.clientWidth - before) > 8) {
        before = place.current.clientWidth;
        draw();
      }
    });
    observer.observe(place.current);
    const leave = onPaper(draw);
    return () => {
      observer.disconnect();
      leave();
    };
  }, has);
  return html`<div class="chart" ref=${place}></div>`;
}

const STEP = 50;

// `columns`: pairs of a heading and what makes a cell of a row.
export function Table({ label, columns, rows, marked }) {
  const [shown, show] = useState(STEP);
  if (!rows.length) return html`<p class="note">Nothing.</p>`;
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0">
    <table>
      <thead><tr>${columns.map(([heading]) => html`<th scope="col">${heading}</th>`)}</tr></thead>
      <tbody>${rows.slice(0, shown).map(
        (row) => html`<tr class=${marked?.(row) ? "marked" : ""}>${columns.map(([, cell]) => html`<td>${cell(row)}</td>`)}</tr>`,
      )}</tbody>
    </table>
    ${rows.length > shown && html`<p><button type="button" onClick=${() => show(shown + 5 * STEP)}>
      Show more: ${rows.length - shown} of ${rows.length} are left</button></p>`}
  </div>`;
}

export function Pod({ run, pod }) {
  return pod < 0 ? null : html`<a class="pod" href=${run.link("pods", pod)}>${run.podName(pod)}</a>`;
}

export function Node({ run, node }) {
  return node < 0 ? null : html`<a class="node" href=${run.link("nodes", encodeURIComponent(run.nodeName(node)))}>${run.nodeName(node)}</a>`;
}

export function Event({ run, place, children }) {
  return place < 0 ? html`<span>${children}</span>` : html`<a href=${run.link("events", place)}>${children}</a>`;
}

export function Filter({ label, value, onInput }) {
  return html`<label class="filter">${label} <input type="search" value=${value} onInput=${(event) => onInput(event.target.value)} /></label>`;
}

export function Choice({ label, value, options, onInput }) {
  return html`<label class="filter">${label} <select value=${value} onChange=${(event) => onInput(event.target.value)}>
    ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
  </select></label>`;
}

// A sign beside the colour: what holds, what fails, what nobody could judge.
export function Sign({ holds }) {
  const [sign, text, tone] = holds === true ? ["✓", "holds", "good"] : holds === false ? ["✗", "fails", "bad"] : ["?", "unknown", "plain"];
  return html`<span class=${`sign ${tone}`}>${sign} ${text}</span>`;
}
