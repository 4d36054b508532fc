// ---- the decision on one page: what was chosen, by whom, on which data, what it costs whom ----
const unknowns = () => {
  const { record } = active();
  const said = [];
  const mix = mixOf(active(), choosingSplit);
  if (mix.length > 1) said.push("The choice lies between two that were evaluated: its numbers are interpolated, not measured.");
  const sure = outcomesOf(active()).some(({ cells }) => isNumber(cells[0].at(active(), state.ray, lastSplit)[1]));
  said.push(sure ? `The 95 % intervals are for more ${words.rows} of the same kind, not for other places, times or groups.` : "The uncertainty of the numbers was not computed.");
  if (words.groups.length) said.push(`Only ${listing(words.groups, "and")} were compared; gaps within these groups or between others are not known.`);
  said.push("The numbers come from one training run; another seed would give slightly different ones.");
  const found = (Array.isArray(record.findings) ? record.findings : []).filter(isGroup).map((one) => one.text);
  return [...new Set([...said, ...[found, record.caveats ?? []].flat().map(unquoted)])];
};
// A limit holds on the data by which choices are made.
const keeps = (name, bound, side) => {
  const value = blend(chosenFrom().columns[name], mixOf(active(), choosingSplit));
  return isNumber(value) && side * value <= side * bound + 1e-12;
};
const finite = (value) => (isNumber(value) ? value : null);
const decision = () => {
  const run = active();
  const { record } = run;
  const mix = mixOf(run, choosingSplit);
  const costs = Object.fromEntries(splits.map((split) => [split, outcomesOf(run).map((outcome) => ({
    outcome: outcome.title,
    gap: isNumber(gapOf(outcome, run, state.ray, split)) ? { name: outcome.gap, value: gapOf(outcome, run, state.ray, split), interval: gapEnds(run, state.ray, split, outcome.gap) } : null,
    of: outcome.cells.map((cell) => {
      const [value, low, high] = cell.at(run, state.ray, split);
      return { who: cell.who || outcome.title, unit: cell.unit, value: finite(value), interval: isNumber(low) ? [low, high] : null };
    }),
  }))]));
  return {
    format: "paretocosmos decision 1", asked: $("headline").textContent, decided: state.touched, said: `On ${dataName(lastSplit)}: ${leadText(run, state.ray, lastSplit)}`,
    by: state.by, why: state.why, on: new Date().toISOString().slice(0, 10),
    chosen: { run: run.label, folder: run.folder, ray: Object.fromEntries(names.map((name, j) => [name, state.ray[j]])), evaluated: mix.length === 1, threshold: words.threshold ?? null },
    data: { name: record.name ?? null, from: words.data || null, rows: words.sizes, what: words.rows, answers_sha256: typeof record.answers === "string" ? record.answers : null },
    bounds: boundsOf(criteria()).map(({ name, bound, side }) => ({ name, label: labelOf(name), [side > 0 ? "at_most" : "at_least"]: bound, split: choosingSplit, kept: keeps(name, bound, side), reached: Object.fromEntries(splits.map((split) => [split, finite(valueAt(run, state.ray, split, name))])) })),
    best: bestName(), by_limit: state.byBounds, questions: questionsOf(), constants_allowed: state.constants, cost: costText(lastSplit), worse: worseText(lastSplit), costs, not_known: unknowns(),
    model: { sha256: record.files?.["model.safetensors"] ?? null, version: record.version ?? null, seed: record.seed ?? null, method: named(record.method) ?? null },
  };
};
const sheetRows = (made) => made.costs[lastSplit].map(({ outcome, gap, of }) => make("tr", {}, make("th", { scope: "row" }, outcome),
  make("td", {}, ...of.flatMap(({ who, unit, value, interval }, at) => [at ? make("br") : "", `${who === outcome ? "" : `${who}: `}${cellText(unit, value)} ${unit}${interval ? ` (${interval.map((end) => cellText(unit, end)).join(" to ")})` : ""}`])),
  make("td", {}, gap ? pointsText(gap.value, gap.interval) : "")));
const showRecord = () => {
  const made = decision();
  const line = (label, ...text) => make("p", {}, make("b", {}, `${label} `), ...text);
  const weights = listing(names.map((_, j) => `${percent(state.ray[j], 1)} on ${wishOf(j)}`), "and");
  const broken = made.bounds.filter((one) => !one.kept);
  const several = made.bounds.length > 1;
  const kept = `${several ? "them" : "it"} on ${dataName(choosingSplit)}`;
  const verdict = () => {
    if (broken.length) return `this choice does not keep ${several ? `the limit on ${listing(broken.map((one) => one.label), "and")} on ${dataName(choosingSplit)}` : kept}.`;
    return state.byBounds ? `of the choices that keep ${kept}, the one with the ${way(bestName())}.` : `this choice keeps ${kept}, and was ${state.asked ? "found by questions" : "set by hand"}.`;
  };
  $("sheet").replaceChildren(
    make("p", { class: "sheet-title" }, made.asked), make("p", { class: "lead" }, made.said),
    line("Decided by", made.by || "____________________", ` on ${made.on}`, made.why ? `, because ${made.why}` : ""),
    line("Chosen", `${made.decided ? "" : "nobody has chosen yet: the page opened at "}${runs.length > 1 ? `in ${made.chosen.run}, ` : ""}a weight of ${weights}; ${made.chosen.evaluated ? "measured" : "interpolated"}${made.questions.length ? `; found by ${made.questions.length} questions` : ""}. ${decidedAt()}`),
    line(several ? "Limits" : "Limit", made.bounds.length ? `${reachedText(true)} ${capital(verdict())}` : "none was set."),
    line("Cost", [made.cost || "not known.", made.worse].filter(Boolean).join(" ")),
    line("Data", `${made.data.name ?? "not named"}${made.data.from ? `, ${made.data.from}` : ""}. Below: ${countedOn(lastSplit)}.`),
    make("table", {}, make("thead", {}, make("tr", {}, ...["What happens", "To whom, with 95 % intervals", "Gap"].map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...sheetRows(made))),
    make("p", {}, make("b", {}, "Not known")), make("ul", {}, ...made.not_known.map((text) => make("li", {}, text))),
    make("p", { class: "quiet small" }, `Model ${made.model.sha256?.slice(0, 16) ?? "without a checksum"}, seed ${made.model.seed ?? DASH}, paretocosmos ${made.model.version ?? DASH}.`));
};
const setUpRecord = () => {
  $("record-print").addEventListener("click", () => { showRecord(); print(); });
  $("record-json").addEventListener("click", () => save(new Blob([`${JSON.stringify(decision(), null, 1)}\n`], { type: "application/json" }), fileName("json")));
  for (const key of written) $(`record-${key}`).addEventListener("input", (event) => { state[key] = event.target.value; changed("record"); });
  addEventListener("beforeprint", showRecord);
  $("record-open").addEventListener("change", (event) => {
    const files = [...event.target.files];
    event.target.value = ""; // the same file may be opened again
    if (files.length) openRecords(files);
  });
};
// A record is untrusted text: what it names must be on this page, and its numbers must be numbers.
const readRecord = (text) => {
  let made = null;
  try { made = JSON.parse(text); } catch { /* as a record of something else */ }
  if (!isGroup(made) || made.format !== "paretocosmos decision 1" || !isGroup(made.chosen) || !Array.isArray(made.bounds)) return "This file is no decision that was saved from such a page.";
  const ray = names.map((name) => (isGroup(made.chosen.ray) && Object.hasOwn(made.chosen.ray, name) ? made.chosen.ray[name] : NaN));
  if (!ray.every((one) => isNumber(one) && one >= 0) || Object.keys(made.chosen.ray).length !== J) return "This decision trades other things than this page.";
  const run = runs.find((one) => one.label === made.chosen.run) ?? (runs.length === 1 ? runs[0] : null);
  if (!run) return `This page has no run “${made.chosen.run}”, in which the decision was made.`;
  const same = (made.data?.answers_sha256 ?? null) === (run.record.answers ?? null) && (made.model?.sha256 ?? null) === (run.record.files?.["model.safetensors"] ?? null);
  return { made, ray: onSimplex(ray), run: run.index, same };
};
// Its questions, as the address has them, where their rays were evaluated here.
const askedIn = (questions) => (Array.isArray(questions) ? questions : []).filter(isGroup).flatMap(({ first, second, preferred }) => {
  const letter = Object.keys(ANSWERS).find((one) => ANSWERS[one] === preferred);
  const places = [first, second].map((ray) => (Array.isArray(ray) && ray.length === J ? nearest(chosenFrom().rays, chosenFrom().count, J, ray, 1)[0] : [0, 1]));
  return letter && places.every(([, apart]) => apart < 1e-6) ? [`${places[0][0]}${letter}${places[1][0]}`] : [];
}).join(" ");
const openRecord = (text) => {
  const read = readRecord(text);
  const refused = typeof read === "string";
  say($("record-note"), refused ? read : read.same ? "Opened." : "Opened, but the decision was made with another model or other data: its numbers are those of this page.");
  if (refused) return;
  const { made } = read;
  Object.assign(state, { max: Object.create(null), min: Object.create(null), run: read.run, best: quantities.includes(made.best) ? made.best : "", constants: made.constants_allowed === true });
  for (const key of written) state[key] = String(made[key] ?? "");
  for (const one of made.bounds.filter((each) => isGroup(each) && quantities.includes(each.name))) {
    if (isNumber(one.at_most)) state.max[one.name] = one.at_most;
    if (isNumber(one.at_least)) state.min[one.name] = one.at_least;
  }
  state.shown[read.run] = true;
  setRay(read.ray, made.by_limit === true, askedIn(made.questions));
  state.touched = made.decided !== false;
  changed(...KINDS);
};
// One is taken; two are compared, as A and B, with what was said about them.
const openRecords = async (files) => {
  if (files.length === 1) return openRecord(await files[0].text());
  const read = await Promise.all(files.slice(0, 2).map(async (file) => readRecord(await file.text())));
  const refused = read.findIndex((one) => typeof one === "string");
  if (refused >= 0) return say($("record-note"), `${files[refused].name}: ${read[refused]}`);
  read.forEach(({ made, ray, run }, at) => {
    const limits = made.bounds.filter(isGroup).map((one) => limitText({ name: String(one.name), bound: Number(one.at_most ?? one.at_least), side: "at_most" in one ? 1 : -1 }));
    state.pins[LETTERS[at]] = { run, ray, said: [String(made.by || files[at].name), String(made.why || DASH), listing(limits, "and") || "none"] };
    state.shown[run] = true;
  });
  say($("record-note"), `${files.length > 2 ? "The first two" : "Both"} are compared as A and B${read.every(({ same }) => same) ? "" : "; they were made with another model or other data, and the numbers are those of this page"}.`);
  changed("pins", "run");
  requestAnimationFrame(() => $("pins").scrollIntoView());
};
const showFields = () => {
  for (const key of written) if ($(`record-${key}`).value !== state[key]) $(`record-${key}`).value = state[key];
};
on("record", showFields);
on("ray criteria run record", unhurried("record", showRecord));
