// ---- the criteria, as a sentence with bounds in it ----
const way = (name) => {
  const { label } = measureOf(name);
  // what is counted in hundredths of people or answers is many or few, not high or low
  if (unitOf(name) === "of 100") return `${isLarger(name) ? "most" : "fewest"} ${label}`;
  return `${isLarger(name) ? "most" : label.startsWith("gap") || label.startsWith("difference") ? "smallest" : "lowest"} ${label}`;
};
const setUpCriteria = () => {
  $("criteria").addEventListener("submit", (event) => event.preventDefault());
  $("criteria-run").hidden = runs.length < 2;
  if (runs.length < 2) say($("criteria-verb"), "Take the");
  options($("run"), runs.map((run) => [run.index, run.label]), state.run);
  if (runs.length > 1) say($("criteria-verb"), "take the");
  $("run").addEventListener("change", (event) => {
    state.run = Number(event.target.value);
    state.shown[state.run] = true;
    if (hasBounds()) choose();
    changed("criteria", "run", "ray");
  });
  $("best").addEventListener("change", (event) => { state.best = event.target.value; choose(); });
  // An arrow key on a closed list would take the first bound at once: it opens the list instead.
  $("add-bound").addEventListener("keydown", (event) => {
    if (event.altKey || !["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    try { event.target.showPicker(); } catch { /* a browser that cannot: Alt and an arrow key open it */ }
  });
  $("add-bound").addEventListener("change", (event) => {
    const name = event.target.value;
    const now = blend(chosenFrom().columns[name], mixOf(active(), choosingSplit));
    const [low, high] = domainOf([chosenFrom().columns[name]]);
    setBound(name, roundLimit(isNumber(now) ? now : isLarger(name) ? low : high, [low, high], scaleOf(name), isLarger(name)));
    // shown at once, so that the field for its number is there to be written in
    showCriteria();
    $("bounds").querySelector(`input[data-at="${quantities.indexOf(name)}"]`).select();
  });
};
const showCriteria = () => {
  options($("best"), byPlainness.map((name) => [name, way(name)]), bestName());
  $("run").value = state.run;
  for (const [at, box] of $("legend").querySelectorAll("input").entries()) box.checked = state.shown[at];
  const bounded = quantities.filter((name) => boundOf(name) !== undefined);
  const held = [...$("bounds").querySelectorAll("input")].map((one) => one.dataset.at).join();
  if (held !== bounded.map((name) => quantities.indexOf(name)).join()) {
    $("bounds").replaceChildren(...bounded.flatMap((name, at) => [make("span", {}, at ? "and" : "where"), chip(name)]));
  }
  for (const name of bounded) {
    const field = $("bounds").querySelector(`input[data-at="${quantities.indexOf(name)}"]`);
    if (field !== document.activeElement && Number(field.value) !== inField(name)) field.value = inField(name);
  }
  const free = byPlainness.filter((name) => boundOf(name) === undefined);
  options($("add-bound"), [["", bounded.length ? "and a limit on …" : "with a limit on …"], ...free.map((name) => [name, `${labelOf(name)} at ${isLarger(name) ? "least" : "most"}`])], "");
  $("add-bound").hidden = !free.length;
};
// A limit in the unit of its metric.
const inField = (name) => Number((boundOf(name) * scaleOf(name)).toPrecision(8));
const chip = (name) => {
  const sign = isLarger(name) ? "at least" : "at most";
  const field = make("input", { type: "number", step: "any", "data-at": quantities.indexOf(name), "aria-label": `${labelOf(name)} ${sign}${unitOf(name) ? `, ${unitOf(name)}` : ""}` });
  field.value = inField(name);
  field.addEventListener("input", () => { if (field.value !== "" && isNumber(Number(field.value))) setBound(name, Number((Number(field.value) / scaleOf(name)).toPrecision(12))); });
  const remove = make("button", { type: "button", class: "remove", "aria-label": `Remove the limit on ${labelOf(name)}` }, "×");
  remove.addEventListener("click", () => { setBound(name, null); showCriteria(); $("add-bound").focus(); });
  return make("span", { class: "chip" }, `${labelOf(name)} ${sign}`, make("span", { class: "amount" }, field, make("span", {}, unitOf(name)), remove));
};

// Of each limit: what was asked, what was reached on which data, and whether that keeps it.
const reachedOn = ({ name, bound, side }, split) => {
  const value = valueAt(active(), state.ray, split, name);
  const ends = split === choosingSplit ? null : gapEnds(active(), state.ray, split, name);
  if (!isNumber(value)) return `${splitName(split).toLowerCase()} not known`;
  const isKept = side * value <= side * bound + 1e-12;
  const doubt = isKept && ends && side * ends[side > 0 ? 1 : 0] > side * bound ? ", though perhaps not by new cases" : "";
  return `${splitName(split).toLowerCase()} ${bare(name, value)}${ends ? ` (95 % interval: ${bare(name, ends[0])} to ${bare(name, ends[1])})` : ""}, ${isKept ? "kept" : "not kept"}${doubt}`;
};
const reachedText = (isNamed) => boundsOf(criteria()).map((one) => {
  const asked = limitText(one).slice(labelOf(one.name).length + 1);
  return `${isNamed ? `${capital(theOf(one.name))}: asked` : "Asked"} ${asked}; ${[...new Set([choosingSplit, lastSplit])].map((split) => reachedOn(one, split)).join("; ")}.`;
}).join(" ");

const bestOf = (count) => (count === 1 ? "The only choice that keeps" : `The best of ${count} choices that keep`);
// Another run that is shown and gets further within the limits, on the data by which choices are made.
const betterRun = (cost) => visible().filter((run) => run !== active()).flatMap((run) => {
  const front = run.front(choosingSplit);
  const { at } = pick(front, criteria());
  const reached = at < 0 ? NaN : costOf(front, criteria())(at);
  return reached < cost ? [{ run, reached, ray: front.ray(at), value: front.columns[bestName()][at] }] : [];
}).sort((a, b) => a.reached - b.reached)[0];
// What came of it: chosen, moved away from, or refused, with how close one comes.
const showVerdict = () => {
  const front = chosenFrom();
  const found = pick(front, criteria());
  const box = $("verdict");
  box.classList.toggle("refused", found.at < 0);
  const wanted = boundsOf(criteria()).map(limitText).join(" and ");
  const button = (text, act) => {
    const made = make("button", { type: "button", class: "link" }, text);
    made.addEventListener("click", act);
    return made;
  };
  if (found.at < 0) {
    const near = boundsOf(criteria()).map(({ name }) => `${inUnits(name, front.columns[name][found.closest])}`).join(" and ");
    const parts = [wanted ? `No choice keeps this on ${dataName(choosingSplit)}: ${wanted}. The closest has ${near}. ` : `Every choice gives everybody the same answer on ${dataName(choosingSplit)}. `];
    if (found.closest !== undefined && wanted) parts.push(button("Show the closest", () => setRay(front.ray(found.closest))), " ");
    if (found.constant && !state.constants) parts.push("Giving everybody the same answer would keep the limit. ", button("Allow that", () => { state.constants = true; choose(); }));
    box.replaceChildren(...parts);
    return;
  }
  const parts = [];
  const there = mixOf(active(), choosingSplit);
  const same = there.length === 1 && there[0][0] === found.at;
  if (same && (state.byBounds || hasBounds())) parts.push(hasBounds() ? `${bestOf(kept[state.run].reduce((sum, one) => sum + one, 0))} ${boundsOf(criteria()).length > 1 ? "the limits" : "the limit"} on ${dataName(choosingSplit)}, out of ${front.count}. ` : "");
  else if (hasBounds()) parts.push(`${state.asked ? "Found by questions" : "Chosen by hand"}, not by the limit. `, button(`Take the ${way(bestName())} within it`, () => choose()), ". ");
  else parts.push("Set a limit to get the best choice that keeps it.");
  const better = hasBounds() && betterRun(costOf(front, criteria())(found.at));
  if (better) {
    const name = bestName();
    parts.push(`Better in ${better.run.label}: ${labelOf(name)} ${inUnits(name, better.value)} instead of ${bare(name, front.columns[name][found.at])}. `);
    parts.push(button("Take it", () => { state.run = better.run.index; setRay(better.ray, true); changed("criteria", "run"); }), " ");
  }
  if (hasBounds()) parts.push(reachedText(boundsOf(criteria()).length > 1));
  if (state.constants) parts.push(" Choices that give everybody the same answer are allowed. ", button("Leave them out", () => { state.constants = false; choose(); }));
  box.replaceChildren(...parts);
};
on("criteria run", showCriteria);
on("criteria run ray", showVerdict);
