// ---- what a choice does to whom: shares of people or images with their intervals ----
// A cell gives [value, low, high] of a run at a ray, on a split; NaN where no interval is known.
const countedCells = (outcome, first) => outcome.cells.map((cell, c) => ({
  ...cell, unit: "of 100",
  at: (run, ray, split) => {
    const { shares, counted } = run.answers;
    const mix = mixture(counted, ray, run.networks > 0);
    const from = (first + c) * counted.count;
    return [0, 1, 2].map((k) => mix.reduce((sum, [at, weight]) => sum + weight * shares[split][3 * (from + at) + k], 0));
  },
  column: (run, split) => run.answers.shares[split].subarray(3 * (first + c) * run.answers.counted.count, 3 * (first + c + 1) * run.answers.counted.count),
}));
const columnCells = (name) => [{
  who: "", unit: unitOf(name), sentence: "",
  at: (run, ray, split) => [blend(run.front(split).columns[name], mixture(run.front(split), ray, run.networks > 0)), NaN, NaN],
  column: (run, split) => run.front(split).columns[name],
}];
// Those of the active run: counted where its answers were, else the numbers of the front.
const outcomesOf = (run) => {
  if (run.answers && words.outcomes.length && run.answers.shares[choosingSplit]) {
    let first = 0;
    return words.outcomes.map((outcome) => {
      const cells = countedCells(outcome, first);
      first += outcome.cells.length;
      return { ...outcome, cells };
    });
  }
  const shown = [...new Set([...traded, ...quantities.filter((name) => !names.includes(name) && unitOf(name)), ...names.filter((name) => plainOf(name) === name)])].slice(0, 6);
  return shown.map((name) => ({ title: capital(labelOf(name)), name, meaning: measureOf(name).meaning, gap: "", larger: isLarger(name), lead: false, cells: columnCells(name) }));
};
// The interval of a gap, where it is known: [low, high].
const gapEnds = (run, ray, split, name) => {
  const ends = run.answers?.gaps[split] ?? {};
  if (!name || !Object.hasOwn(ends, name)) return null;
  const mix = mixture(run.answers.counted, ray, run.networks > 0);
  return [0, 1].map((k) => mix.reduce((sum, [at, weight]) => sum + weight * ends[name][2 * at + k], 0));
};
// The intervals of a metric at the counted rays, where they are known: [low, high] by the place of a ray.
const endsOf = (run, split, name) => {
  const gaps = run.answers?.gaps[split] ?? {};
  if (Object.hasOwn(gaps, name)) return (k) => [gaps[name][2 * k], gaps[name][2 * k + 1]];
  const shares = run.answers?.shares[split];
  const wrong = wrongCell(name);
  if (!shares || wrong < 0) return null;
  const at = (k) => 3 * (wrong * run.answers.counted.count + k);
  return name === "misclassification" ? (k) => [shares[at(k) + 1], shares[at(k) + 2]] : (k) => [1 - shares[at(k) + 2], 1 - shares[at(k) + 1]];
};
// The same at any ray: [low, high], or null.
const endsAt = (run, ray, split, name) => {
  const ends = endsOf(run, split, name);
  return ends && [0, 1].map((end) => mixture(run.answers.counted, ray, run.networks > 0).reduce((sum, [k, weight]) => sum + weight * ends(k)[end], 0));
};
// Where the wrong answers of everybody are counted that a metric tells of; those of several heads come in their order.
const wrongCell = (name) => {
  const cells = words.outcomes.flatMap((outcome) => outcome.cells);
  if (page.heads.length < 2) return ["misclassification", "accuracy"].includes(name) ? cells.findIndex((cell) => cell.counted === "wrong" && !cell.group) : -1;
  const head = page.heads.findIndex((one) => name === `accuracy_${one.name}`);
  return cells[head]?.counted === "wrong" ? head : -1;
};
// A share that one answer for everybody would have: the one that is right most often.
const constantAt = (name, split) => {
  const counts = active().answers?.confusion[split]?.[0];
  if (!counts || page.heads.length > 1 || !["misclassification", "accuracy"].includes(name)) return NaN;
  const C = page.heads[0].classes.length;
  const sizes = Array.from({ length: C }, (_, row) => counts.subarray(row * C, (row + 1) * C).reduce((sum, one) => sum + one, 0));
  const right = Math.max(...sizes) / sizes.reduce((sum, one) => sum + one, 0);
  return name === "accuracy" ? right : 1 - right;
};
// The gap of an outcome: the metric where the front has it, else between the groups that are shown.
const gapOf = (outcome, run, ray, split) => {
  const known = valueAt(run, ray, split, outcome.gap);
  const groups = outcome.cells.filter((cell) => cell.group);
  if (isNumber(known) || !outcome.gap || groups.length < 2) return known;
  const shares = groups.map((cell) => cell.at(run, ray, split)[0]);
  return Math.max(...shares) - Math.min(...shares);
};
const pointsText = (value, ends) => `${fixed(100 * value, 1)}\u00a0points${ends ? ` (${fixed(100 * ends[0], 1)} to ${fixed(100 * ends[1], 1)})` : ""}`;
const valueAt = (run, ray, split, name) => {
  const { columns } = run.front(split);
  return name in columns ? blend(columns[name], mixture(run.front(split), ray, run.networks > 0)) : NaN;
};
const cellText = (unit, value, digits = 1) => (!isNumber(value) ? DASH : unit ? fixed(100 * value, digits) : plain(value));

// ---- the first sentence ----
const MOST_SAID = 3;
const short = (text) => (text.length > 28 ? `${text.slice(0, 27).trimEnd()}…` : text);
const whole = (value) => (isNumber(value) ? String(Math.round(100 * value)) : "?");
// Texts, and numbers as { number }, of what is chosen: "Of 100 men, 21 are selected; of 100 women, 9."
const leadOf = (run, ray, split) => {
  const all = outcomesOf(run);
  const number = (cell) => ({ number: whole(cell.at(run, ray, split)[0]) });
  if (all[0].name) {
    return all.slice(0, J).flatMap(({ name, title, cells }, at) => [`${at ? "; " : ""}${at ? title.charAt(0).toLowerCase() + title.slice(1) : title} `, { number: inUnits(name, cells[0].at(run, ray, split)[0]) }]).concat(".");
  }
  // of many groups the lowest and the highest; of a long name its beginning
  const told = all[0].cells.filter((cell) => isNumber(cell.at(run, ray, split)[0]));
  // of rows without groups and true answers, how many get a yes
  const [rows, answer] = labelOf("positive_rate").split(" who are ");
  if (!told.length) return answer ? [`Of 100 ${rows}, `, { number: whole(valueAt(run, ray, split, "positive_rate")) }, ` are ${answer}.`] : ["Nothing is known of the answers."];
  const ranked = [...told].sort((a, b) => a.at(run, ray, split)[0] - b.at(run, ray, split)[0]);
  const led = told.length > MOST_SAID ? [ranked[0], ranked[ranked.length - 1]] : told;
  const said = led.flatMap((cell, at) => {
    const who = short(cell.who);
    const [before, after] = cell.sentence.split("#").map((text) => text.replaceAll(cell.who, who));
    if (!at) return [before, number(cell), agreeing(after, number(cell).number)];
    const end = before.indexOf(who) + who.length; // what else is true of them has been said
    return before ? [`; ${before.slice(0, end + Number(before[end] === "”"))}, `, number(cell), ""] : [", ", number(cell), ` of 100 ${who}`];
  }).concat(led.length < told.length ? ` (the lowest and the highest of ${told.length}). ` : ". ");
  const other = all.slice(1).find((one) => one.lead);
  if (other && isNumber(other.cells[0].at(run, ray, split)[0])) {
    const [before, after] = other.cells[0].sentence.split("#");
    said.push(before || "In all, ", number(other.cells[0]), `${agreeing(after, number(other.cells[0]).number)}.`);
  }
  if (said[0]) said[0] = capital(said[0]);
  return said;
};
const leadText = (run, ray, split) => leadOf(run, ray, split).map((part) => part.number ?? part).join("").trim();

// ---- drawn: a dot and its interval on a line that does not move ----
let strips = [];
const niceTop = (value) => [0.02, 0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.75, 1].find((top) => value <= top) ?? 1;
// Shares have one scale, so that 5 of 100 never looks like 50.
const isShare = ({ name }) => !name || unitOf(name) !== "";
const spanOf = (outcome, outcomes) => {
  const columns = (isShare(outcome) ? outcomes.filter(isShare) : [outcome]).flatMap(({ cells }) => cells.map((cell) => cell.column(active(), state.split)));
  if (!isShare(outcome)) return domainOf(columns);
  let top = 0;
  for (const column of columns) for (const value of column) if (value > top) top = value;
  return [0, niceTop(top)];
};
const buildOutcomes = () => {
  strips = outcomesOf(active()).map((outcome, _, all) => {
    const span = spanOf(outcome, all);
    const gap = make("span", { class: "gap" });
    const cells = outcome.cells.map((cell) => {
      const parts = { range: make("i", { class: "range" }), free: make("s", { class: "free" }), dot: make("b", { class: "dot" }), A: make("em", { class: "pin" }, "A"), B: make("em", { class: "pin" }, "B"), value: make("span", { class: "value" }), ends: make("span", { class: "ends-of" }) };
      const node = make("div", { class: "cell" }, make("span", { class: "who", title: cell.who }, cell.who), make("span", { class: "track", "aria-hidden": "true" }, parts.range, parts.free, parts.A, parts.B, parts.dot), parts.value, parts.ends);
      return { cell, node, ...parts };
    });
    const scale = !isShare(outcome) ? span.map(plain) : span.map((one) => fixed(100 * one, 0));
    const head = make("summary", {}, make("h3", {}, outcome.title));
    const node = make("div", { class: "outcome" }, make("div", { class: "outcome-head" }, outcome.meaning ? make("details", { class: "define" }, head, make("p", {}, outcome.meaning)) : make("h3", {}, outcome.title), gap),
      ...cells.map((one) => one.node), make("div", { class: "cell scale", "aria-hidden": "true" }, make("span"), make("span", { class: "track-ends" }, make("span", {}, scale[0]), make("span", {}, scale[1])), make("span"), make("span")));
    return { outcome, span, gap, cells, node };
  });
  $("outcomes").replaceChildren(...strips.map((one) => one.node));
  const lone = !strips.some(({ cells }) => isNumber(cells[0].cell.at(active(), state.ray, state.split)[1]));
  say($("counted"), `Counted on ${countedOn(state.split)}. ${decidedAt()}${lone ? "The uncertainty of these numbers was not computed." : "Bars are 95 % intervals: how far a number may be off because only so many cases were counted."} The thin mark is the choice without any limit.`);
  showConsequences();
};
const putAt = (node, span, value) => { node.style.left = `${(100 * clamp((value - span[0]) / (span[1] - span[0]), 0, 1)).toFixed(2)}%`; };
const showConsequences = () => {
  const run = active();
  say($("decision-title"), `${state.touched ? "Current choice" : "Nobody has chosen yet: equal weights"}, on ${dataName(state.split)}`);
  const said = leadOf(run, state.ray, state.split);
  const text = said.map((part) => part.number ?? part).join("");
  if ($("lead").textContent !== text) $("lead").replaceChildren(...said.map((part) => (part.number ? make("b", {}, part.number) : part)));
  const best = unbounded();
  const reference = best.at < 0 ? null : chosenFrom().ray(best.at);
  for (const { outcome, span, gap, cells } of strips) {
    for (const { cell, range, free, dot, value, ends, A, B } of cells) {
      const [now, low, high] = cell.at(run, state.ray, state.split);
      putAt(dot, span, now);
      dot.hidden = !isNumber(now);
      const without = reference ? cell.at(run, reference, state.split)[0] : NaN;
      free.hidden = !isNumber(without);
      if (isNumber(without)) putAt(free, span, without);
      range.hidden = !isNumber(low);
      if (isNumber(low)) {
        putAt(range, span, low);
        range.style.width = `${(100 * (Math.min(high, span[1]) - low) / (span[1] - span[0])).toFixed(2)}%`;
      }
      say(value, `${cellText(cell.unit, now)}${cell.unit ? ` ${cell.unit}` : ""}`);
      say(ends, isNumber(low) ? `${cellText(cell.unit, low)} to ${cellText(cell.unit, high)}` : "");
      for (const [letter, node] of [["A", A], ["B", B]]) {
        const pin = state.pins[letter];
        const there = pin && (pin.run === state.run || runs[pin.run].answers || outcome.name) ? cell.at(runs[pin.run], pin.ray, state.split)[0] : NaN;
        node.hidden = !isNumber(there);
        if (isNumber(there)) putAt(node, span, there);
      }
    }
    const shown = gapOf(outcome, run, state.ray, state.split);
    const ends = gapEnds(run, state.ray, state.split, outcome.gap);
    say(gap, isNumber(shown) ? `gap ${pointsText(shown, ends)}` : "");
  }
};
on("run view", buildOutcomes);
on("ray pins criteria", showConsequences);
