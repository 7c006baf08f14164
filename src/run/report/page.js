// Draws the report from the JSON beside it, with charts.js. One run: everything known of it; several: their
// curves on top of each other and what differs.

const data = JSON.parse(document.getElementById("data").textContent);
const stateKind = (state) => ({ finished: "good", early_stop: "good", failed: "bad", killed: "bad" })[state] || "warn";
const lastOf = (values) => values.length ? values[values.length - 1] : null;

// What the record says of a run on its way, for the curve of its loss.
function eventsOf(run) {
  const paint = { warn: "var(--warn)", skip: "var(--bad)", rollback: "var(--bad)", stop: "var(--bad)" };
  const what = { warn: "warning", skip: "step thrown away", rollback: "went back", stop: "stopped" };
  return run.notes.filter((note) => note.step > 0 && paint[note.action])
    .map((note) => ({ step: note.step, what: what[note.action], paint: paint[note.action] }))
    .concat(run.resumes.filter((resume) => resume.reason !== "rollback")
      .map((resume) => ({ step: resume.step, what: "resumed", paint: "var(--c3)" })));
}

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
  lines(place(), "Loss", several ? loss.filter((s, i) => i % 2 === 1) : loss, several ? [] : eventsOf(runs[0]));
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
  element(line, "span", { class: "dim" }, `  begun ${run.started} · ${run.device}, ${run.threads} ${run.threads === 1 ? "thread" : "threads"} · ${run.build}`);
  if (run.error) element(head, "p", { class: "bad" }, run.error);
  tiles(head, [
    ["steps", number(lastOf(run.steps.step) ?? 0)],
    ["first loss", number(run.steps.loss[0] ?? null)],
    ["last loss", number(lastOf(run.steps.loss))],
    ["last evaluation loss", run.evals.loss.length ? number(lastOf(run.evals.loss)) : null],
    [`best evaluation loss, step ${number(run.best_eval_step)}`, run.best_eval_step ? number(run.best_eval_loss) : null],
    ["trained tokens", number(run.trained_tokens)],
    ["tokens per second", number(Math.round(run.tokens_per_second))],
    ["time of the steps", duration(run.seconds)],
    ["memory planned", bytes(run.planned_bytes)],
    ["memory of the process", run.observed_peak_bytes ? bytes(run.observed_peak_bytes) : null],
  ]);
}

function health(run) {
  if (run.notes.length + run.resumes.length === 0) return;
  const made = section("What happened");
  const rows = run.notes.map((n) => [n.step, n.step ? number(n.step) : "start", n.action, n.message])
    .concat(run.resumes.map((r) => [r.step, number(r.step), r.reason, r.checkpoint ? `from ${r.checkpoint}` : "from the start"]));
  rows.sort((a, b) => a[0] - b[0]);
  const heads = [["step", "n"], ["action", ""], ["why", "text"]], lines = rows.map((r) => r.slice(1));
  const shown = lines.length > 12 ? 8 : lines.length;
  table(made, heads, lines.slice(0, shown));
  if (shown === lines.length) return;
  const more = element(made, "details");
  element(more, "summary", {}, `${lines.length - shown} more`);
  table(more, heads, lines.slice(shown));
}

function memory(facts, run) {
  if (!facts) return;
  const made = section("Memory of one training step",
    `Planned before the run: ${bytes(facts.arena_bytes)} in all, of which ${bytes(facts.work_bytes)} is work memory ` +
    `(no arrangement can need less than ${bytes(facts.lower_bound_bytes)}). The picture shows the work memory alive ` +
    "during each operation; weights, adapter and optimiser state stay for the whole run and are listed below." +
    (run.observed_peak_bytes > facts.arena_bytes ? ` The process held ${bytes(run.observed_peak_bytes)} at most: besides ` +
      "what was planned, what it read of the model's file, the data set and the program itself." : ""));
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
    return [k.kernel, k.program, number(k.calls), duration(k.seconds), `${(100 * k.seconds / total).toFixed(1)} %`, bar];
  });
  table(made, [["kernel", "text"], ["program", ""], ["calls", "n"], ["time", "n"], ["share", "n"], ["", "bars"]], rows);
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
  table(made, [["tokens", "n"], ["rows", "n"], ["", "bars"]], bins.slice(from, to).map((count, i) => {
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
  memory(run.facts.memory, run);
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
