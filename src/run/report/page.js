"use strict";
// Draws the report from the JSON beside it. One run: everything known of it; several: their curves on top of
// each other and what differs. No text of a run is ever read as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
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
    for (const tick of rounds(low, high, 4)) {
      svg(area, "line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      svg(area, "text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, format(tick));
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

// Series { name, paint, x, y, dots, width } over steps. Values that are null leave a gap.
function lines(parent, title, series, format = number) {
  series = series.filter((s) => s.y.some((v) => v !== null));
  if (series.length === 0) return;
  const all = series.flatMap((s) => s.y.filter((v) => v !== null));
  const steps = series.flatMap((s) => s.x);
  const high = all.reduce((a, b) => Math.max(a, b)), low = all.reduce((a, b) => Math.min(a, b));
  const first = steps.reduce((a, b) => Math.min(a, b)), last = steps.reduce((a, b) => Math.max(a, b));
  const pad = (high - low) * 0.05;
  frame(parent, {
    title, format, first, last, low: low >= 0 && low - pad < 0 ? 0 : low - pad, high: high + pad,
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
    },
    at: (value) => {
      const step = series[0].x[nearest(series[0].x, value)];
      const found = series.map((s) => {
        const i = nearest(s.x, step);
        return [s.name + (s.x[i] === step ? "" : ` (step ${s.x[i]})`), format(s.y[i]), s.paint];
      });
      return { x: step, heading: `step ${step.toLocaleString("en-US")}`, lines: found };
    },
  });
  if (series.length > 1) key(parent, series.map((s) => [s.name, s.paint]));
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

const stateKind = (state) => ({ finished: "good", early_stop: "good", failed: "bad", killed: "bad" })[state] || "warn";
const lastOf = (values) => values.length ? values[values.length - 1] : null;

function curves(runs) {
  const several = runs.length > 1;
  const made = section("Curves", runs.some((r) => r.steps.every > 1) ?
    "Long runs are thinned: each point is the mean of several steps." : undefined);
  const box = element(made, "div", { class: "charts" });
  const place = () => element(box, "div");
  const name = (run, what) => several ? run.name : what;
  const of = (what, get) => runs.map((r, i) => ({ name: name(r, what), paint: colour(i), x: r.steps.step, y: get(r) }));
  const loss = runs.flatMap((r, i) => [
    { name: name(r, "loss"), paint: several ? colour(i) : "var(--c7)", x: r.steps.step, y: r.steps.loss, faint: true, width: 1 },
    { name: name(r, "trend"), paint: colour(i), x: r.steps.step, y: smooth(r.steps.loss), width: 2 }]);
  lines(place(), "Loss", several ? loss.filter((s, i) => i % 2 === 1) : loss);
  const evals = runs.filter((r) => r.evals.step.length > 0);
  if (evals.length > 0) {
    lines(place(), "Evaluation loss", evals.map((r) =>
      ({ name: name(r, "eval loss"), paint: colour(runs.indexOf(r)), x: r.evals.step, y: r.evals.loss, dots: true })));
  }
  lines(place(), "Learning rate", of("learning rate", (r) => r.steps.learning_rate));
  const norms = runs.flatMap((r, i) => [
    { name: name(r, "before clipping"), paint: several ? colour(i) : colour(1), x: r.steps.step, y: r.steps.gradient_norm },
    { name: name(r, "after clipping"), paint: several ? colour(i) : colour(0), x: r.steps.step, y: r.steps.clipped_gradient_norm }]);
  lines(place(), "Gradient norm", several ? norms.filter((s, i) => i % 2 === 0) : norms);
  lines(place(), "Tokens per second", of("tokens/s", (r) => r.steps.tokens_per_second));
}

function overview(run) {
  const head = element(page, "header");
  element(head, "h1", {}, run.name);
  const line = element(head, "p");
  element(line, "span", { class: `state ${stateKind(run.state)}` }, run.state.replace("_", " "));
  element(line, "span", { class: "dim" }, `  begun ${run.started} · ${run.device}, ${run.threads} threads · ${run.build}`);
  if (run.error) element(head, "p", { class: "bad" }, run.error);
  tiles(head, [
    ["steps", number(lastOf(run.steps.step) ?? 0)],
    ["first loss", number(run.steps.loss[0] ?? null)],
    ["last loss", number(lastOf(run.steps.loss))],
    ["last evaluation loss", run.evals.loss.length ? number(lastOf(run.evals.loss)) : null],
    ["best evaluation", run.best_eval_step ? `${number(run.best_eval_loss)} at step ${run.best_eval_step}` : null],
    ["trained tokens", number(run.trained_tokens)],
    ["tokens per second", number(Math.round(run.tokens_per_second))],
    ["time of the steps", duration(run.seconds)],
    ["memory planned", bytes(run.planned_bytes)],
    ["memory observed", run.observed_peak_bytes ? bytes(run.observed_peak_bytes) : null],
  ]);
}

function health(run) {
  if (run.notes.length + run.resumes.length === 0) return;
  const made = section("What happened");
  const rows = run.notes.map((n) => [n.step, n.step ? number(n.step) : "start", n.action, n.message])
    .concat(run.resumes.map((r) => [r.step, number(r.step), r.reason, r.checkpoint ? `from ${r.checkpoint}` : "from the start"]));
  rows.sort((a, b) => a[0] - b[0]);
  table(made, [["step", "n"], ["what was done", ""], ["why", "text"]], rows.map((r) => r.slice(1)));
}

function memory(facts) {
  if (!facts) return;
  const made = section("Memory of one training step",
    `Planned before the run: ${bytes(facts.arena_bytes)} in all, of which ${bytes(facts.work_bytes)} is work memory ` +
    `(no arrangement can need less than ${bytes(facts.lower_bound_bytes)}). The picture shows the work memory alive ` +
    "during each operation; weights, adapter and optimiser state stay for the whole run and are listed below.");
  const used = facts.uses.map((name, i) => i).filter((i) => facts.live.some((row) => row[i] > 0));
  const totals = facts.live.map((row) => row.reduce((a, b) => a + b, 0));
  const high = totals.reduce((a, b) => Math.max(a, b), 0), peak = totals.indexOf(high);
  frame(element(made, "div"), {
    title: `Peak: ${bytes(high)} in ${facts.peak_op}`, format: bytes, rounds: byteTicks, low: 0, high: high * 1.08, first: facts.at[0], last: lastOf(facts.at),
    draw: (area, x, y) => {
      const below = facts.at.map(() => 0);
      used.forEach((use) => {
        const up = facts.at.map((step, i) => `${x(step).toFixed(1)} ${y(below[i] + facts.live[i][use]).toFixed(1)}`);
        const down = facts.at.map((step, i) => `${x(step).toFixed(1)} ${y(below[i]).toFixed(1)}`).reverse();
        svg(area, "path", { d: `M${up.join("L")}L${down.join("L")}Z`, fill: colour(use), stroke: "none" });
        facts.at.forEach((_, i) => { below[i] += facts.live[i][use]; });
      });
      const at = facts.at[peak], right = x(at) > (x(facts.at[0]) + x(lastOf(facts.at))) / 2;
      svg(area, "line", { class: "mark", x1: x(at), x2: x(at), y1: y(high * 1.08), y2: y(0) });
      svg(area, "circle", { cx: x(at), cy: y(high), r: 4, fill: "var(--ink)" });
      svg(area, "text", { x: x(at) + (right ? -8 : 8), y: y(high) + 4, "text-anchor": right ? "end" : "start", style: "fill:var(--ink);paint-order:stroke;stroke:var(--paper);stroke-width:3px" }, `peak ${bytes(high)}`);
    },
    at: (value) => {
      const i = nearest(facts.at, value);
      return { x: facts.at[i], heading: `operation ${facts.at[i]}: ${bytes(totals[i])}`,
        lines: used.filter((use) => facts.live[i][use] > 0).map((use) => [facts.uses[use], bytes(facts.live[i][use]), colour(use)]) };
    },
  });
  key(made, used.map((use) => [facts.uses[use], colour(use)]));
  const stay = facts.uses.map((name, i) => [name, facts.static[i]]).filter(([, size]) => size > 0);
  if (facts.external_bytes > 0) stay.push(["read in the mapped file", facts.external_bytes]);
  element(made, "h3", {}, "For the whole run");
  table(made, [["use", ""], ["bytes", "n"]], stay.map(([name, size]) => [name, bytes(size)]));
  element(made, "h3", {}, "Largest at the peak");
  table(made, [["value", "text"], ["use", ""], ["type", ""], ["bytes", "n"]],
    facts.live_at_peak.map((v) => [v.name || v.op, v.use, v.type, bytes(v.bytes)]));
}

function kernels(list) {
  if (!list || list.length === 0) return;
  const total = list.reduce((sum, k) => sum + k.seconds, 0);
  const made = section("Time by kernel", `Of one micro-step and one optimiser step, measured once: ${duration(total)}.`);
  const rows = [...list].sort((a, b) => b.seconds - a.seconds).slice(0, 20).map((k) => {
    const bar = document.createElement("div");
    bar.className = "bar";
    bar.style.width = `${(100 * k.seconds / list.reduce((m, o) => Math.max(m, o.seconds), 0)).toFixed(1)}%`;
    return [k.kernel, k.program, number(k.calls), `${(1000 * k.seconds).toFixed(2)} ms`, `${(100 * k.seconds / total).toFixed(1)} %`, bar];
  });
  table(made, [["kernel", "text"], ["program", ""], ["calls", "n"], ["time", "n"], ["share", "n"], ["", "text"]], rows);
}

function dataFacts(facts) {
  if (!facts) return;
  const made = section("Data", facts.scanned_rows < facts.part_rows ?
    `Counted over a sample of ${number(facts.scanned_rows)} of ${number(facts.part_rows)} rows.` : undefined);
  tiles(made, [
    ["rows", number(facts.part_rows)], ["tokens", number(facts.tokens)],
    ["trained on", `${(100 * facts.trained_tokens / Math.max(1, facts.tokens)).toFixed(1)} %`],
    ["longest row", `${number(facts.longest_tokens)} tokens`],
    ["cut", facts.cut ? number(facts.cut) : null], ["too long, left out", facts.skipped ? number(facts.skipped) : null],
    ["without a trained token", facts.untrainable ? number(facts.untrainable) : null],
  ]);
  const bins = facts.length_histogram;
  const from = bins.findIndex((n) => n > 0), to = bins.length - [...bins].reverse().findIndex((n) => n > 0);
  if (from < 0) return;
  element(made, "h3", {}, "Rows by length in tokens");
  const most = bins.reduce((a, b) => Math.max(a, b));
  table(made, [["tokens", "n"], ["rows", "n"], ["", "text"]], bins.slice(from, to).map((count, i) => {
    const bin = from + i, bar = document.createElement("div");
    bar.className = "bar";
    bar.style.width = `${(100 * count / most).toFixed(1)}%`;
    return [bin === 0 ? "0" : bin === 1 ? "1" : `${number(2 ** (bin - 1))}–${number(2 ** bin - 1)}`, number(count), bar];
  }));
}

function samples(list) {
  const made = section("Samples", list && list.length ? "Greedy answers, before and after training." :
    "None were asked for; --samples 3 shows three answers before and after.");
  if (!list || list.length === 0) return;
  table(made, [["prompt", "text"], ["before", "text"], ["after", "text"], ["in the data", "text"]],
    list.map((s) => [s.prompt, s.before ?? "–", s.after ?? "–", s.expected ?? "–"]));
}

function recipe(run) {
  const made = section("Recipe", "The settings in force; `tenon train` reads them back.");
  element(made, "pre", {}, run.recipe);
}

function overviewOfSeveral(runs) {
  element(page, "h1", {}, `${runs.length} runs`);
  key(page, runs.map((r, i) => [r.name, colour(i)]));
  const made = section("Results");
  table(made, [["run", "text"], ["state", ""], ["steps", "n"], ["last loss", "n"], ["last eval loss", "n"], ["tokens/s", "n"], ["time", "n"]],
    runs.map((r) => [r.name, r.state, number(lastOf(r.steps.step) ?? 0), number(lastOf(r.steps.loss)), number(lastOf(r.evals.loss)),
      number(Math.round(r.tokens_per_second)), duration(r.seconds)]));
  const settings = runs.map((r) => new Map(r.recipe.split("\n").filter(Boolean).map((l) => [l.split(": ")[0], l.split(": ").slice(1).join(": ")])));
  const names = [...new Set(settings.flatMap((s) => [...s.keys()]))];
  const different = names.filter((n) => n !== "out" && n !== "overwrite" && new Set(settings.map((s) => s.get(n))).size > 1);
  if (different.length > 0) {
    table(section("Settings that differ"), [["setting", ""], ...runs.map((r) => [r.name, "text"])],
      different.map((n) => [n, ...settings.map((s) => s.get(n) ?? "–")]));
  }
}

page.replaceChildren();
if (data.runs.length === 1) {
  const run = data.runs[0];
  document.title = `${run.name} · Tenon`;
  overview(run);
  health(run);
  curves(data.runs);
  memory(run.facts.memory);
  kernels(run.facts.kernels);
  dataFacts(run.facts.data);
  samples(run.facts.samples);
  recipe(run);
} else {
  document.title = `${data.runs.length} runs · Tenon`;
  overviewOfSeveral(data.runs);
  curves(data.runs);
}

let pending = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => redraws.forEach((paint) => paint()));
});
