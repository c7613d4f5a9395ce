"use strict";
// What the page does: cards of plots, choice by name, the pair plot, and sorting of the table.

const page = JSON.parse(document.getElementById("data").textContent);
page.ticks = unpack(page.divergent);
const byName = new Map();
page.elements.forEach((e, k) => {
  if (!byName.has(e.n)) byName.set(e.n, k);
});
const $ = (id) => document.getElementById(id);

function add(parent, tag, of, text) {
  const e = document.createElement(tag);
  if (of) e.className = of;
  if (text !== undefined) e.textContent = text;
  parent.appendChild(e);
  return e;
}

// card shows the plots of one element.
function card(parent, e) {
  const box = add(parent, "article", e.b ? "card flagged" : "card");
  box.dataset.name = e.n;
  const head = add(box, "div", "line");
  add(head, "h3", "", e.n);
  add(head, "span", "", e.f);
  if (e.w) add(box, "p", "warn", e.w);
  const plots = add(box, "div", "plots");
  tracePlot(plots, e, page);
  rankPlot(plots, e);
  densityPlot(plots, e);
  autoPlot(plots, e, page);
}

function legend() {
  const shown = page.lengths.slice(0, 16);
  shown.forEach((_, c) => {
    const item = add($("legend"), "span");
    const svg = make("svg", { viewBox: "0 0 34 10", "aria-hidden": "true" }, item);
    make("path", { d: "M0 5H34", stroke: colour(c), "stroke-width": 2.5, "stroke-dasharray": dash(c) }, svg);
    item.append("chain " + c);
  });
  if (page.lengths.length > shown.length)
    add(
      $("legend"),
      "span",
      "",
      `later chains repeat the colours; each plot shows the 16 of ${page.lengths.length} chains whose means are ` +
        "furthest from the others",
    );
}

// choose shows the element that the address names after #p=.
function choose() {
  const hash = location.hash;
  if (!hash.startsWith("#p=")) return;
  let name = hash.slice(3);
  try {
    name = decodeURIComponent(name);
  } catch {
    /* as it is */
  }
  $("selected").replaceChildren();
  const k = byName.get(name);
  if (k === undefined) {
    add($("selected"), "p", "note", "There are no plots of " + name + ".");
    return;
  }
  $("choose").value = name;
  card($("selected"), page.elements[k]);
  $("legend").scrollIntoView();
}

function chooser() {
  for (const e of page.elements) add($("names"), "option").value = e.n;
  $("choose").addEventListener("change", (event) => {
    if (byName.has(event.target.value)) location.hash = "p=" + encodeURIComponent(event.target.value);
  });
  addEventListener("hashchange", choose);
}

// pairs draws the lower triangle of scatter plots, densities on the diagonal.
function pairs() {
  const n = page.pair.length,
    size = 190,
    gap = 40,
    div = [...page.pairdraws].map((c) => c === "1"),
    bad = div.filter((b) => b).length;
  $("pairplot").replaceChildren();
  $("pairnote").textContent =
    n < 2
      ? "There are not two elements that vary."
      : `${div.length} of ${page.lengths.reduce((a, b) => a + b, 0)} draws` +
        (bad ? `; crosses are ${bad} of those that diverged.` : ".");
  if (n < 2) return;
  const w = gap + n * size + 10,
    svg = make(
      "svg",
      { viewBox: `0 0 ${w} ${n * size + 12}`, role: "img", "aria-label": "pairs", "data-plot": "pair" },
      $("pairplot"),
    );
  svg.style.maxWidth = 1.25 * w + "px";
  const values = page.pair.map((k) => unpack(page.elements[k].p)),
    pad = (t) => 0.04 + 0.92 * t;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      const x0 = gap + j * size + 6,
        y0 = i * size + 6,
        s = size - 16;
      const cell = make("g", { transform: `translate(${x0} ${y0})`, "data-cell": i + "," + j }, svg);
      const ex = page.elements[page.pair[j]],
        ey = page.elements[page.pair[i]];
      make("rect", { width: s, height: s, class: "axis" }, cell);
      if (i === j) histogram(cell, values[i], s, ex.n + less(offset(ex.pl, ex.ph)));
      else scatter(cell, values[j], values[i], div, s, pad);
      if (i === n - 1) axis(cell, ex, s, pad, true);
      if (j === 0 && i > 0) axis(cell, ey, s, pad, false);
    }
  }
}

function scatter(cell, xs, ys, div, s, pad) {
  let dots = "",
    crosses = "";
  for (let k = 0; k < xs.length; k++) {
    if (isNaN(xs[k]) || isNaN(ys[k])) continue;
    const x = (pad(xs[k]) * s).toFixed(1),
      y = ((1 - pad(ys[k])) * s).toFixed(1);
    if (div[k]) crosses += `M${x} ${y}m-3-3l6 6m0-6l-6 6`;
    else dots += `M${x} ${y}m-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0`;
  }
  make("path", { d: dots, class: "point" }, cell);
  if (crosses) make("path", { d: crosses, class: "diverged", "data-divergences": "1" }, cell);
}

function histogram(cell, xs, s, name) {
  const bins = 20,
    counts = new Array(bins).fill(0);
  for (const v of xs) if (!isNaN(v)) counts[Math.min(bins - 1, Math.floor(v * bins))]++;
  const top = Math.max(1, ...counts);
  let d = "";
  counts.forEach((n, b) => {
    if (n) d += `M${s * (0.04 + (0.92 * b) / bins)} ${s}v${(-n / top) * s * 0.78}h${(0.92 * s) / bins}V${s}Z`;
  });
  make("path", { d, class: "point" }, cell);
  make("text", { x: 5, y: 14, class: "title" }, cell, name.length > 26 ? name.slice(0, 25) + "…" : name);
}

function axis(cell, e, s, pad, across) {
  for (const [t, text] of ticks(e.pl, e.ph, 3)) {
    if (across)
      make("text", { x: Math.min(Math.max(pad(t) * s, 12), s - 12), y: s + 14, "text-anchor": "middle" }, cell, text);
    else make("text", { x: -4, y: (1 - pad(t)) * s + 4, "text-anchor": "end" }, cell, text);
  }
}

// pairTools lets the reader choose the elements of the pair plot.
function pairTools() {
  for (let k = 0; k < 5 && page.elements.length > 1; k++) {
    const input = add($("pairtools"), "input");
    input.setAttribute("list", "names");
    input.setAttribute("aria-label", "element " + (k + 1) + " of the pair plot");
    input.placeholder = "name of an element";
    input.value = k < page.pair.length ? page.elements[page.pair[k]].n : "";
    input.addEventListener("change", () => {
      const chosen = [...$("pairtools").children].map((i) => byName.get(i.value)).filter((i) => i !== undefined);
      page.pair = [...new Set(chosen)];
      pairs();
    });
  }
}

// sorting orders the rows by a column; a second click turns the order. What is not a number comes last.
function sorting() {
  const table = $("table"),
    heads = [...table.tHead.rows[0].cells],
    body = table.tBodies[0];
  const number = (text) => (text === "inf" ? Infinity : text === "-inf" ? -Infinity : parseFloat(text));
  heads.forEach((head, column) =>
    head.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && column === 0);
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].map((row, k) => [
        row,
        column === 0 ? row.cells[0].textContent : number(row.cells[column].textContent),
        k,
      ]);
      rows.sort((a, b) => {
        if (column === 0) return (up ? 1 : -1) * a[1].localeCompare(b[1], undefined, { numeric: true });
        if (isNaN(a[1]) || isNaN(b[1])) return isNaN(a[1]) - isNaN(b[1]) || a[2] - b[2];
        return (up ? a[1] - b[1] : b[1] - a[1]) || a[2] - b[2];
      });
      body.append(...rows.map((r) => r[0]));
    }),
  );
  $("filter").addEventListener("input", (event) => {
    for (const row of body.rows) row.hidden = !row.cells[0].textContent.includes(event.target.value);
  });
}

legend();
chooser();
for (const e of page.elements.slice(0, page.details)) card($("cards"), e);
pairTools();
pairs();
if (page.energy) {
  add($("energy"), "p", "note", "E-BFMI by chain: " + page.energy.b + ".");
  energyPlot($("energy"), page.energy);
}
if (page.forest) forestPlot($("forest"), page.forest);
for (const c of page.checks ?? []) checkPlot($("checkplots"), c);
sorting();
choose();
