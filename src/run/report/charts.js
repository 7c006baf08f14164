"use strict";
// What the report is drawn with: elements, numbers as text, charts over steps, tiles and tables. No text of a run
// is ever read as HTML.

const page = document.getElementById("page");
const colour = (i) => `var(--c${i % 11})`;
const redraws = [];

function element(parent, tag, attributes = {}, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function svg(parent, tag, attributes = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return size >= 100 ? value.toFixed(0) : size >= 1 ? value.toFixed(3) : value.toPrecision(3);
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return `${Number.isInteger(value) ? value : value.toFixed(2)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds < 1e-3) return `${(1e6 * seconds).toFixed(1)} µs`;
  if (seconds < 1) return `${(1000 * seconds).toPrecision(3)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const two = (n) => String(n).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

// Round values from low to high, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) || 10);
  const out = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; ++i) out.push(i * step);
  return out;
}

// The same for bytes: round in the unit that they are shown in.
function byteTicks(low, high, count) {
  const unit = 1024 ** Math.floor(Math.log2(Math.max(1, high)) / 10);
  return ticks(low / unit, high / unit, count).map((tick) => tick * unit);
}

// The text of round values on an axis: as many digits for each as their distance needs.
function axisNumber(step) {
  if (step < 1e-4) return (value) => value === 0 ? "0" : value.toExponential(0);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return (value) => value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function key(parent, names) {
  const box = element(parent, "div", { class: "key" });
  names.forEach(([name, paint]) => {
    const item = element(box, "span");
    element(item, "i", { style: `background:${paint}` });
    item.append(name);
  });
}

// Frame, axes and hover of a chart; `draw(area, x, y)` draws inside it, `at(value)` gives the nearest place on
// the x axis with its heading and lines for the tip.
function frame(parent, { title, low, high, first, last, format, draw, at, rounds = ticks }) {
  element(parent, "h3", {}, title);
  const box = element(parent, "div", { class: "chart" });
  const tip = element(box, "div", { class: "tip" });
  const height = 220, left = 56, right = 10, top = 10, bottom = 24;
  if (last <= first) last = first + 1;
  if (!(high > low)) { high = low + (Math.abs(low) || 1) * 0.1; low -= (Math.abs(low) || 1) * 0.1; }
  const paint = () => {
    box.querySelector("svg")?.remove();
    const width = Math.max(260, box.clientWidth);
    const area = svg(box, "svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": title });
    const x = (v) => left + (v - first) / (last - first) * (width - left - right);
    const y = (v) => height - bottom - (v - low) / (high - low) * (height - top - bottom);
    const heights = rounds(low, high, 4);
    const label = format === number && heights.length > 1 ? axisNumber(heights[1] - heights[0]) : format;
    for (const tick of heights) {
      svg(area, "line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      svg(area, "text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, label(tick));
    }
    for (const tick of ticks(first, last, width < 420 ? 3 : 6)) {
      if (!Number.isInteger(tick)) continue;
      svg(area, "text", { x: x(tick), y: height - 8, "text-anchor": "middle" }, tick.toLocaleString("en-US"));
    }
    draw(area, x, y);
    const hair = svg(area, "line", { class: "mark", y1: top, y2: height - bottom, visibility: "hidden" });
    const hide = () => { tip.style.display = "none"; hair.setAttribute("visibility", "hidden"); };
    area.addEventListener("pointerleave", hide);
    area.addEventListener("pointermove", (event) => {
      const place = (event.clientX - area.getBoundingClientRect().left) / area.clientWidth * width;
      const found = at(first + (place - left) / (width - left - right) * (last - first));
      if (!found) return hide();
      hair.setAttribute("visibility", "visible");
      hair.setAttribute("x1", x(found.x));
      hair.setAttribute("x2", x(found.x));
      tip.replaceChildren();
      element(tip, "b", {}, found.heading);
      for (const [name, value, paint] of found.lines) {
        const line = element(tip, "div");
        element(line, "i", { style: `background:${paint}` });
        line.append(`${name} ${value}`);
      }
      tip.style.display = "block";
      const onLeft = x(found.x) > width / 2;
      tip.style.left = onLeft ? `${left}px` : "auto";
      tip.style.right = onLeft ? "auto" : `${right}px`;
    });
  };
  redraws.push(paint);
  paint();
}

const nearest = (values, x) => {
  let best = -1;
  values.forEach((v, i) => { if (best < 0 || Math.abs(v - x) < Math.abs(values[best] - x)) best = i; });
  return best;
};

// Series { name, paint, x, y, dots, width } over steps. Values that are null leave a gap. `events` { step, what,
// paint } are marked where they happened.
function lines(parent, title, series, events = []) {
  const format = number;
  series = series.filter((s) => s.y.some((v) => v !== null));
  if (series.length === 0) return;
  const all = series.flatMap((s) => s.y.filter((v) => v !== null));
  const steps = series.flatMap((s) => s.x);
  const high = all.reduce((a, b) => Math.max(a, b)), low = all.reduce((a, b) => Math.min(a, b));
  const first = steps.reduce((a, b) => Math.min(a, b)), last = steps.reduce((a, b) => Math.max(a, b));
  const pad = (high - low) * 0.05, bottom = low >= 0 && low - pad < 0 ? 0 : low - pad;
  frame(parent, {
    title, format, first, last, low: bottom, high: high + pad,
    draw: (area, x, y) => {
      for (const s of series) {
        let path = "", pen = "M";
        s.y.forEach((v, i) => {
          if (v === null) { pen = "M"; return; }
          path += `${pen}${x(s.x[i]).toFixed(1)} ${y(v).toFixed(1)}`;
          pen = "L";
        });
        svg(area, "path", { d: path, fill: "none", stroke: s.paint, "stroke-width": s.width || 1.6, "stroke-linejoin": "round",
          opacity: s.faint ? 0.45 : 1 });
        if (s.dots || s.y.length === 1) {
          s.y.forEach((v, i) => { if (v !== null) svg(area, "circle", { cx: x(s.x[i]), cy: y(v), r: 3.2, fill: s.paint }); });
        }
      }
      for (const event of events) {
        const at = x(Math.min(Math.max(event.step, first), last)), top = y(high + pad);
        svg(area, "line", { class: "mark", x1: at, x2: at, y1: top, y2: y(bottom), style: `stroke:${event.paint}` });
        svg(area, "path", { d: `M${at - 5} ${top}h10l-5 8Z`, fill: event.paint });
      }
    },
    at: (value) => {
      const step = series[0].x[nearest(series[0].x, value)];
      const found = series.map((s) => {
        const i = nearest(s.x, step);
        return [s.name + (s.x[i] === step ? "" : ` (step ${s.x[i]})`), format(s.y[i]), s.paint];
      });
      const here = events.filter((event) => event.step === step).map((event) => [event.what, "", event.paint]);
      return { x: step, heading: `step ${step.toLocaleString("en-US")}`, lines: found.concat(here) };
    },
  });
  const kinds = new Map(events.map((event) => [event.what, event.paint]));
  if (series.length + kinds.size > 1) key(parent, series.map((s) => [s.name, s.paint]).concat([...kinds]));
}

// The median of a window around each point: the trend under the noise.
function smooth(values) {
  const reach = Math.max(2, Math.round(values.length / 40));
  return values.map((_, i) => {
    const window = values.slice(Math.max(0, i - reach), i + reach + 1).filter((v) => v !== null).sort((a, b) => a - b);
    return window.length ? window[window.length >> 1] : null;
  });
}

function tiles(parent, facts) {
  const box = element(parent, "div", { class: "tiles" });
  for (const [name, value, kind] of facts) {
    if (value === null || value === undefined) continue;
    const tile = element(box, "div", { class: "tile" });
    element(tile, "b", kind ? { class: kind } : {}, value);
    element(tile, "span", {}, name);
  }
}

function table(parent, heads, rows) {
  const box = element(element(parent, "div", { class: "scroll" }), "table");
  const head = element(element(box, "thead"), "tr");
  heads.forEach(([name, kind]) => element(head, "th", kind ? { class: kind } : {}, name));
  const body = element(box, "tbody");
  for (const row of rows) {
    const line = element(body, "tr");
    row.forEach((cell, i) => {
      const made = element(line, "td", heads[i][1] ? { class: heads[i][1] } : {});
      if (cell instanceof Node) made.append(cell); else made.textContent = cell;
    });
  }
}

function section(title, note) {
  const made = element(page, "section");
  element(made, "h2", {}, title);
  if (note) element(made, "p", { class: "dim" }, note);
  return made;
}
