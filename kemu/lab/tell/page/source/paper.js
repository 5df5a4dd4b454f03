// The first screen on paper: whole, on one page of A4 or Letter. The browser lays a page out for print only once no
// script runs any more, so what holds for print holds for the screen while it is measured. Printed before its script
// runs, it has no curves, and the styles make it small.

const [WIDTH, HEIGHT] = [192, 259].map((mm) => (mm * 96) / 25.4);
// What both have between margins of 9 mm, less a little.
const SMALLEST = 0.74;
// 8.2 pt become 6 pt. What still does not fit is left out, line by line, and the page says so.
const LEVELS = 4;
const DRAWN = 0.85;
// Charts are drawn for that, and scaled.
const LEAST = 0.4;

const draws = new Set();
let restore = null;

// `draw` is called when the page goes on paper, and when it is back.
export function onPaper(draw) {
  draws.add(draw);
  return () => draws.delete(draw);
}

export function isOnPaper() {
  return restore !== null || matchMedia("print").matches;
}

addEventListener("beforeprint", () => {
  const undo = asPrinted();
  document.documentElement.dataset.paper = 0;
  restore = () => {
    document.body.removeAttribute("style");
    delete document.documentElement.dataset.paper;
    document.querySelectorAll(".left-out").forEach((one) => one.remove());
    undo();
  };
  if (!document.getElementById("first").hidden) document.body.style.width = `${WIDTH / DRAWN}px`;
  for (const draw of draws) draw();
  if (!document.getElementById("first").hidden) fit(document.body);
});

addEventListener("afterprint", () => {
  restore?.();
  restore = null;
  for (const draw of draws) draw();
});

// The styles for print count, those for small screens do not.
function asPrinted() {
  const changed = [];
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      const text = rule.media?.mediaText ?? "";
      if (text !== "print" && !text.includes("max-width")) continue;
      changed.push([rule, text]);
      rule.media.mediaText = text === "print" ? "all" : "not all";
    }
  }
  return () => changed.forEach(([rule, text]) => (rule.media.mediaText = text));
}

function fit(body) {
  for (let level = 0; level <= LEVELS; level++) {
    document.documentElement.dataset.paper = level;
    say();
    for (let zoom = 1; zoom >= (level === LEVELS ? LEAST : SMALLEST); zoom -= 0.02) {
      body.style.width = `${WIDTH / zoom}px`;
      if (body.getBoundingClientRect().height * zoom <= HEIGHT) {
        body.style.zoom = zoom;
        return;
      }
    }
  }
  body.style.zoom = LEAST;
}

// How many lines of each list are left out.
function say() {
  document.querySelectorAll(".left-out").forEach((one) => one.remove());
  for (const list of document.querySelectorAll("section.first:not([hidden]) :is(.short, .beside tbody)")) {
    const hidden = [...list.children].filter((one) => one.getClientRects().length === 0).length;
    if (!hidden || !list.getClientRects().length) continue;
    const told = document.createElement("p");
    told.className = "left-out note";
    told.textContent = `and ${hidden} more ${hidden === 1 ? "line" : "lines"}, which this page has on a screen`;
    (list.closest("table") ?? list).after(told);
  }
}
