"use strict";
// Plots of the numbers in the page, as SVG. Colours are classes and variables of the style, so that they follow light
// and dark.

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const dashes = ["", "7 3", "2 2", "8 3 2 3"];
const colour = (c) => "var(--c" + (c % 8) + ")";
const dash = (c) => dashes[Math.floor(c / 2) % 4]; // neighbours in colour differ in dashes too

// unpack turns two characters each into numbers from 0 to 1; gaps are NaN.
function unpack(text) {
  const out = [];
  for (let i = 0; i + 1 < text.length; i += 2) {
    const k = alphabet.indexOf(text[i]) * 64 + alphabet.indexOf(text[i + 1]);
    out.push(k === 4095 ? NaN : k / 4094);
  }
  return out;
}

function make(tag, attributes, parent, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
}

// between is the number at t of [low, high]; it does not overflow.
const between = (low, high, t) => low * (1 - t) + high * t;

// offset is a round number to take off numbers of [low, high] that differ in their sixth digit or later only, else 0.
function offset(low, high) {
  const width = high - low,
    big = Math.max(Math.abs(low), Math.abs(high));
  if (!(width > 0) || !isFinite(width) || big / width < 1e4) return 0;
  const unit = Math.pow(10, Math.ceil(Math.log10(width)) + 1);
  return Math.round((low / 2 + high / 2) / unit) * unit;
}

// less says in words what was taken off.
const less = (o) => (o === 0 ? "" : (o > 0 ? " − " : " + ") + Number(Math.abs(o).toPrecision(12)));

// ticks are round numbers in [low, high], as [place from 0 to 1, text].
function ticks(low, high, most) {
  const width = high - low,
    o = offset(low, high);
  const ends = [
    [0, show(low, Math.abs(low) / 100)],
    [1, show(high, Math.abs(high) / 100)],
  ];
  if (!(width > 0)) return [[0.5, show(low, Math.abs(low) / 1000)]];
  if (!isFinite(width)) return ends;
  const power = Math.pow(10, Math.floor(Math.log10(width)));
  for (const k of [0.1, 0.2, 0.5, 1, 2, 5]) {
    // the finest step that fits
    const step = power * k;
    if (!(step > 0) || width / step > most + (k > 0.5 ? 1 : 0)) continue;
    const out = [];
    for (let i = Math.ceil((low - o) / step); i * step <= high - o; i++)
      out.push([(i * step - (low - o)) / width, show(i * step, step)]);
    return out.length < 2 ? ends : out;
  }
  return ends;
}

// show is a number with the digits that a step needs.
function show(v, step) {
  if (v === 0) return "0";
  const a = Math.abs(v);
  if (a >= 1e5 || a < 1e-3)
    return v
      .toExponential(Math.max(0, Math.min(6, Math.floor(Math.log10(a)) - Math.floor(Math.log10(step || a)))))
      .replace("e+", "e");
  return v.toFixed(Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9))));
}

// frame is an empty plot. o: kind, title, w, h, x: [low, high], y: [low, high] (null for no ticks), left, label.
function frame(parent, o) {
  const rows = o.y ? ticks(o.y[0], o.y[1], 5) : [];
  const w = o.w,
    h = o.h,
    m = { l: Math.max(o.left ?? 34, ...rows.map((t) => 6.4 * t[1].length + 9)), r: 8, t: 18, b: 20 };
  const svg = make("svg", {
    viewBox: `0 0 ${w} ${h}`,
    role: "img",
    "aria-label": `${o.title}${o.label ? " of " + o.label : ""}`,
    "data-plot": o.kind,
  });
  const f = {
    svg,
    X: (t) => m.l + t * (w - m.l - m.r),
    Y: (t) => h - m.b - t * (h - m.t - m.b),
    top: m.t,
    bottom: h - m.b,
    left: m.l,
    right: w - m.r,
  };
  make("text", { x: m.l, y: 11, class: "title" }, svg, o.title);
  for (const [t, text] of o.x ? ticks(o.x[0], o.x[1], Math.max(2, Math.floor((w - m.l) / 62))) : []) {
    make("line", { x1: f.X(t), x2: f.X(t), y1: f.bottom, y2: f.bottom + 3, class: "axis" }, svg);
    make(
      "text",
      { x: f.X(t), y: h - 5, "text-anchor": t > 0.94 ? "end" : t < 0.06 && m.l < 20 ? "start" : "middle" },
      svg,
      text,
    );
  }
  for (const [t, text] of rows) {
    make("line", { x1: f.left, x2: f.right, y1: f.Y(t), y2: f.Y(t), class: "grid" }, svg);
    make("text", { x: m.l - 4, y: f.Y(t) + 4, "text-anchor": "end" }, svg, text);
  }
  make("path", { d: `M${f.left} ${f.top}V${f.bottom}H${f.right}`, class: "axis" }, svg);
  parent.appendChild(svg);
  return f;
}

function empty(parent, kind, title, w, why) {
  const f = frame(parent, { kind, title, w, h: 170, left: 12 });
  f.svg.setAttribute("data-empty", "1");
  make("text", { x: w / 2, y: 95, "text-anchor": "middle" }, f.svg, why);
}

// path joins points; a NaN is a gap, and a point between gaps a dot.
function path(xs, ys, X, Y) {
  let d = "",
    open = false;
  for (let i = 0; i < ys.length; i++) {
    if (isNaN(ys[i])) {
      open = false;
      continue;
    }
    d += (open ? "L" : "M") + X(xs[i]).toFixed(1) + " " + Y(ys[i]).toFixed(1);
    if (!open && (i + 1 === ys.length || isNaN(ys[i + 1]))) d += "h.5";
    open = true;
  }
  return d;
}

const line = (f, c, d, more) => make("path", { d, fill: "none", stroke: colour(c), ...more }, f.svg);

const none = (e) => e.t.every((t) => unpack(t).every(isNaN));
const still = (e) => (none(e) ? "no finite draws" : "the draws do not vary");

function tracePlot(parent, e, page) {
  const longest = Math.max(...page.lengths),
    pad = 0.04;
  if (none(e)) return empty(parent, "trace", "trace", 520, still(e));
  const width = e.hi - e.lo,
    room = isFinite(width) ? width * pad : 0;
  const f = frame(parent, {
    kind: "trace",
    title: "trace" + less(offset(e.lo, e.hi)),
    label: e.n,
    w: 520,
    h: 170,
    x: [0, longest],
    y: [e.lo - room, e.hi + room],
  });
  const Y = (v) => f.Y(room ? (v + pad) / (1 + 2 * pad) : v);
  // Chains that move little are drawn last, so that one that stood still is seen.
  const spread = (ys) => {
    const v = ys.filter((y) => !isNaN(y));
    return v.length ? Math.max(...v) - Math.min(...v) : 0;
  };
  const all = e.t.map((text, k) => [unpack(text), k]).sort((a, b) => spread(b[0]) - spread(a[0]) || a[1] - b[1]);
  all.forEach(([ys, k]) => {
    const share = page.lengths[e.c[k]] / longest;
    line(
      f,
      e.c[k],
      path(
        ys.map((_, i) => ((i + 0.5) / ys.length) * share),
        ys,
        f.X,
        Y,
      ),
      spread(ys) < 0.01 ? { "stroke-width": 2.2 } : { "stroke-width": 0.9, "stroke-opacity": 0.75 },
    );
  });
  let d = "";
  for (const t of page.ticks) d += `M${f.X(t).toFixed(1)} ${f.bottom - 7}V${f.bottom}`;
  if (d) make("path", { d, class: "mark", "stroke-width": 0.9, "data-divergences": page.ticks.length }, f.svg);
}

function rankPlot(parent, e) {
  if (!e.r) return empty(parent, "rank", "ranks", 320, still(e));
  if (e.c.length < 2) return empty(parent, "rank", "ranks", 320, "there is a single chain");
  const f = frame(parent, {
    kind: "rank",
    title: "ranks of each chain",
    label: e.n,
    w: 320,
    h: 170,
    left: 30,
    x: [0, e.e.reduce((a, b) => a + b, 0) * e.r[0].length],
  });
  const rows = e.r.length,
    height = (f.bottom - f.top) / rows,
    bins = e.r[0].length;
  e.r.forEach((counts, k) => {
    const base = f.bottom - (rows - 1 - k) * height,
      top = Math.max(1.5 * e.e[k], ...counts),
      scale = (height * 0.9) / top;
    let d = "";
    counts.forEach((n, b) => {
      const [from, to] = [f.X(b / bins).toFixed(2), f.X((b + 1) / bins).toFixed(2)];
      d += `M${from} ${base}V${(base - n * scale).toFixed(2)}H${to}V${base}Z`;
    });
    make("path", { d, fill: colour(e.c[k]), "fill-opacity": 0.55, stroke: colour(e.c[k]), "stroke-width": 0.6 }, f.svg);
    make("path", { d: `M${f.left} ${base - e.e[k] * scale}H${f.right}`, class: "expected" }, f.svg);
    if (rows <= 8 || k % 2 === 0)
      make("text", { x: f.left - 4, y: base - height / 2 + 4, "text-anchor": "end" }, f.svg, e.c[k]);
  });
}

function densityPlot(parent, e) {
  if (!e.d) return empty(parent, "density", "density", 320, still(e));
  const f = frame(parent, {
    kind: "density",
    title: "density, 94% interval" + less(offset(e.dl, e.dh)),
    label: e.n,
    w: 320,
    h: 170,
    left: 12,
    x: [e.dl, e.dh],
  });
  const foot = 0.09,
    Y = (v) => f.Y(foot + v * (1 - foot));
  e.d.forEach((text, k) => {
    const ys = unpack(text);
    line(
      f,
      e.c[k],
      path(
        ys.map((_, i) => (i + 0.5) / ys.length),
        ys,
        f.X,
        Y,
      ),
      { "stroke-width": 1.4, "stroke-dasharray": dash(e.c[k]) },
    );
  });
  if (e.h)
    make(
      "path",
      { d: `M${f.X(e.h[0])} ${f.Y(foot / 2)}H${f.X(e.h[1])}`, class: "mark", "stroke-width": 4, "data-hdi": "1" },
      f.svg,
    );
}

function autoPlot(parent, e, page) {
  if (!e.a) return empty(parent, "autocorrelation", "autocorrelation", 320, still(e));
  const all = e.a.map((t) => unpack(t).map((v) => 2 * v - 1)),
    seen = all.flat().filter((v) => !isNaN(v));
  if (!seen.length)
    return empty(parent, "autocorrelation", "autocorrelation", 320, "not defined: draws are not finite");
  const low = Math.min(-0.2, ...seen),
    lags = Math.max(1, ...all.map((a) => a.length - 1));
  const f = frame(parent, {
    kind: "autocorrelation",
    title: "autocorrelation by lag",
    label: e.n,
    w: 320,
    h: 170,
    left: 34,
    x: [0, lags],
    y: [low, 1],
  });
  const Y = (v) => f.Y((Math.max(v, low) - low) / (1 - low)),
    band = 1.96 / Math.sqrt(Math.max(1, Math.min(...page.lengths)));
  make(
    "rect",
    {
      x: f.left,
      width: f.right - f.left,
      y: Y(Math.min(1, band)),
      height: Y(-band) - Y(Math.min(1, band)),
      class: "band",
    },
    f.svg,
  );
  make("path", { d: `M${f.left} ${Y(0)}H${f.right}`, class: "axis" }, f.svg);
  all.forEach((a, k) =>
    line(
      f,
      e.c[k],
      path(
        a.map((_, i) => i / lags),
        a,
        f.X,
        Y,
      ),
      { "stroke-width": 1.3, "stroke-dasharray": dash(e.c[k]) },
    ),
  );
}

function energyPlot(parent, e) {
  const f = frame(parent, { kind: "energy", title: "energy", w: 620, h: 260, left: 12, x: [e.lo, e.hi] });
  for (const [text, of] of [
    [e.m, "area"],
    [e.t, "area2"],
  ]) {
    const ys = unpack(text);
    make(
      "path",
      {
        d:
          `M${f.X(0)} ${f.bottom}L` +
          path(
            ys.map((_, i) => (i + 0.5) / ys.length),
            ys,
            f.X,
            f.Y,
          ).slice(1) +
          `L${f.X(1)} ${f.bottom}`,
        class: of,
      },
      f.svg,
    );
  }
  [
    ["energy less its mean", "area"],
    ["change from draw to draw", "area2"],
  ].forEach(([text, of], k) => {
    make("rect", { x: f.right - 190, y: f.top + 4 + 17 * k, width: 22, height: 10, class: of }, f.svg);
    make("text", { x: f.right - 162, y: f.top + 13 + 17 * k }, f.svg, text);
  });
}

// forestPlot has a row for each element: thin the middle 95 %, thick the middle half, a point at the median.
function forestPlot(parent, e) {
  const row = 20,
    left = Math.min(220, 12 + 6.6 * Math.max(...e.n.map((n) => Math.min(n.length, 32))));
  const f = frame(parent, {
    kind: "forest",
    title: "intervals" + less(offset(e.lo, e.hi)),
    w: 620,
    h: 48 + row * e.n.length,
    left,
    x: [e.lo, e.hi],
  });
  const zero = -e.lo / (e.hi - e.lo);
  if (zero > 0 && zero < 1) make("path", { d: `M${f.X(zero)} ${f.top}V${f.bottom}`, class: "expected" }, f.svg);
  e.n.forEach((name, k) => {
    const y = f.top + row * (k + 0.7),
      q = e.q[k].map(f.X);
    make(
      "text",
      { x: f.left - 6, y: y + 4, "text-anchor": "end" },
      f.svg,
      name.length > 32 ? name.slice(0, 31) + "…" : name,
    );
    line(f, 0, `M${q[0]} ${y}H${q[4]}`, { "stroke-width": 1.4 });
    line(f, 0, `M${q[1]} ${y}H${q[3]}`, { "stroke-width": 5 });
    make("circle", { cx: q[2], cy: y, r: 3.2, fill: colour(1), "data-median": "1" }, f.svg);
  });
}

// checkPlot is the density of data over those of replicates.
function checkPlot(parent, e) {
  const f = frame(parent, {
    kind: "check",
    title: "data and replicates",
    label: e.n,
    w: 520,
    h: 220,
    left: 12,
    x: [e.lo, e.hi],
  });
  const draw = (text, c, more) => {
    const ys = unpack(text);
    line(
      f,
      c,
      path(
        ys.map((_, i) => (i + 0.5) / ys.length),
        ys,
        f.X,
        f.Y,
      ),
      more,
    );
  };
  for (const r of e.r) draw(r, 0, { "stroke-width": 0.8, "stroke-opacity": 0.4 });
  draw(e.o, 1, { "stroke-width": 2.4 });
  make("text", { x: f.right, y: 11, "text-anchor": "end" }, f.svg, e.n);
}
