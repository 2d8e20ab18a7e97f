/* report.js -- shows the runs that this page contains.
 *
 * A run is two scripts: `run` has the facts in JSON, and `cells` has the rounds and the
 * cells, compressed by zlib and in base64 (docs/journal.md, "The data of a report").
 * Nothing is loaded and nothing is left out: a pixel stands for all cells below it. */
"use strict";
(() => {
const FATES = ["absent", "idle", "on time", "partly used", "late, not needed", "cancelled",
               "unfinished", "failed", "lost", "wrong", "excluded for wrong results"];
const MEANS = ["not in the fleet", "asked for nothing", "all results came, and were used",
               "some results were used, others were no longer needed",
               "all results came, but were not needed", "not needed, and did not come",
               "had not come when the run ended", "the worker could not compute",
               "the worker left", "found wrong and left out",
               "asked for nothing: it was wrong too often"];
const IDLE = 1, USED = 2, PARTLY = 3, LATE = 4, CANCELLED = 5, UNFINISHED = 6, FAILED = 7, LOST = 8,
      WRONG = 9, EXCLUDED = 10;
const brief = (f) => f === EXCLUDED ? "excluded" : FATES[f];
/* By fate: of several cells in a pixel the one with the largest number is seen. */
const SEVERITY = [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 6];

const COLOURS = {
  light: { fate: ["#ffffff", "#e7eaed", "#a9d8c9", "#9cc3e6", "#f2cf63", "#c9b8e6", "#9aa3ab",
                  "#b4602c", "#1c2126", "#d4261e", "#f3b8c4"], slow: "#0a4f43" },
  dark: { fate: ["#14181c", "#2a3138", "#1f6f5d", "#2f6ea3", "#c79a1b", "#7a62ad", "#6b757e",
                 "#c8743c", "#f4f6f8", "#ff5a4f", "#96405a"], slow: "#a8f0dc" },
};
const dark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const colours = () => COLOURS[dark.matches && !printing ? "dark" : "light"];
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* ---- words -------------------------------------------------------------- */

const el = (tag, attributes = {}, ...inside) => {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value);
  e.append(...inside);
  return e;
};
const digits = (x) => Number(x.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
const scaled = (x, units, by) => {
  let i = 0;
  while (Math.abs(x) >= by * 0.9995 && i < units.length - 1) { x /= by; i++; }
  return `${digits(x)} ${units[i]}`;
};
const time = (s) => !isFinite(s) ? "–" : s === 0 ? "0 s" : Math.abs(s) < 0.9995e-6
  ? `${digits(s * 1e9)} ns` : Math.abs(s) < 1
  ? scaled(s * 1e6, ["µs", "ms", "s"], 1000) : `${digits(s)} s`;
const size = (n) => scaled(n, ["B", "kB", "MB", "GB", "TB"], 1000);
const many = (n, one, more) => `${n.toLocaleString("en")} ${n === 1 ? one : more || one + "s"}`;

/* ---- data --------------------------------------------------------------- */

async function inflate(text) {
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const out = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(out).arrayBuffer();
}

async function read(facts, packed) {
  const run = JSON.parse(facts.textContent);
  const data = await inflate(packed.textContent), W = run.workers, R = run.rounds, M = run.marks;
  let at = 0;
  const take = (type, n) => {
    const view = new DataView(data, at, n * type.BYTES_PER_ELEMENT), out = new type(n);
    const get = { Float64Array: "getFloat64", Uint32Array: "getUint32", Int32Array: "getInt32" };
    at += n * type.BYTES_PER_ELEMENT;
    if (type === Uint8Array) return new Uint8Array(data, at - n, n);
    for (let i = 0; i < n; i++)
      out[i] = view[get[type.name]](i * type.BYTES_PER_ELEMENT, true);
    return out;
  };
  run.from = take(Float64Array, R);
  run.to = take(Float64Array, R);
  run.markTime = take(Float64Array, M);
  run.label = take(Uint32Array, R);
  run.status = take(Int32Array, R);
  run.most = take(Uint32Array, R);
  run.markWorker = take(Uint32Array, M);
  run.markRound = take(Uint32Array, M);
  run.markJoined = take(Uint32Array, M);
  run.fate = take(Uint8Array, W * R);
  run.time = take(Uint8Array, W * R);
  run.work = run.uneven ? take(Uint8Array, W * R) : null;
  if (at !== data.byteLength) throw new Error("the data has another length than it should");
  run.figures.pop();
  run.figure = Object.fromEntries(run.figures.map(([key, , value]) => [key, value]));
  run.caption = Object.fromEntries(run.captions);
  run.column = run.stream ? "product" : "round";
  run.simulated = run.port === "sim";
  run.log = Math.log(run.ratio);
  return run;
}
const seconds = (run, code) => code ? run.least * Math.exp(run.log * (code - 1)) : NaN;
const name = (run, w) => run.names[w] ? `u${w} (${run.names[w]})` : `u${w}`;

/* ---- what follows from the cells ---------------------------------------- */

/* Times of equal work, as bytes: a worker with half of the work has twice its time.
 * Histograms of bytes give medians and quantiles in one pass. */
const BINS = 1024;
function quantile(histogram, n, q) {
  let left = Math.max(1, Math.ceil(q * n)), i = 0;
  if (!n) return NaN;
  while ((left -= histogram[i]) > 0) i++;
  return i;
}

function study(run) {
  const W = run.workers, R = run.rounds, extra = new Float64Array(256);
  const code = (i) => Math.min(BINS - 1, Math.round(run.time[i] + (run.work ? extra[run.work[i]] : 0)));
  for (let i = 1; i < 256; i++) extra[i] = Math.log(255 / i) / run.log;
  const counts = Array.from({ length: W }, () => new Uint32Array(FATES.length));
  run.median = new Float64Array(R).fill(NaN);
  run.count = FATES.map(() => new Uint32Array(R));
  const bins = new Uint32Array(BINS);
  for (let r = 0; r < R; r++) {
    let n = 0;
    bins.fill(0);
    for (let w = 0, i = r; w < W; w++, i += R) {
      const f = run.fate[i];
      counts[w][f]++;
      run.count[f][r]++;
      if (run.time[i] && (f === USED || f === LATE || f === WRONG)) { bins[code(i)]++; n++; }
    }
    run.median[r] = quantile(bins, n, 0.5);
  }
  run.codeOf = code;
  run.worker = counts.map((count, w) => {
    const own = new Uint32Array(BINS), ratio = new Uint32Array(2 * BINS);
    let n = 0, ratios = 0, atLeast = 0;
    for (let r = 0, i = w * R; r < R; r++, i++) {
      const f = run.fate[i];
      if (!run.time[i]) continue;
      if (f === USED || f === LATE || f === WRONG) { own[code(i)]++; n++; }
      else if (f !== CANCELLED && f !== PARTLY) continue;
      else atLeast++;
      if (run.median[r] === run.median[r]) { ratio[BINS + code(i) - run.median[r]]++; ratios++; }
    }
    const q = (p) => seconds(run, quantile(own, n, p));
    return { w, count, n, atLeast: 2 * atLeast > n + atLeast, q10: q(0.1), q50: q(0.5), q90: q(0.9), max: q(1),
             slow: Math.exp(run.log * (quantile(ratio, ratios, 0.5) - BINS)), joined: [], left: [] };
  });
  for (let m = 0; m < run.marks; m++) {
    const w = run.worker[run.markWorker[m]];
    if (w) (run.markJoined[m] ? w.joined : w.left).push(m);
  }
}

/* ---- several runs ------------------------------------------------------- */

const tookOf = (run) => run.rounds ? run.to.reduce((a, b) => Math.max(a, b), -Infinity)
  - run.from.reduce((a, b) => Math.min(a, b), Infinity) : NaN;

/* Returns a sentence about the times of several runs. */
function compared(runs) {
  const each = runs.map((run, i) => ({ what: run.caption.run ?? `run ${i + 1}`, took: tookOf(run) / (run.rounds || 1) }))
    .filter((x) => x.took > 0).sort((a, b) => a.took - b.took);
  if (!each.length) return "No run has a round.";
  return `A round took ${each.map((x, i) => `${time(x.took)} in ${x.what}${
    i ? ` (${digits(x.took / each[0].took)} times)` : ""}`).join(", ")}.`;
}

/* ---- the cells ---------------------------------------------------------- */

class Cells {
  constructor(run) {
    this.run = run;
    this.order = Array.from({ length: run.workers }, (_, i) => i);
    this.shade = true;
    this.byTime = false;
    this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Workers by rounds; arrows move, + and - zoom, 0 shows all" });
    this.box = el("div", { class: "box" });
    this.tip = el("div", { class: "tip" });
    this.root = el("div", { class: "cells" }, this.canvas, this.box, this.tip);
    this.edges = new Float64Array(run.rounds + 1);
    this.setAxis(false);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.root);
  }
  setAxis(byTime) {
    const { run, edges } = this, R = run.rounds;
    this.byTime = byTime;
    let last = byTime && R ? run.from[0] : 0;
    edges[0] = last;
    for (let i = 0; i < R; i++) edges[i + 1] = last = byTime ? Math.max(last, run.to[i]) : i + 1;
    this.reset();
  }
  reset() { this.show(this.edges[0], this.edges[this.run.rounds], 0, this.run.workers); }
  show(x0, x1, y0, y1) {
    const lo = this.edges[0], hi = this.edges[this.run.rounds], W = this.run.workers;
    const least = this.byTime ? (hi - lo) * 1e-6 : Math.min(1, hi);
    const fit = (a, b, min, max, small) => {
      const span = Math.min(Math.max(b - a, small), max - min);
      const from = Math.min(Math.max((a + b - span) / 2, min), max - span);
      return [from, from + span];
    };
    [this.x0, this.x1] = fit(x0, x1, lo, hi, least);
    [this.y0, this.y1] = fit(y0, y1, 0, W, Math.min(1, W));
    this.draw();
  }
  zoom(by, px, py) {
    const at = (a, b, p) => [a + (b - a) * p * (1 - by), b - (b - a) * (1 - p) * (1 - by)];
    this.show(...at(this.x0, this.x1, px), ...at(this.y0, this.y1, py));
  }
  pan(dx, dy) {
    const sx = (this.x1 - this.x0) * dx, sy = (this.y1 - this.y0) * dy;
    const lo = this.edges[0], hi = this.edges[this.run.rounds];
    const mx = Math.min(Math.max(sx, lo - this.x0), hi - this.x1);
    const my = Math.min(Math.max(sy, -this.y0), this.run.workers - this.y1);
    this.show(this.x0 + mx, this.x1 + mx, this.y0 + my, this.y1 + my);
  }
  /* The column at x: the last one that begins there or before. */
  columnAt(x) {
    let a = 0, b = this.run.rounds - 1;
    while (a < b) { const m = (a + b + 1) >> 1; if (this.edges[m] <= x) a = m; else b = m - 1; }
    return a;
  }
  /* Colours of one cell: fate and slowness. */
  palette() {
    const c = colours(), slow = rgb(c.slow);
    return c.fate.map((hex, f) => {
      const base = rgb(hex);
      return Array.from({ length: 9 }, (_, s) => this.shade && (f === USED || f === PARTLY)
        ? base.map((v, i) => Math.round(v + (slow[i] - v) * s / 8)) : base);
    });
  }
  /* For each pixel the most severe fate of its cells, its share, and the slowest. */
  raster(wide, high) {
    const { run, order } = this, R = run.rounds, out = new Uint8ClampedArray(4 * wide * high);
    const colour = this.palette(), ground = colour[0][0];
    const column = new Int32Array(wide + 1), line = new Int32Array(high + 1);
    const edge = (p) => this.columnAt(this.x0 + (this.x1 - this.x0) * p / wide);
    for (let p = 0; p <= wide; p++) column[p] = edge(Math.min(p + 1e-6, wide - 1e-6));
    for (let p = 0; p <= high; p++)
      line[p] = Math.min(Math.floor(this.y0 + (this.y1 - this.y0) * p / high + 1e-9), run.workers - 1);
    const perLog = run.log / Math.LN2, n = new Uint32Array(FATES.length);
    for (let y = 0, o = 0; y < high; y++) {
      if (y && line[y] === line[y - 1] && line[y + 1] === line[y]) {
        out.copyWithin(o, o - 4 * wide, o); o += 4 * wide; continue;
      }
      const w1 = Math.max(line[y] + 1, line[y + 1]);
      for (let x = 0; x < wide; x++, o += 4) {
        const r1 = Math.max(column[x] + 1, column[x + 1]);
        let worst = 0, slowest = 0, cells = 0;
        n.fill(0);
        for (let w = line[y]; w < w1; w++)
          for (let r = column[x], i = order[w] * R + r; r < r1; r++, i++) {
            const f = run.fate[i];
            n[f]++; cells++;
            if (SEVERITY[f] > SEVERITY[worst]) worst = f;
            if (run.time[i]) {
              const s = (run.codeOf(i) - run.median[r]) * perLog;
              if (s > slowest) slowest = s;
            }
          }
        const c = colour[worst][Math.min(8, Math.round(slowest * 8 / 3))];
        let under = ground, share = 1;
        if (worst > PARTLY && n[worst] < cells) {   // rare ones are seen, and seen to be rare
          share = 0.45 + 0.55 * n[worst] / cells;
          under = colour[n[USED] ? USED : IDLE][0];
        }
        for (let i = 0; i < 3; i++) out[o + i] = under[i] + (c[i] - under[i]) * share;
        out[o + 3] = 255;
      }
    }
    return out;
  }
  measure() {
    const wide = this.root.clientWidth || 600, W = this.run.workers;
    const longest = Math.max(2, ...[0, W - 1].map((w) => name(this.run, Math.max(w, 0)).length));
    this.left = Math.min(120, 14 + 7 * Math.min(14, longest));
    this.wide = Math.max(40, wide - this.left - 2);
    this.high = Math.min(Math.max(W * 22, 60), Math.max(260, Math.min(620, innerHeight * 0.62)));
    this.foot = 34;
  }
  draw() {
    const { canvas, run } = this;
    this.measure();
    const dpr = Math.min(devicePixelRatio || 1, 2), width = this.left + this.wide + 2;
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round((this.high + this.foot) * dpr);
    canvas.style.height = `${this.high + this.foot}px`;
    const g = canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    if (!run.rounds || !run.workers) return;
    const pw = Math.round(this.wide * dpr), ph = Math.round(this.high * dpr);
    g.putImageData(new ImageData(this.raster(pw, ph), pw, ph), Math.round(this.left * dpr), 0);
    g.setTransform(dpr, 0, 0, dpr, 0, 0);
    for (const s of this.shapes()) paint(g, s);
  }
  px(x) { return this.left + (x - this.x0) / (this.x1 - this.x0) * this.wide; }
  py(y) { return (y - this.y0) / (this.y1 - this.y0) * this.high; }
  /* Everything but the cells: lines between large cells, marks, ticks and names. */
  shapes() {
    const { run, order } = this, out = [], ground = ink("--ground"), soft = ink("--soft");
    const each = this.high / (this.y1 - this.y0), across = this.wide / (this.x1 - this.x0);
    const text = (x, y, words, align, fill = soft) => out.push({ text: words, x, y, align, fill });
    if (each >= 8)
      for (let y = Math.ceil(this.y0); y <= this.y1; y++)
        out.push({ x: this.left, y: this.py(y) - 0.5, w: this.wide, h: 1, fill: ground });
    if (!this.byTime && across >= 12)
      for (let x = Math.ceil(this.x0); x <= this.x1; x++)
        out.push({ x: this.px(x) - 0.5, y: 0, w: 1, h: this.high, fill: ground });
    const place = new Int32Array(run.workers);
    order.forEach((w, i) => { place[w] = i; });
    for (let m = 0; m < run.marks; m++) {
      const y = place[run.markWorker[m]], c = Math.min(run.markRound[m], run.rounds);
      const x = this.byTime ? run.markTime[m] : c;
      if (x < this.x0 || x > this.x1 || y + 1 < this.y0 || y > this.y1) continue;
      const h = Math.max(5, Math.min(12, each)), cy = this.py(y + 0.5), cx = this.px(x);
      out.push({ path: run.markJoined[m] ? [[cx, cy - h / 2], [cx + h * 0.8, cy], [cx, cy + h / 2]]
        : [[cx + h * 0.8, cy - h / 2], [cx, cy], [cx + h * 0.8, cy + h / 2]],
        fill: run.markJoined[m] ? ink("--accent") : ink("--warn"), line: ground });
    }
    const faulty = (w) => run.worker[w].count[WRONG] > 0;
    const step = Math.max(1, Math.ceil(15 / each));
    for (let i = Math.floor(this.y0); i < this.y1 && i < run.workers; i++) {
      const y = this.py(i + 0.5);
      if (y < 0 || y > this.high) continue;
      if (i % step === 0 && y >= 6) {
        const words = name(run, order[i]);
        text(this.left - 8, y, words.length > 14 ? words.slice(0, 13) + "…" : words, "right");
      }
      if (faulty(order[i]))
        out.push({ x: this.left - 5, y: y - Math.max(1, each / 2 - 0.5), w: 4, h: Math.max(2, each - 1), fill: colours().fate[WRONG] });
    }
    for (const [x, words] of this.ticks()) {
      const p = this.px(x);
      out.push({ x: p, y: this.high, w: 1, h: 4, fill: soft });
      text(Math.min(Math.max(p, this.left + 10), this.left + this.wide - 14), this.high + 13, words, "center");
    }
    text(this.left + this.wide, this.high + 28, this.byTime ? "time" : run.column, "right");
    return out;
  }
  ticks() {
    const { run } = this, span = this.x1 - this.x0, most = Math.max(2, Math.floor(this.wide / 90));
    const power = Math.pow(10, Math.floor(Math.log10(span / most || 1)));
    const wanted = [1, 2, 5, 10].map((k) => k * power).find((s) => span / s <= most) || span;
    const step = this.byTime ? wanted : Math.max(1, Math.round(wanted)), out = [];
    const from = this.byTime ? this.edges[0] : 0;
    for (let k = Math.ceil((this.x0 - from) / step); from + k * step <= this.x1; k++) {
      const x = from + k * step;
      if (this.byTime) out.push([x, time(k * step)]);
      else if (x > 0 && x <= run.rounds) out.push([x - 0.5, String(run.label[x - 1])]);
      if (out.length > 60) break;
    }
    return out.filter(([x]) => x <= this.x1);
  }
  hit(e) {
    const b = this.canvas.getBoundingClientRect(), x = e.clientX - b.left - this.left, y = e.clientY - b.top;
    return { px: x / this.wide, py: y / this.high, cx: e.clientX - b.left, cy: y,
      inside: x >= 0 && x < this.wide && y >= 0 && y < this.high };
  }
  hover(e) {
    const { run, tip } = this, h = this.hit(e);
    tip.style.display = h.inside && run.rounds ? "block" : "none";
    if (!h.inside || !run.rounds) return;
    const r = this.columnAt(this.x0 + (this.x1 - this.x0) * h.px);
    const w = this.order[Math.min(run.workers - 1, Math.floor(this.y0 + (this.y1 - this.y0) * h.py))];
    const i = w * run.rounds + r, f = run.fate[i], t = seconds(run, run.time[i]);
    const ratio = Math.exp(run.log * (run.codeOf(i) - run.median[r]));
    const more = f > IDLE && run.time[i]
      ? `${f >= CANCELLED && f < WRONG ? "after " : ""}${time(t)}${run.median[r] === run.median[r] ? `, ${digits(ratio)} times the median` : ""}` : "";
    tip.replaceChildren(el("b", {}, `${name(run, w)}, ${run.column} ${run.label[r]}`), el("br"),
      `${FATES[f]}: ${MEANS[f]}`, ...more ? [el("br"), more] : [],
      ...run.work && run.work[i] ? [el("br"), `${Math.round(run.work[i] / 255 * run.most[r])} of at most ${run.most[r]} strips`] : []);
    tip.style.left = `${Math.max(0, Math.min(h.cx + 14, this.left + this.wide - tip.offsetWidth))}px`;
    tip.style.top = `${h.cy + 16}px`;
  }
  listen() {
    const { canvas, box, tip } = this;
    let from = null, pan = false;
    canvas.addEventListener("pointerdown", (e) => {
      const h = this.hit(e);
      if (!h.inside || e.pointerType === "touch") return;
      from = h; pan = e.shiftKey;
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      const h = this.hit(e);
      if (!from) return this.hover(e);
      tip.style.display = "none";
      if (pan) { this.pan(from.px - h.px, from.py - h.py); from = h; return; }
      Object.assign(box.style, { display: "block", left: `${Math.min(from.cx, h.cx)}px`, top: `${Math.min(from.cy, h.cy)}px`,
        width: `${Math.abs(from.cx - h.cx)}px`, height: `${Math.abs(from.cy - h.cy)}px` });
    });
    const up = (e) => {
      const h = this.hit(e), was = from;
      from = null;
      box.style.display = "none";
      if (!was || pan || Math.abs(h.cx - was.cx) < 5 && Math.abs(h.cy - was.cy) < 5) return;
      const at = (a, b, p, q) => [a + (b - a) * Math.max(0, Math.min(p, q)), a + (b - a) * Math.min(1, Math.max(p, q))];
      this.show(...at(this.x0, this.x1, was.px, h.px), ...at(this.y0, this.y1, was.py, h.py));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", () => { from = null; box.style.display = "none"; });
    canvas.addEventListener("pointerleave", () => { tip.style.display = "none"; });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey) return;
      const h = this.hit(e);
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 0.8 : 1.25, h.px, h.py);
    }, { passive: false });
    canvas.addEventListener("keydown", (e) => {
      const act = { ArrowLeft: () => this.pan(-0.2, 0), ArrowRight: () => this.pan(0.2, 0), ArrowUp: () => this.pan(0, -0.2),
        ArrowDown: () => this.pan(0, 0.2), "+": () => this.zoom(0.7, 0.5, 0.5), "=": () => this.zoom(0.7, 0.5, 0.5),
        "-": () => this.zoom(1.4, 0.5, 0.5), 0: () => this.reset(), Escape: () => this.reset() }[e.key];
      if (act) { e.preventDefault(); act(); }
    });
  }
  /* The drawing as SVG: equal pixels beside and below each other are one rectangle. */
  svg() {
    const wide = Math.round(this.wide), high = Math.round(this.high), p = this.raster(wide, high);
    const out = [], open = new Map(), hex = (o) => "#" + [0, 1, 2].map((i) => p[o + i].toString(16).padStart(2, "0")).join("");
    const put = (y) => { for (const [key, r] of open) if (r.seen !== y) {
      open.delete(key);
      out.push(`<rect x="${this.left + r.x}" y="${r.y}" width="${r.w}" height="${y - r.y}" fill="${r.fill}"/>`); } };
    for (let y = 0; y <= high; y++) {
      for (let x = 0, end; y < high && x < wide; x = end) {
        const fill = hex(4 * (y * wide + x));
        for (end = x + 1; end < wide && hex(4 * (y * wide + end)) === fill; end++);
        const key = `${x} ${end} ${fill}`, old = open.get(key);
        if (old) old.seen = y; else open.set(key, { x, y, w: end - x, fill, seen: y });
      }
      put(y);
    }
    const safe = (s) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    return out.concat(this.shapes().map((s) => s.text !== undefined
      ? `<text x="${s.x}" y="${s.y}" fill="${s.fill}" text-anchor="${{ right: "end", center: "middle" }[s.align]}" dominant-baseline="central">${safe(s.text)}</text>`
      : s.path ? `<path d="M${s.path.map((q) => q.map((v) => v.toFixed(1)).join(" ")).join("L")}Z" fill="${s.fill}"/>`
      : `<rect x="${s.x}" y="${s.y}" width="${s.w}" height="${s.h}" fill="${s.fill}"/>`), "</svg>")
      .join("\n").replace(/^/, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${this.left + wide + 2} ${high + this.foot}" font-family="sans-serif" font-size="11" shape-rendering="crispEdges">\n`);
  }
}
function paint(g, s) {
  g.fillStyle = s.fill;
  if (s.text !== undefined) {
    g.font = '11px system-ui, "DejaVu Sans", sans-serif';
    g.textAlign = s.align;
    g.textBaseline = "middle";
    g.fillText(s.text, s.x, s.y);
  } else if (s.path) {
    g.beginPath();
    s.path.forEach(([x, y], i) => i ? g.lineTo(x, y) : g.moveTo(x, y));
    g.closePath();
    g.fill();
    g.strokeStyle = s.line;
    g.stroke();
  } else g.fillRect(s.x, s.y, s.w, s.h);
}

/* ---- parts of the page -------------------------------------------------- */

const redraw = [], attached = [];  // attached: to call when a part is in the page

function cellsPart(run) {
  const cells = new Cells(run), legend = el("div", { class: "legend" });
  const choice = (label, words, pick) => {
    const s = el("select", { onchange: () => pick(s.selectedIndex) }, ...words.map((w) => el("option", {}, w)));
    return el("label", {}, `${label} `, s);
  };
  const button = (words, title, act) => el("button", { type: "button", title, onclick: act }, words);
  const fill = () => {
    const c = colours(), there = FATES.map((_, f) => run.count[f].some((n) => n));
    legend.replaceChildren(...FATES.map((f, i) => i && there[i]
      ? el("span", { title: MEANS[i] }, el("i", { style: `background:${c.fate[i]}` }), f) : "").filter(Boolean),
      el("span", {}, el("i", { style: `background:linear-gradient(90deg, ${c.fate[USED]}, ${c.slow})` }), "1 to 8 times the median"),
      ...run.marks ? [el("span", {}, "▶ joined"), el("span", {}, "◀ left")] : []);
  };
  const sorts = [(a, b) => a.w - b.w, (a, b) => (b.slow || 0) - (a.slow || 0),
    (a, b) => b.count[WRONG] - a.count[WRONG] || b.count[LOST] - a.count[LOST] || a.w - b.w];
  fill();
  redraw.push(() => { fill(); cells.draw(); });
  return el("section", {}, el("h2", {}, `Workers and ${run.column}s`),
    el("div", { class: "bar" },
      choice("Order", ["by number", "slowest first", "wrong and lost first"], (i) => {
        cells.order = run.worker.slice().sort(sorts[i]).map((x) => x.w);
        cells.draw();
      }),
      choice("Across", [`${run.column}s`, "time"], (i) => cells.setAxis(i === 1)),
      choice("Shade", ["slowness", "none"], (i) => { cells.shade = i === 0; cells.draw(); }),
      button("+", "zoom in", () => cells.zoom(0.6, 0.5, 0.5)), button("−", "zoom out", () => cells.zoom(1.7, 0.5, 0.5)),
      button("all", "show all", () => cells.reset()),
      button("SVG", "save this drawing", () => {
        const url = URL.createObjectURL(new Blob([cells.svg()], { type: "image/svg+xml" }));
        el("a", { href: url, download: "kofn-workers.svg" }).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
      })),
    legend, cells.root,
    el("p", { class: "note" }, "Drag to zoom, drag with Shift to move, Ctrl and the wheel to zoom, double-click for all. ",
      "A pixel with several cells has the most severe fate, paler if it is rare, and the slowest time. ",
      "A red edge marks workers with wrong results."));
}

/* Axes and grids of a curve in the colours of the page. */
function curve(title, x, series, values) {
  const holder = el("div"), soft = () => ink("--soft"), line = () => ink("--line");
  let plot;
  const make = () => {
    const width = Math.max(260, holder.clientWidth);
    if (plot) plot.destroy();
    const axis = { stroke: soft(), grid: { stroke: line(), width: 1 }, ticks: { stroke: line() }, font: "11px sans-serif" };
    plot = new uPlot({ width, height: 230, scales: { x: { time: false } }, legend: { live: true },
      axes: [{ ...axis, values: (u, v) => v.map((n) => Number.isInteger(n) ? String(n) : "") },
        { ...axis, size: 64, values: (u, v) => v.map(values) }],
      series: [{ label: title }, ...series.map((s) => ({ label: s.label, stroke: s.stroke(), width: 1.5, fill: s.fill && s.fill(),
        points: { show: x.length < 40 }, value: (u, v) => v == null ? "–" : values(v) }))] },
      [x, ...series.map((s) => s.data)], holder);
  };
  let wide = 0;
  const fit = () => { if (holder.clientWidth && holder.clientWidth !== wide) { wide = holder.clientWidth; make(); } };
  new ResizeObserver(fit).observe(holder);
  attached.push(fit);
  redraw.push(() => { if (plot) make(); });
  return holder;
}

function curvesPart(run) {
  const R = run.rounds, x = Array.from({ length: R }, (_, i) => i + 1);
  const took = x.map((_, i) => run.to[i] - run.from[i]);
  const median = x.map((_, i) => run.median[i] === run.median[i] ? seconds(run, run.median[i]) : null);
  const fate = (f) => () => colours().fate[f];
  const counts = [USED, PARTLY, LATE, CANCELLED, UNFINISHED, FAILED, LOST, WRONG, EXCLUDED].filter((f) => run.count[f].some((n) => n));
  return el("section", {}, el("div", { class: "two" },
    el("div", {}, el("h2", {}, `Time of ${run.column}s`),
      curve(run.column, x, [{ label: `the ${run.column}`, stroke: () => ink("--accent"), data: took },
        { label: "the median worker", stroke: () => ink("--warn"), data: median }], time)),
    el("div", {}, el("h2", {}, "Workers by fate"),
      curve(run.column, x, counts.map((f) => ({ label: brief(f), stroke: f === USED ? () => ink("--accent") : fate(f),
        data: Array.from(run.count[f]) })), (n) => Number.isInteger(n) ? String(n) : ""))));
}

function workersPart(run) {
  const fates = FATES.map((_, f) => f).filter((f) => f > IDLE && run.count[f].some((n) => n));
  const columns = [["worker", (x) => x.w, (x) => name(run, x.w)],
    ["slowness", (x) => x.slow || 0, (x) => x.slow === x.slow ? `${x.atLeast ? "≥ " : ""}${digits(x.slow)}` : "–"],
    ["10 %", (x) => x.q10 || 0, (x) => time(x.q10)], ["median", (x) => x.q50 || 0, (x) => time(x.q50)],
    ["90 %", (x) => x.q90 || 0, (x) => time(x.q90)], ["longest", (x) => x.max || 0, (x) => time(x.max)],
    ...fates.map((f) => [brief(f), (x) => x.count[f], (x) => x.count[f].toLocaleString("en")])];
  const body = el("tbody"), head = el("tr");
  let by = 0, down = false;
  const fill = () => {
    const key = columns[by][1], rows = run.worker.slice().sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)) || a.w - b.w);
    body.replaceChildren(...rows.map((x) => el("tr", {}, ...columns.map((c) => el("td", {}, c[2](x))))));
    [...head.children].forEach((th, i) => th.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending"));
  };
  head.append(...columns.map(([label], i) => el("th", { scope: "col" }, el("button", { type: "button", onclick: () => {
    down = by === i ? !down : i > 0;
    by = i;
    fill();
  } }, label))));
  fill();
  return el("section", { class: "long" }, el("h2", {}, "Workers"),
    el("p", { class: "note" }, "Times of equal work: of results that came, from when the worker could begin until its last result. ",
      "Slowness: the median over the rounds of its time relative to the median worker; ≥ if most of its tasks were cancelled before they were done."),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "workers" }, el("table", {}, el("thead", {}, head), body)));
}

function figuresPart(run) {
  const parts = run.figures.filter(([key, kind]) => kind === "seconds" && key !== "seconds");
  const sum = parts.reduce((s, [, , v]) => s + v, 0), hue = ["#2f7fb0", "#c9ced3", "#c98a2b", "#7a62ad", "#4c9a6a", "#b4602c", "#888", "#b58db6"];
  const label = (key) => key.replace(/_seconds$/, "").replace(/_/g, " ");
  const show = (kind, v, key) => v === null ? "–" : kind === "seconds" ? time(v) : /bytes/.test(key) ? size(v)
    : kind === "number" ? (v === 0 ? "0" : v.toPrecision(3)) : v.toLocaleString("en");
  const rows = run.figures.filter(([, , v]) => v !== 0).map(([key, kind, v, text]) =>
    el("tr", {}, el("td", {}, label(key)), el("td", {}, show(kind, v, key)), el("td", {}, text)));
  if (run.caption["measured error"])
    rows.unshift(el("tr", {}, el("td", {}, "measured error"), el("td", {}, run.caption["measured error"]), el("td", {}, "relative, by --verify")));
  if (!run.whole)
    for (const what of ["sent bytes", "received bytes", "predicted error"])
      rows.push(el("tr", {}, el("td", {}, what), el("td", {}, "unknown"), el("td", {}, "the journal lacks the end of the run, or is of an earlier kofn")));
  return el("section", { class: "long" }, el("h2", {}, "Where the time went"),
    sum ? el("div", { class: "spent", role: "img", "aria-label": parts.map(([k, , v]) => `${label(k)} ${time(v)}`).join(", ") },
      ...parts.map(([, , v], i) => el("div", { style: `flex:${v / sum};background:${hue[i % hue.length]}` }))) : "",
    el("div", { class: "legend" }, ...parts.map(([k, , v], i) => el("span", {}, el("i", { style: `background:${hue[i % hue.length]}` }),
      `${label(k)} ${time(v)}${sum ? ` (${Math.round(100 * v / sum)} %)` : ""}`))),
    el("h2", {}, "Figures"),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "figures" }, el("table", { class: "figures" }, el("tbody", {}, ...rows))),
    run.caption.command ? el("div", {}, el("h2", {}, "To repeat it"), el("pre", {}, run.caption.command)) : "");
}

function facts(run) {
  const moved = !run.whole ? [] : [`${size(run.figure.sent_bytes)} sent, ${size(run.figure.received_bytes)} received`];
  const error = run.figure.predicted_error;
  return [run.caption.run ? [`journal ${run.caption.run}`] : [], `scheme ${run.spec}`, `port ${run.port}`, `${many(run.workers, "worker")}, ${many(run.rounds, run.column)}`,
    moved, error ? [`predicted relative error ${error.toPrecision(2)}`] : [],
    run.caption["measured error"] ? [`measured ${run.caption["measured error"]}`] : [],
    run.whole ? [] : ["bytes and predicted error are unknown: the journal lacks the end of the run"], `kofn ${run.kofn}`].flat().join(" · ");
}

/* ---- all of it ---------------------------------------------------------- */

async function main() {
  const page = document.getElementById("page"), heads = [...document.querySelectorAll("script.run")];
  const bodies = [...document.querySelectorAll("script.cells")];
  const runs = [];
  page.replaceChildren();
  page.classList.toggle("beside", heads.length > 1);
  for (let i = 0; i < heads.length; i++) {
    const run = await read(heads[i], bodies[i]);
    study(run);
    if (run.caption.ended) run.verdict += `; ${run.caption.ended}`;
    if (!i) document.title = `kofn: ${run.verdict}`;
    const part = heads.length > 1 ? el("div", { class: "run" }) : page;
    if (part !== page) page.append(part);
    part.append(el("h1", {}, run.caption.run && heads.length > 1 ? `kofn report: ${run.caption.run}` : "kofn report"),
      el("p", { class: "verdict" }, `${run.verdict}.`), el("p", { class: "facts" }, facts(run)));
    runs.push(run);
    if (run.rounds) part.append(cellsPart(run));
    await new Promise((done) => setTimeout(done));  // first the cells, then what is below
    if (run.rounds) part.append(curvesPart(run), workersPart(run));
    part.append(figuresPart(run));
    attached.splice(0).forEach((f) => f());
  }
  if (runs.length > 1) page.prepend(el("p", { class: "verdict compared" }, compared(runs)));
  document.documentElement.dataset.ready = "1";
}
const all = () => redraw.forEach((f) => f());
const print = (now) => {
  printing = now;
  document.documentElement.classList.toggle("printing", now);
  all();
};
dark.addEventListener("change", all);
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
main().catch((e) => {
  document.getElementById("page").replaceChildren(el("h1", {}, "kofn report"),
    el("p", { class: "warn" }, `This page cannot be shown: ${e.message}. It needs a browser of 2023 or later.`));
});
})();
